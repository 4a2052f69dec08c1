"""Joining neighbours loses nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.join import are_alike, can_join, gather, join_batches, join_scattered
from support.batches import batches


def placed(base: int, *values: bytes, time: int = 1, **fields: int) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=fields.pop("origin", 1))
    batch.place(base_offset=base, timestamp_us=time, log_epoch=fields.pop("log_epoch", 0))
    return batch


@settings(max_examples=200, deadline=None)
@given(st.lists(batches(3), min_size=2, max_size=4))
def test_what_can_be_joined_keeps_every_record(found: list[RecordBatch]) -> None:
    offset = 10
    for number, batch in enumerate(found):
        batch.origin = Origin.CURSUS
        batch.place(base_offset=offset, timestamp_us=100 + number // 2, log_epoch=4)
        offset = batch.next_offset
    run = found[:1]
    for batch in found[1:]:
        if not can_join(run[-1], batch):
            break
        run.append(batch)
    joined = join_batches(run)
    assert list(joined.records()) == [record for batch in run for record in batch.records()]
    assert (joined.base_offset, joined.next_offset) == (10, run[-1].next_offset)
    assert joined.max_timestamp_us == run[-1].max_timestamp_us
    assert (joined.origin, joined.log_epoch) == (Origin.CURSUS, 4)


@settings(max_examples=100, deadline=None)
@given(st.lists(batches(3), min_size=2, max_size=4))
def test_batches_with_gaps_between_them_keep_every_record_and_its_offset(
    found: list[RecordBatch],
) -> None:
    offset = 10
    for batch in found:
        batch.origin = Origin.CURSUS
        batch.place(base_offset=offset, timestamp_us=100, log_epoch=4)
        offset = batch.next_offset + 5
    run = found[:1]
    for batch in found[1:]:
        if not are_alike(run[-1], batch):
            break
        run.append(batch)
    joined = join_scattered(run)
    assert list(joined.records()) == [record for batch in run for record in batch.records()]
    assert (joined.base_offset, joined.next_offset) == (10, run[-1].next_offset)


def test_one_batch_is_itself() -> None:
    batch = placed(0, b"a")
    assert join_batches([batch]) is batch
    assert join_scattered([batch]) is batch


def test_only_neighbours_of_one_origin_and_epoch_join() -> None:
    first = placed(0, b"a", b"b")
    assert can_join(first, placed(2, b"c"))
    assert not can_join(first, placed(3, b"c"))
    assert not can_join(first, placed(2, b"c", origin=2))
    assert not can_join(first, placed(2, b"c", log_epoch=1))


def test_equal_sizes_stay_known() -> None:
    def single(base: int, value: bytes) -> RecordBatch:
        batch = RecordBatch(1, VarColumn.single(value), origin=1)
        batch.place(base_offset=base, timestamp_us=1, log_epoch=0)
        return batch

    assert join_batches([single(0, b"aa"), single(1, b"bb")]).values.stride == 2
    assert join_batches([single(0, b"aa"), single(1, b"b")]).values.stride is None


def test_stamps_of_different_times_are_kept_by_record() -> None:
    joined = join_batches([placed(0, b"a", b"b", time=5), placed(2, b"c", time=9)])
    assert [joined.timestamp_at(index) for index in range(3)] == [5, 5, 9]
    assert join_batches([placed(0, b"a"), placed(1, b"b")]).timestamps is None


def test_a_reader_gets_small_neighbours_as_one_and_large_batches_as_they_are() -> None:
    small = [placed(n, b"v") for n in range(20)]
    large = placed(20, *[b"v"] * 100)
    few = [placed(n, b"v") for n in range(120, 123)]
    joined, kept, *rest = gather([*small, large, *few])
    assert (joined.base_offset, joined.count) == (0, 20)
    assert kept is large
    assert rest == few


def test_what_is_joined_for_a_reader_is_bounded() -> None:
    found = gather([placed(n, b"v") for n in range(3000)])
    assert [batch.count for batch in found] == [1024, 1024, 952]
    assert gather(found) == found
