"""The `dragoman` command. Each subcommand is imported when it is called, so that help is quick."""

from __future__ import annotations

from cyclopts import App

app = App(
    name="dragoman",
    help="Four log and streaming dialects over one durable log.",
    version=lambda: _version(),
)
app.command("dragoman.cli.serve:serve", name="serve", help="Start the gateway.")
app.command("dragoman.cli.topic:app", name="topic", help="Make, list, describe, delete topics.")
app.command("dragoman.cli.produce:produce", name="produce", help="Write records.")
app.command("dragoman.cli.consume:consume", name="consume", help="Read records.")
app.command("dragoman.cli.verify:verify", name="verify", help="Check a data directory.")
app.command("dragoman.cli.recover:recover", name="recover", help="Open a damaged directory.")


def _version() -> str:
    from importlib.metadata import version

    return version("dragoman")


def main() -> None:
    """Runs the command line of the process."""
    app()


if __name__ == "__main__":
    main()
