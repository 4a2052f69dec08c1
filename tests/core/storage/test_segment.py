"""A segment's index: a cache that finds, and never decides."""

from __future__ import annotations

from dragoman.core.storage.segment import (
    INDEX_STEP_BYTES,
    Mark,
    Segment,
    SparseIndex,
    load_index,
    segment_name,
)
from dragoman.simulation.disk import SimDisk


def index_of(count: int, length: int = 1000) -> SparseIndex:
    index = SparseIndex()
    for n in range(count):
        index.add(mark(n, length))
    return index


def mark(n: int, length: int = 1000) -> Mark:
    return Mark(10 * n, n * length, 100 * n, 10 * n + 10, length)


def test_an_index_has_one_entry_for_each_step_of_the_file() -> None:
    index = index_of(100)
    assert len(index.positions) == 20
    assert all(
        b - a >= INDEX_STEP_BYTES
        for a, b in zip(index.positions, index.positions[1:], strict=False)
    )


def test_an_offset_is_located_at_or_before_its_batch() -> None:
    index = index_of(100)
    for offset in range(1000):
        position, base = index.locate(offset)
        assert base <= offset
        assert offset // 10 * 1000 - position < INDEX_STEP_BYTES + 1000


def test_a_time_is_located_at_or_before_the_first_batch_that_has_it() -> None:
    index = index_of(100)
    for n in range(100):
        found = index.locate_time(100 * n)
        assert found is not None
        assert 0 <= n * 1000 - found[0] < INDEX_STEP_BYTES + 1000
    assert index.locate_time(9901) is None


def test_an_index_at_rest_is_taken_back_only_if_it_fits() -> None:
    index = index_of(50)
    data = index.to_bytes(77)
    back = SparseIndex.from_bytes(data, 77, 50_000)
    assert back is not None
    assert (back.bases, back.positions, back.times) == (index.bases, index.positions, index.times)
    assert SparseIndex.from_bytes(data, 78, 50_000) is None
    assert SparseIndex.from_bytes(data, 77, 49_000) is None
    assert SparseIndex.from_bytes(data[:-8], 77, 50_000) is None
    assert SparseIndex.from_bytes(b"", 77, 50_000) is None
    for byte in range(len(data)):
        flipped = data[:byte] + bytes([data[byte] ^ 1]) + data[byte + 1 :]
        assert SparseIndex.from_bytes(flipped, 77, 50_000) is None


def test_marks_that_arrive_while_an_index_is_made_are_not_lost() -> None:
    segment = Segment("x/0.log", 0, size=50_000, next_offset=500)
    segment.backlog = []
    segment.plan(1000, 510)
    segment.wrote(mark(50))
    segment.install(index_of(50))
    segment.install(SparseIndex())
    segment.wrote(mark(51))
    assert segment.index is not None
    assert segment.index.covered == 52_000
    assert segment.backlog is None
    assert (segment.size, segment.next_offset) == (52_000, 520)


def test_a_missing_index_is_no_error() -> None:
    assert load_index(SimDisk(), Segment("0.log", 0, size=8), 1, 0) is None


def test_file_names_sort_as_their_offsets() -> None:
    bases = [0, 9, 10, 999, 10**15]
    assert sorted(map(segment_name, bases)) == list(map(segment_name, bases))
