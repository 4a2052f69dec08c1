from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli.main import app
from dragoman.core.storage.disk_store import DiskStore

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    *("serve", "config", "topic", "group", "produce", "consume"),
    *("verify", "recover", "sim"),
)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_imported_and_has_help(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        app([command, "--help"])
    assert ended.value.code == 0
    assert f"dragoman {command}" in capsys.readouterr().out


def test_help_imports_neither_the_engine_nor_trio() -> None:
    code = (
        "import sys, dragoman.cli.main as m\n"
        "try: m.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([n for n in ('trio', 'dragoman.core.engine', 'structlog') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def dragoman(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command as a shell would."""
    return subprocess.run(
        (sys.executable, "-m", "dragoman.cli.main", *arguments),
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
        **streams,
    )


@pytest.fixture
def data(tmp_path: Path) -> str:
    DiskStore(tmp_path).close()
    return str(tmp_path)


def test_a_reader_that_is_gone_is_no_failure(data: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = dragoman("verify", data, stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_finds_no_room_is_one_sentence(data: str) -> None:
    with open("/dev/full", "w") as full:
        done = dragoman("verify", data, stdout=full)
    assert (done.returncode, done.stderr) == (1, "dragoman: No space left on device\n")


def test_standard_streams_that_are_closed_are_no_failure(data: str) -> None:
    script = f'"{sys.executable}" -m dragoman.cli.main verify "{data}" <&- >&-'
    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
