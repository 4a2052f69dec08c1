"""A compacted log reads rightly in every dialect: offsets true, nothing forged, nothing missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.core.batch import Origin, Record, RecordBatch
from dragoman.core.calls import (
    CreateTopic,
    DeleteRecords,
    Fetch,
    Fetched,
    IfExists,
    Produce,
    RecordsDeleted,
    TopicConfig,
    TopicCreated,
)
from dragoman.core.column import VarColumn
from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.storage.disk_store import DiskStore
from dragoman.simulation.disk import SimDisk
from support.conversation import Exchange
from support.store import small_options
from support.talk import Talk

if TYPE_CHECKING:
    from dragoman.core.store import Store

READERS = ("cursus", "v1", "iggy", "rustlog", "rustlog json")
ROWS = 40
KEYS = (b"a", b"b", b"c", b"d", b"e", b"f", b"g")


def store_of(kind: str) -> Store:
    if kind == "memory":
        return MemoryStore()
    return DiskStore("data", small_options(segment_bytes=600, tail_bytes_max=2000), disk=SimDisk())


def talk_of(reader: str, exchange: Exchange) -> Talk:
    name, _, form = reader.partition(" ")
    return Talk(name, exchange, RustLogSpeaker(json=True) if form else None)


@pytest.fixture(params=["memory", "disk"])
def exchange(request: pytest.FixtureRequest) -> Exchange:
    """Topic t with one partition, of whose records some in between were compacted away."""
    exchange = Exchange(Engine(store_of(request.param)))
    writer = Talk("cursus", exchange)
    create = CreateTopic("t", 1, config=TopicConfig(compact=True), if_exists=IfExists.GROW)
    assert isinstance(writer.ask(create), TopicCreated)
    for row in range(0, ROWS, 2):
        values = [b"value %d" % number for number in (row, row + 1)]
        keys = [key_of(number) for number in (row, row + 1)]
        batch = RecordBatch(2, VarColumn.of(values), origin=Origin.NONE, keys=VarColumn.of(keys))
        writer.ask(Produce("t", batch, 0))
    writer.conversation.advance(40)
    return exchange


def key_of(number: int) -> bytes | None:
    """Every fifth has none; the others' keys come again and again, one of them only once."""
    if number % 5 == 0:
        return None
    return b"once" if number == 7 else KEYS[number % len(KEYS)]


def read_all(talk: Talk, offset: int = 0) -> dict[int, Record]:
    """Every record, read on from wherever a reply says."""
    found: dict[int, Record] = {}
    while True:
        reply = talk.ask(Fetch("t", 0, offset))
        assert isinstance(reply, Fetched), reply
        for piece in reply.slices:
            for record in piece.batch.records(piece.first, piece.last):
                assert record.offset >= offset
                assert record.offset not in found
                found[record.offset] = record
        if reply.next_offset <= offset or reply.next_offset > ROWS:
            return found
        offset = reply.next_offset


@pytest.mark.parametrize("reader", READERS)
def test_every_dialect_reads_what_is_left_at_its_true_offset(
    exchange: Exchange, reader: str
) -> None:
    found = read_all(talk_of(reader, exchange))
    assert all(record.value == b"value %d" % offset for offset, record in found.items())
    newest = {key_of(number): number for number in range(ROWS)}
    wanted = {n for n in range(ROWS) if key_of(n) is None or newest[key_of(n)] == n}
    assert wanted <= set(found)
    assert 7 in found
    assert len(found) < ROWS - 10
    assert set(found) == set(read_all(talk_of("cursus", exchange)))


@pytest.mark.parametrize("reader", READERS)
def test_reading_may_begin_at_an_offset_that_is_gone(exchange: Exchange, reader: str) -> None:
    every = set(read_all(talk_of("cursus", exchange)))
    for offset in range(ROWS):
        found = read_all(talk_of(reader, exchange), offset)
        assert set(found) == {at for at in every if at >= offset}


@pytest.mark.parametrize("reader", READERS)
def test_after_records_were_deleted_reading_begins_at_the_new_start(
    exchange: Exchange, reader: str
) -> None:
    writer = Talk("cursus", exchange)
    assert writer.ask(DeleteRecords("t", 0, 16)) == RecordsDeleted(0, 16)
    every = {at for at in read_all(writer, 16) if at >= 16}
    talk = talk_of(reader, exchange)
    assert set(read_all(talk, 16)) == every
    below = talk.ask(Fetch("t", 0, 3))
    if isinstance(below, Fetched):  # others refuse what is too old, in their own words
        for piece in below.slices:
            assert all(record.offset >= 16 for record in piece.batch.records(*piece[1:]))
