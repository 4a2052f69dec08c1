"""The record batch in memory and at rest: what goes in comes out, what is broken is refused."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import (
    HEADER_BYTES,
    BatchError,
    Origin,
    Record,
    RecordBatch,
    decode_batch,
    encode_batch,
    read_head,
)
from dragoman.core.column import VarColumn
from support.batches import placed_batches


def at_rest(batch: RecordBatch, topic_id: int = 1, partition: int = 2) -> bytes:
    return b"".join(map(bytes, encode_batch(batch, topic_id, partition)))


def small() -> RecordBatch:
    batch = RecordBatch(
        3,
        VarColumn.of([b"a", b"", b"ccc"]),
        origin=Origin.IGGY,
        keys=VarColumn.of([b"k", None, b""]),
        producers=(b"p",),
        producer_epoch=3,
        base_sequence=10,
    )
    batch.place(base_offset=100, timestamp_us=7, log_epoch=1)
    return batch


@settings(max_examples=200, deadline=None)
@given(placed_batches(), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_what_is_written_is_read_back(batch: RecordBatch, topic_id: int, partition: int) -> None:
    data = at_rest(batch, topic_id, partition)
    assert len(data) % 8 == 0
    again = decode_batch(data, topic_id, partition)
    assert list(again.records()) == list(batch.records())
    assert (again.base_offset, again.next_offset) == (batch.base_offset, batch.next_offset)
    assert (again.origin, again.log_epoch) == (batch.origin, batch.log_epoch)
    assert again.max_timestamp_us == batch.max_timestamp_us
    assert at_rest(again, topic_id, partition) == data


@settings(max_examples=200, deadline=None)
@given(placed_batches(), st.data())
def test_a_flipped_bit_anywhere_is_refused(batch: RecordBatch, data: st.DataObject) -> None:
    broken = bytearray(at_rest(batch))
    bit = data.draw(st.integers(0, 8 * len(broken) - 1))
    broken[bit >> 3] ^= 1 << (bit & 7)
    with pytest.raises(BatchError):
        decode_batch(bytes(broken), 1, 2)


@pytest.mark.parametrize(("topic_id", "partition"), [(2, 2), (1, 1), (2, 1)])
def test_a_batch_that_was_moved_is_refused(topic_id: int, partition: int) -> None:
    with pytest.raises(BatchError, match="checksum"):
        decode_batch(at_rest(small()), topic_id, partition)


def test_a_batch_that_is_cut_off_is_refused() -> None:
    data = at_rest(small())
    for size in range(len(data)):
        with pytest.raises(BatchError):
            decode_batch(data[:size], 1, 2)


def test_zeros_are_not_a_batch() -> None:
    with pytest.raises(BatchError, match="magic"):
        decode_batch(bytes(4096), 1, 2)


def test_an_unknown_format_is_refused_by_number() -> None:
    data = bytearray(at_rest(small()))
    data[4] = 9
    with pytest.raises(BatchError, match="format 9"):
        read_head(data)


def test_a_batch_is_found_inside_a_larger_buffer() -> None:
    data = bytes(16) + at_rest(small()) + b"tail"
    assert list(decode_batch(data, 1, 2, 16).records()) == list(small().records())
    assert read_head(data, 16).base_offset == 100


def test_a_large_batch_aliases_its_columns() -> None:
    batch = RecordBatch(1, VarColumn.single(bytes(100_000)), origin=Origin.V1)
    batch.place(base_offset=0, timestamp_us=0, log_epoch=0)
    parts = encode_batch(batch, 1, 2)
    assert any(part is batch.values.blob for part in parts)
    assert decode_batch(b"".join(map(bytes, parts)), 1, 2).values[0] == bytes(100_000)


def test_columns_begin_at_multiples_of_8() -> None:
    data = at_rest(small())
    assert HEADER_BYTES % 8 == 0
    assert read_head(data).length == len(data)


def test_a_record_is_a_row_of_the_columns() -> None:
    assert small().record(1) == Record(
        offset=101,
        timestamp_us=7,
        value=b"",
        key=None,
        headers=None,
        id=None,
        producer=b"p",
        epoch=3,
        sequence=11,
    )
    assert [record.offset for record in small().records(1)] == [101, 102]


def test_absent_and_empty_keys_differ() -> None:
    batch = decode_batch(at_rest(small()), 1, 2)
    assert [record.key for record in batch.records()] == [b"k", None, b""]


@pytest.mark.parametrize(("offset", "index"), [(0, 0), (100, 0), (102, 2), (103, 3), (999, 3)])
def test_an_offset_is_found(offset: int, index: int) -> None:
    assert small().index_of(offset) == index


@pytest.mark.parametrize(("offset", "index"), [(100, 0), (101, 1), (104, 1), (105, 2), (106, 3)])
def test_an_offset_is_found_where_records_are_missing(offset: int, index: int) -> None:
    batch = small()
    batch.offset_deltas = array("I", (0, 4, 5))
    batch.last_offset_delta = 6
    assert batch.index_of(offset) == index
    assert batch.next_offset == 107
    again = decode_batch(at_rest(batch), 1, 2)
    assert [again.offset_at(i) for i in range(3)] == [100, 104, 105]
    assert again.next_offset == 107


def test_nbytes_is_near_the_size_at_rest() -> None:
    for batch in (small(), RecordBatch(1, VarColumn.single(bytes(500)), origin=0)):
        batch.place(base_offset=0, timestamp_us=0, log_epoch=0)
        assert 0 <= len(at_rest(batch)) - batch.nbytes < 128
