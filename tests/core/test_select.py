"""Records taken out of a batch are what they were; the batch says where they stood."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import RecordBatch, decode_batch, encode_batch
from dragoman.core.column import VarColumn
from dragoman.core.select import select
from support.batches import placed_batches


def placed(*values: bytes) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=1)
    batch.place(base_offset=10, timestamp_us=5, log_epoch=3)
    return batch


@settings(max_examples=200, deadline=None)
@given(placed_batches(), st.data())
def test_what_is_selected_is_what_it_was_also_at_rest_and_selected_again(
    batch: RecordBatch, data: st.DataObject
) -> None:
    every = list(batch.records())
    indices = sorted(data.draw(st.sets(st.integers(0, batch.count - 1), min_size=1)))
    chosen = select(batch, indices, batch.next_offset + data.draw(st.integers(0, 3)))
    assert list(chosen.records()) == [every[index] for index in indices]
    stored = decode_batch(b"".join(encode_batch(chosen, 1, 2)), 1, 2)
    assert list(stored.records()) == list(chosen.records())
    assert stored.next_offset == chosen.next_offset
    last = select(stored, [stored.count - 1], stored.next_offset)
    assert list(last.records()) == [every[indices[-1]]]


def test_a_batch_begins_at_its_first_record_and_ends_where_it_is_told() -> None:
    chosen = select(placed(b"a", b"b", b"c", b"d"), [1, 3], 20)
    assert (chosen.base_offset, chosen.next_offset, chosen.count) == (11, 20, 2)
    assert [chosen.index_of(offset) for offset in (0, 11, 12, 13, 14, 19)] == [0, 0, 1, 1, 2, 2]


def test_without_a_hole_there_is_no_column_of_offsets() -> None:
    chosen = select(placed(b"a", b"b", b"c"), [1, 2], 13)
    assert chosen.offset_deltas is None
    assert [record.offset for record in chosen.records()] == [11, 12]


def test_a_hole_at_the_end_is_told_by_the_column_of_offsets() -> None:
    chosen = select(placed(b"a", b"b"), [0, 1], 13)
    assert list(chosen.offset_deltas or ()) == [0, 1]


def test_times_and_sequences_go_with_their_records() -> None:
    batch = placed(b"a", b"b", b"c")
    batch.timestamps = array("q", (5, 6, 9))
    batch.max_timestamp_us = 9
    batch.base_sequence = 40
    chosen = select(batch, [0, 2], 13)
    assert list(chosen.timestamps or ()) == [5, 9]
    assert (chosen.base_timestamp_us, chosen.max_timestamp_us) == (5, 9)
    assert list(chosen.sequences or ()) == [40, 42]
    alone = select(batch, [1], 12)
    assert (alone.timestamps, alone.base_timestamp_us, alone.max_timestamp_us) == (None, 6, 6)
    assert (alone.base_sequence, alone.sequences) == (41, None)


def test_columns_that_no_record_uses_any_more_are_gone() -> None:
    batch = placed(b"a", b"b")
    batch.keys = VarColumn.of([b"k", None])
    batch.headers = VarColumn.of([None, b"h"])
    assert select(batch, [1], 12).keys is None
    assert select(batch, [0], 11).headers is None
