"""The `dragoman` command. Each subcommand is imported when it is called, so that help is quick."""

from __future__ import annotations

import os
import sys

from cyclopts import App

FAILED, INTERRUPTED = 1, 130

app = App(
    name="dragoman",
    help="Four log and streaming dialects over one durable log.",
    version=lambda: _version(),
)
app.command("dragoman.cli.serve:serve", name="serve", help="Start the gateway.")
app.command("dragoman.cli.config:app", name="config", help="Show what is configured.")
app.command("dragoman.cli.topic:app", name="topic", help="Make, list, describe, delete topics.")
app.command("dragoman.cli.group:app", name="group", help="List, describe, delete groups.")
app.command("dragoman.cli.produce:produce", name="produce", help="Write records.")
app.command("dragoman.cli.consume:consume", name="consume", help="Read records.")
app.command("dragoman.cli.verify:verify", name="verify", help="Check a data directory.")
app.command("dragoman.cli.recover:recover", name="recover", help="Open a damaged directory.")
app.command("dragoman.cli.sim:sim", name="sim", help="Play simulated runs and check them.")


def _version() -> str:
    from importlib.metadata import version

    return version("dragoman")


def main() -> None:
    """Runs the command line of the process; what the system refuses it is one sentence."""
    _open_standard_streams()
    try:
        app()
    except BrokenPipeError:
        _forget_output()  # whoever read it has seen enough
    except OSError as error:
        _forget_output()
        where = f": {error.filename}" if error.filename else ""
        print(f"dragoman: {error.strerror or error}{where}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        sys.exit(INTERRUPTED)  # so it comes out of tasks


def _open_standard_streams() -> None:
    """Puts nothing in the place of standard streams that the caller closed, so that no socket or
    file of ours gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - open for the process's life
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _forget_output() -> None:
    """Nothing more can be written to stdout, and nothing may be tried at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
