"""`dragoman config show`: what counts, and who said so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.cli.config import show_config

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def show(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def shown(**flags: Any) -> dict[str, tuple[Any, str]]:
        assert show_config(**flags) == 0
        rows = map(json.loads, capfd.readouterr().out.splitlines())
        return {row["key"]: (row["value"], row["source"]) for row in rows}

    return shown


def test_every_key_is_a_line_with_its_source(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_STORAGE__FLUSH_MS", "20")
    rows = show(profile="cursus-document", set_=("data=elsewhere",))
    assert rows["storage.flush_ms"] == (20, "environment")
    assert rows["storage.flush_records"] == (500, "profile")
    assert rows["storage.retry_ms"] == (1000, "default")
    assert rows["data"] == ("elsewhere", "flag")


def test_the_file_of_the_working_directory_is_read(show: Any, tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[listeners.v1]\nport = 9192\n")
    assert show()["listeners.v1.port"] == (9192, "file")


def test_what_is_wrong_is_one_sentence(show: Any, capfd: Any) -> None:
    assert show_config(profile="cursus-documant") == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert 'did you mean "cursus-document"?' in said.err
