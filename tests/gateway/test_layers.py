"""Layers of configuration: which one wins, and who said what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.gateway.layers import Layers, read_environment, read_file, read_flags
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def laid(**given: object) -> Layers:
    layers = Layers()
    for source, tables in given.items():
        assert isinstance(tables, dict)
        layers.add(source, tables)
    return layers


def test_a_later_layer_wins_key_by_key() -> None:
    layers = laid(low={"a": {"b": 1, "c": 2}, "d": 3}, high={"a": {"b": 9}})
    assert layers.tables == {"a": {"b": 9, "c": 2}, "d": 3}
    assert [layers.source_of(*keys) for keys in (("a", "b"), ("a", "c"), ("d",), ("e",))] == [
        "high",
        "low",
        "low",
        "default",
    ]


@pytest.mark.parametrize("unit", ["_us", "_ms", "_s"])
def test_a_key_without_its_unit_is_the_same_key(unit: str) -> None:
    layers = laid(low={f"timeout{unit}": 1}, middle={"timeout": 2}, high={f"timeout{unit}": 3})
    assert layers.tables == {f"timeout{unit}": 3}
    assert layers.source_of(f"timeout{unit}") == "high"
    below = laid(low={f"timeout{unit}": 1}, high={"timeout": 2})
    assert below.tables == {"timeout": 2}
    assert below.source_of(f"timeout{unit}") == "high"


def test_layers_leave_what_they_were_given_alone() -> None:
    low = {"a": {"b": 1}}
    laid(low=low, high={"a": {"b": 2}})
    assert low == {"a": {"b": 1}}


def test_an_interval_names_its_time_within_its_layer() -> None:
    layers = laid(
        low={"storage": {"durability": "interval:250"}}, high={"storage": {"flush_ms": 9}}
    )
    assert layers.tables == {"storage": {"durability": "interval", "flush_ms": 9}}
    higher = laid(
        low={"storage": {"flush_ms": 9}}, high={"storage": {"durability": "interval:250"}}
    )
    assert higher.tables == {"storage": {"durability": "interval", "flush_ms": "250"}}


def test_variables_and_flags_name_places() -> None:
    environment = {"DRAGOMAN_A__B": "1", "HOME": "/", "DRAGOMAN_C": "2"}
    assert read_environment(environment) == {"a": {"b": "1"}, "c": "2"}
    assert read_flags({"a.b": 1, "a.c": None, "d": "x"}) == {"a": {"b": 1}, "d": "x"}


def test_a_value_is_no_section() -> None:
    with pytest.raises(ConfigError, match='DRAGOMAN_A__B: "a" is a value, not a section'):
        read_environment({"DRAGOMAN_A": "1", "DRAGOMAN_A__B": "2"})


def test_without_a_name_the_file_of_the_working_directory_is_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_file(None) == {}
    (tmp_path / "dragoman.toml").write_text("a = 1\n")
    assert read_file(None) == {"a": 1}
