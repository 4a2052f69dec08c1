"""A real server in a process of its own, on free ports of loopback, that a test may kill."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30


class Server:
    """`dragoman serve --ephemeral --print-ports` over a data directory.

    Args:
        data: Where the log is kept; the same again after a kill.
        flags: More flags of `dragoman serve`.
        launcher: A command that runs the one behind it, in its own place.

    Attributes:
        ports: The port of each dialect, and `admin`, while it runs.
    """

    def __init__(self, data: Path, *flags: str, launcher: Sequence[str] = ()) -> None:
        self.data = data
        self.launcher = launcher
        self.flags = flags
        self.ports: dict[str, int] = {}
        self.log = data.parent / f"{data.name}.stderr"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, same_ports: bool = False) -> Self:
        """Starts it and waits until every listener accepts.

        Args:
            same_ports: Those of its last life, where its clients come back; else any free ones.
        """
        command = Path(sys.executable).with_name("dragoman")
        doors = ["--ephemeral"]
        if same_ports:
            doors = [f"--set={_section(name)}.port={port}" for name, port in self.ports.items()]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(*self.launcher, str(command), "serve", "--print-ports", *doors),
                    *("--data", str(self.data), *self.flags),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], START_TIMEOUT_S)[0]:
            self.kill()
            raise TimeoutError(f"no ports after {START_TIMEOUT_S} s: {self.tail()}")
        line = stdout.readline()
        if not line:
            self.kill()
            raise RuntimeError(f"the server ended instead of starting: {self.tail()}")
        self.ports = json.loads(line)
        return self

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Ends it with SIGKILL, as a power cut of the process would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ends it with SIGTERM; returns its exit status."""
        return self._end(signal.SIGTERM)

    def tail(self) -> str:
        """The end of what it logged."""
        return self.log.read_text(errors="replace")[-2000:]

    def _end(self, number: signal.Signals) -> int:
        process = self._process
        if process is None:
            return 0
        self._process = None
        process.send_signal(number)
        try:
            status = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()


def _section(door: str) -> str:
    return door if door == "admin" else f"listeners.{door}"
