"""Storage limits: each says its unit and source, and none can be nonsense."""

from __future__ import annotations

from dataclasses import fields

import pytest

from dragoman.core.storage.options import Durability, StorageOptions


def test_every_limit_names_its_unit_and_its_source() -> None:
    for option in fields(StorageOptions):
        assert "unit" in option.metadata, option.name
        assert option.metadata["source"], option.name


def test_the_default_is_durable_by_sync() -> None:
    assert StorageOptions().durability is Durability.FSYNC


@pytest.mark.parametrize("name", [f.name for f in fields(StorageOptions) if f.name != "durability"])
def test_a_limit_below_nothing_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        StorageOptions(**{name: -1})


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="pending_bytes_max"):
        StorageOptions(pending_bytes_max=0)


def test_a_journal_of_too_few_files_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        StorageOptions(journal_files_max=3)


@pytest.mark.parametrize("name", ["segment_linger_ms", "scrub_bytes_per_s"])
def test_what_may_be_switched_off_takes_nothing(name: str) -> None:
    assert getattr(StorageOptions(**{name: 0}), name) == 0
