"""What an index takes of batches; that it says what reading the log again would say."""

from __future__ import annotations

from array import array
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import DescribeTopic, Produce
from dragoman.core.events.index import rows_of
from dragoman.core.storage.disk_store import DiskStore
from dragoman.simulation.disk import PowerCut, SimDisk
from support.effort import effort
from support.log import batch, values
from support.store import small_options
from support.streams import TOPIC, Streams, published, versions

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch

KEYS = (b"a", b"b", b"c")
RUNS = effort("EVENT_INDEX_RUNS", 30)


def placed(*rows: tuple[bytes | None, int]) -> RecordBatch:
    made = published(*rows)
    made.place(base_offset=5, timestamp_us=1, log_epoch=1)
    return made


def test_a_row_is_key_version_and_offset() -> None:
    assert list(rows_of(placed((b"a", 1), (b"b", 0), (None, 3), (b"", 4)))) == [
        (b"a", 1, 5),
        (b"b", 0, 6),
    ]


def test_a_single_record_is_a_row() -> None:
    assert list(rows_of(placed((b"a", 1)))) == [(b"a", 1, 5)]
    assert list(rows_of(placed((None, 1)))) == []


def test_records_without_keys_are_no_rows() -> None:
    plain = batch(b"x", b"y")
    plain.place(base_offset=0, timestamp_us=1, log_epoch=1)
    assert list(rows_of(plain)) == []


def test_offsets_with_gaps_are_the_records_own() -> None:
    made = placed((b"a", 1), (b"a", 2))
    made.offset_deltas = array("I", (0, 7))
    made.last_offset_delta = 7
    assert list(rows_of(made)) == [(b"a", 1, 5), (b"a", 2, 12)]


@pytest.mark.parametrize("seed", range(RUNS))
def test_an_index_says_what_reading_the_log_again_says(seed: int) -> None:
    random = Random(seed)
    log = Streams()
    for _ in range(40):
        _do_something(log, random)
        if random.random() < 0.3:
            log.flush()
            again = log.restarted()
            again.store.blocking_reads = random.random() < 0.5
            for key in KEYS:
                assert again.version(key) == log.version(key)
                assert again.versions(key) == log.versions(key)
                assert again.snapshot(key) == log.snapshot(key)
            if random.random() < 0.3:
                log = again


def _do_something(log: Streams, random: Random) -> None:
    key = random.choice(KEYS)
    match random.choice(("add", "add", "add", "publish", "publish", "trim", "save")):
        case "add":
            log.begin(key, log.version(key) + random.choice((0, 1, 1, 1, 2)))
        case "publish":
            keys = [random.choice((*KEYS, None)) for _ in range(random.randrange(1, 4))]
            rows = [(key, random.randrange(6)) for key in keys]
            log.hand(Produce(TOPIC, published(*rows), 0))
        case "trim":
            log.flush()
            end = log.ask(DescribeTopic(TOPIC)).topic.partitions[0].high_watermark
            log.trim(random.randrange(end + 1))
        case "save":
            log.save(key, max(log.version(key) - random.randrange(2), 1))


def disk_store(disk: SimDisk) -> DiskStore:
    """A store of small segments and little memory, so that most of the log is on the disk."""
    return DiskStore("data", small_options(tail_bytes_max=2000, segment_bytes=900), disk=disk)


def write(log: Streams, random: Random, heard: dict[bytes, int], count: int) -> None:
    """Somebody who appends from the version that it read, and remembers what was answered."""
    for _ in range(count):
        key = random.choice(KEYS)
        version = log.version(key)
        assert version >= heard.get(key, 0)
        appended = log.add(key, version + 1, b"%b-%d" % (key, version + 1))
        assert appended.version == version + 1
        heard[key] = version + 1
        if random.random() < 0.2:
            assert log.save(key, version + 1, b"%d" % (version + 1)).version == version + 1
        if random.random() < 0.2:
            log.publish((key, 99), (None, 0))


def check(log: Streams, heard: dict[bytes, int]) -> None:
    """What was answered is there, and streams have no gaps."""
    for key in KEYS:
        last = log.version(key)
        assert last >= heard.get(key, 0)
        slices = log.stream(key, 1).slices
        assert versions(slices) == [*range(1, last + 1)]
        assert values(slices) == [b"%b-%d" % (key, version) for version in range(1, last + 1)]
        if (snapshot := log.snapshot(key)) is not None:
            assert snapshot.payload == b"%d" % snapshot.version


@pytest.mark.parametrize("seed", range(12))
def test_streams_survive_power_cuts_and_kills(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk()
    heard: dict[bytes, int] = {}
    Streams(store=disk_store(disk))
    for life in range(4):
        disk = disk.killed() if life % 2 else disk.crashed(random)
        disk.cut_power_at(random.randint(20, 400))
        with suppress(PowerCut):
            log = Streams(store=disk_store(disk), create=False)
            check(log, heard)
            write(log, random, heard, 60)
    check(Streams(store=disk_store(disk.crashed(random)), create=False), heard)


def test_a_log_on_disk_is_read_in_a_thread() -> None:
    disk = SimDisk()
    log = Streams(store=disk_store(disk))
    heard: dict[bytes, int] = {}
    write(log, Random(1), heard, 100)
    again = Streams(store=disk_store(disk.killed()), create=False)
    check(again, heard)
    assert again.statistics["event_index_records_read"] >= 100
    assert again.statistics["cold_reads"] > 5
