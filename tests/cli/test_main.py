from __future__ import annotations

import subprocess
import sys

import pytest

from dragoman.cli.main import app

COMMANDS = ("serve", "topic", "produce", "consume", "verify", "recover")


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
