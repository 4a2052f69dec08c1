"""What counts in the end: every key once, with who said so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from dragoman.core.options import EngineOptions
from dragoman.core.storage.options import StorageOptions
from dragoman.gateway.config import Config, load_config
from dragoman.gateway.effective import HIDDEN, Effective, effective

if TYPE_CHECKING:
    from pathlib import Path


def load(tmp_path: Path, *, ephemeral: bool = False) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text(
        'profile = "cursus-document"\n[storage]\nflush_ms = 50\n'
        '[listeners.v1]\nidle_timeout = "1m"\nescape_spaces = true\n'
    )
    environment = {"DRAGOMAN_ENGINE__TOPICS_MAX": "7"}
    return load_config(file, environment, {"data": "here"}, ephemeral=ephemeral)


def found(config: Config) -> dict[str, Effective]:
    return {one.key: one for one in effective(config)}


def test_each_key_has_its_value_and_who_said_so(tmp_path: Path) -> None:
    keys = found(load(tmp_path))
    for wanted in (
        Effective("profile", "cursus-document", "file"),
        Effective("data", "here", "flag"),
        Effective("storage.flush_ms", 50, "file"),
        Effective("storage.durability", "interval", "profile"),
        Effective("storage.open_files_max", 1024, "default"),
        Effective("engine.topics_max", 7, "environment"),
        Effective("engine.dedupe_ms", 1_800_000, "profile"),
        Effective("listeners.v1.idle_timeout_s", 60.0, "file"),
        Effective("listeners.v1.escape_spaces", True, "file"),
        Effective("listeners.cursus.tls_cert", None, "default"),
    ):
        assert keys[wanted.key] == wanted


def test_no_key_is_missing_or_there_twice(tmp_path: Path) -> None:
    config = load(tmp_path)
    keys = [one.key for one in effective(config)]
    assert len(keys) == len(set(keys))
    assert {f"storage.{name}" for name in StorageOptions.__dataclass_fields__} <= set(keys)
    assert {f"engine.{name}" for name in EngineOptions.__dataclass_fields__} <= set(keys)


def test_every_value_is_json(tmp_path: Path) -> None:
    for one in effective(load(tmp_path)):
        assert orjson.dumps(one.value)


def test_what_ephemeral_chooses_is_a_flag_s(tmp_path: Path) -> None:
    keys = found(load(tmp_path, ephemeral=True))
    assert keys["listeners.cursus.port"] == Effective("listeners.cursus.port", 0, "flag")


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    config = load(tmp_path)
    admin = replace(config.admin, tls_key_password="hush")
    keys = found(replace(config, admin=admin))
    assert keys["admin.tls_key_password"].value == HIDDEN
    assert keys["listeners.cursus.tls_key_password"].value is None
