"""Virtual environments for published clients, and drivers that run in them.

An environment is made once under `.interop/` and kept between runs.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from types import TracebackType

FOLDER = Path(__file__).parents[2] / ".interop"
INSTALL_TIMEOUT_S = 60


def python_with(requirement: str) -> Path:
    """The interpreter of an environment that holds one pinned requirement and what it needs.

    The stamp in it names the requirement and the Python it was made with, so that another version
    of either makes it anew. Where the requirement cannot be installed, which is so on a machine
    without a network, the test that asked is skipped.
    """
    folder = FOLDER / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    stamp = folder / "stamp"
    wanted = f"{requirement} {sys.version}"
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, clear=True)
        if reason := _install(python, requirement):
            pytest.skip(f"{requirement} cannot be installed here: {reason}")
        stamp.write_text(wanted)
    return python


def _install(python: Path, requirement: str) -> str:
    """Why pip could not install it, in its own last line; empty where it could."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]
    command += ["--timeout", "10", "--retries", "1", requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pip took more than {INSTALL_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]


class Driver:
    """A script that uses a published client, in a process of its own; a context.

    It is given what it is asked as one argument of JSON, and prints an object of JSON a step.

    Args:
        python: The interpreter of the environment.
        script: The driver.
        timeout_s: Between two steps, and for its end.
    """

    def __init__(self, python: Path, script: Path, *, timeout_s: float = 30, **asked: Any) -> None:
        self.timeout_s = timeout_s
        self._steps: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [str(python), str(script), json.dumps(asked)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._steps.put(json.loads(line))
        self._steps.put(None)

    def step(self) -> dict[str, Any]:
        """The next step; an assertion fails where it ended instead."""
        step = self._steps.get(timeout=self.timeout_s)
        if step is None:
            assert self._process.stderr is not None
            raise AssertionError(f"the driver ended: {self._process.stderr.read()[-2000:]}")
        return step

    def until(self, name: str) -> list[dict[str, Any]]:
        """All steps up to and with the next one of this name."""
        steps = [self.step()]
        while steps[-1]["step"] != name:
            steps.append(self.step())
        return steps

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.wait(self.timeout_s if error is None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            if error is None:
                raise
        finally:
            self._listener.join()
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()


def drive(python: Path, script: Path, **asked: Any) -> list[dict[str, Any]]:
    """All steps of a driver that ends by itself."""
    with Driver(python, script, **asked) as driver:
        return driver.until("closed")
