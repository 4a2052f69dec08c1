"""Checkpoints: when they come, in which order they do things, and what a failure leaves."""

from __future__ import annotations

import errno

import pytest

from dragoman.core import change as ch
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.storage.catalog_file import catalog_sequences, read_catalog
from dragoman.core.storage.checkpointer import SPACING_US
from dragoman.core.storage.layout import Layout
from dragoman.simulation.disk import SimDisk
from support.store import Driven, read_all

LAYOUT = Layout("data")


def settled(**options: int) -> tuple[SimDisk, Driven]:
    disk = SimDisk()
    driven = Driven(disk, **options)
    driven.topic()
    driven.advance(SPACING_US / 1e6)
    return disk, driven


def test_a_new_topic_and_passing_time_make_one_due() -> None:
    disk, driven = settled()
    newest = catalog_sequences(disk, LAYOUT)[0]
    assert newest == driven.store.revealed_sequence
    driven.produce([b"a"])
    driven.advance(20)
    assert catalog_sequences(disk, LAYOUT)[0] == newest
    driven.advance(11)
    assert catalog_sequences(disk, LAYOUT)[0] == driven.store.revealed_sequence
    driven.advance(100)
    assert driven.store.statistics()["store_checkpoints"] == 2


def test_the_previous_catalog_stays_until_the_next_has_succeeded() -> None:
    disk, driven = settled()
    kept = []
    for _ in range(4):
        driven.produce([b"a"])
        driven.advance(31)
        kept.append(catalog_sequences(disk, LAYOUT))
    assert all(len(pair) == 2 for pair in kept)
    assert [pair[1] for pair in kept[1:]] == [pair[0] for pair in kept[:-1]]


def test_data_is_synced_before_the_catalog_and_directories_between() -> None:
    disk, driven = settled()
    for value in (b"a", b"b"):
        driven.produce([value * 3000])
        driven.settle()
    disk.log.clear()
    driven.advance(31)
    steps = [step for step in disk.log if "journal" not in step and "visible" not in step]
    names = [step.split(" data/")[0] for step in steps]
    catalog = next(i for i, step in enumerate(steps) if "catalog" in step)
    assert names[:catalog].count("sync") == 2
    assert names.index("sync directory") < catalog
    assert names[catalog:][:6] == [
        "create",
        "truncate",
        "write",
        "sync",
        "rename",
        "sync directory",
    ]


def test_a_catalog_is_the_previous_one_with_the_journal_folded_in() -> None:
    disk, driven = settled()
    driven.produce([b"a"])
    driven.settle()
    driven.produce([b"not yet flushed"])
    driven.mono_us += 31_000_000
    driven.work()
    driven.work()
    image = read_catalog(disk, LAYOUT, catalog_sequences(disk, LAYOUT)[0])
    assert image.state["topics"][0]["partitions"][0]["next_offset"] == 1
    assert driven.store.catalog.topics[1].partitions[0].next_offset == 2


@pytest.mark.parametrize(
    "step", ["sync", "sync directory", "create", "write", "truncate", "rename", "unlink"]
)
def test_a_failed_step_fences_and_frees_nothing(step: str) -> None:
    disk, driven = settled()
    for _ in range(30):
        driven.produce([b"a" * 300])
        driven.settle()
    before = set(disk.list("data/catalog"))
    driven.mono_us += 31_000_000
    disk.fail_at(1, errno.EIO, step)
    driven.work()
    assert driven.store.failure is not None
    assert before <= set(disk.list("data/catalog")) | {"0.json"}
    with pytest.raises(EngineError) as refused:
        driven.produce([b"b"])
    assert refused.value.code is ErrorCode.STORAGE_FAILED
    assert driven.store.take_work(driven.now()) == []
    assert driven.store.take_flush(driven.now()) is None
    again = Driven(disk.crashed(None))
    assert read_all(again.store) == [b"a" * 300] * 30


def test_a_failed_journal_sync_is_never_tried_again() -> None:
    disk, driven = settled()
    driven.produce([b"a"])
    disk.fail_at(1, errno.EIO, "sync")
    revealed = driven.store.revealed_sequence
    driven.flush()
    assert driven.store.revealed_sequence == revealed
    assert driven.store.failure is not None
    syncs = len([step for step in disk.log if step.startswith("sync ")])
    driven.settle()
    driven.advance(100)
    assert len([step for step in disk.log if step.startswith("sync ")]) == syncs
    with pytest.raises(EngineError):
        driven.produce([b"b"])


def test_many_open_segments_make_one_due() -> None:
    _, driven = settled(open_files_max=8)
    for topic_id in range(2, 12):
        driven.topic(topic_id)
    driven.settle()
    for topic_id in range(2, 12):
        driven.produce([b"a"], topic_id=topic_id)
        driven.settle()
        assert int(driven.store.statistics()["store_open_files"]) <= 8


def test_a_file_that_is_removed_before_it_was_synced_is_not_kept_open() -> None:
    disk, driven = settled()
    driven.produce([b"a"])
    driven.settle()
    assert driven.store.statistics()["store_open_files"] == 1
    driven.change(ch.TopicDropped(1))
    driven.settle()
    driven.advance(62)
    assert disk.list("data/topics") == []
    assert driven.store.statistics()["store_open_files"] == 0
