"""Profiles: what they set, what wins over them, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.storage.options import Durability
from dragoman.gateway.config import Config, load_config
from dragoman.gateway.profile import PROFILES
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def load(
    tmp_path: Path, text: str = "", environment: dict[str, str] | None = None, **flags: Any
) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    return load_config(file, environment or {}, {k.replace("__", "."): v for k, v in flags.items()})


def test_the_cursus_documents_figures_are_what_counts(tmp_path: Path) -> None:
    config = load(tmp_path, profile="cursus-document")
    cursus = config.listeners[0]
    storage, engine = config.storage, config.engine
    assert config.profile == "cursus-document"
    assert storage.durability is Durability.INTERVAL
    assert (storage.flush_records, storage.flush_ms) == (500, 100)
    assert storage.segment_bytes == 1 << 20
    assert engine.partition_buffer_records == 10_000
    assert engine.dedupe_ms == 30 * 60_000
    assert (engine.dedupe_check_us, engine.retention_check_us) == (60_000_000, 60_000_000)
    assert (cursus.port, cursus.connections_max, cursus.idle_timeout_s) == (9000, 1000, 300.0)


def test_without_a_profile_nothing_of_it_counts(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.profile == ""
    assert config.storage.durability is Durability.FSYNC
    assert (config.engine.dedupe_ms, config.engine.partition_buffer_records) == (0, 0)


@pytest.mark.parametrize("name", PROFILES)
def test_every_key_of_a_profile_is_one_of_ours_and_says_where_it_is_from(
    tmp_path: Path, name: str
) -> None:
    config = load(tmp_path, profile=name)
    for key, _, source in PROFILES[name]:
        assert config.layers.source_of(*key.split(".")) == "profile"
        assert source


def test_the_file_a_variable_and_a_flag_win_over_a_profile(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        'profile = "cursus-document"\n[storage]\nflush_ms = 50\nsegment_bytes = "2MiB"\n'
        '[listeners.cursus]\nidle_timeout = "9s"\n',
        {"DRAGOMAN_STORAGE__SEGMENT_BYTES": "3MiB"},
        storage__flush_records=7,
    )
    storage = config.storage
    assert (storage.flush_ms, storage.segment_bytes, storage.flush_records) == (50, 3 << 20, 7)
    assert config.listeners[0].idle_timeout_s == 9.0
    assert storage.durability is Durability.INTERVAL


def test_another_durability_wins_with_its_time(tmp_path: Path) -> None:
    storage = load(tmp_path, profile="cursus-document", storage__durability="interval:20").storage
    assert (storage.durability, storage.flush_ms) == (Durability.INTERVAL, 20)
    storage = load(tmp_path, profile="cursus-document", storage__durability="fsync").storage
    assert storage.durability is Durability.FSYNC


def test_a_flag_names_the_profile_before_a_variable_before_the_file(tmp_path: Path) -> None:
    text = "profile = 'nonsense'\n"
    environment = {"DRAGOMAN_PROFILE": "cursus-document"}
    assert load(tmp_path, text, environment).profile == "cursus-document"
    assert load(tmp_path, text, environment, profile="").profile == ""
    with pytest.raises(ConfigError, match='unknown profile "nonsense"'):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cursus-documents", 'did you mean "cursus-document"'),
        ("cursus", 'did you mean "cursus-document"'),
        ("q", "known are cursus-document"),
    ],
)
def test_an_unknown_profile_is_refused_with_the_nearest(
    tmp_path: Path, name: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match=hint):
        load(tmp_path, profile=name)


def test_a_profile_lowers_to_what_the_system_grants_as_a_default_does(tmp_path: Path) -> None:
    assert not load(tmp_path, profile="cursus-document").listeners[0].connections_chosen
    text = "[listeners.cursus]\nconnections_max = 5\n"
    assert load(tmp_path, text, profile="cursus-document").listeners[0].connections_chosen
