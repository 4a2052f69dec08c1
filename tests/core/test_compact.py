"""Compaction over batches, against a plain model of what must stay."""

from __future__ import annotations

from array import array
from itertools import pairwise
from random import Random

import pytest

from dragoman.core.batch import RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.compact import Latest, Thinned, Thinning, is_due

Row = tuple[bytes | None, bytes | None]
"""Key and value."""


def batches_of(rows: list[Row], random: Random, base: int = 0) -> list[RecordBatch]:
    """The rows as batches of one to five records; offset n is stamped n microseconds."""
    found = []
    at = 0
    while at < len(rows):
        count = random.randint(1, 5)
        part = rows[at : at + count]
        batch = RecordBatch(
            len(part),
            VarColumn.of([value for _, value in part]),
            origin=1,
            keys=VarColumn.of([key for key, _ in part]),
        )
        batch.place(base_offset=base + at, timestamp_us=base + at, log_epoch=0)
        batch.timestamps = array("q", range(base + at, batch.next_offset))
        batch.max_timestamp_us = batch.next_offset - 1
        found.append(batch)
        at += len(part)
    return found


def compacted(
    batches: list[RecordBatch], *, dirty_from: int = 0, reach: int | None = None, before_us: int = 0
) -> list[Thinned]:
    """One pass over all of these batches."""
    end = batches[-1].next_offset
    reach = end if reach is None else reach
    latest = Latest()
    for batch in batches:
        if dirty_from <= batch.base_offset < reach:
            latest.note(batch)
    thinning = Thinning(latest, reach=reach, tombstones_before_us=before_us)
    found = [thinned for batch in batches if (thinned := thinning.add(batch, b"")) is not None]
    last = thinning.end(end)
    if last is not None:
        found.append(last)
    kept = sum([thinned.batch.count for thinned in found])
    assert thinning.dropped == sum([batch.count for batch in batches]) - kept
    return found


def left(found: list[Thinned]) -> dict[int, Row]:
    return {
        record.offset: (record.key, record.value)
        for thinned in found
        for record in thinned.batch.records()
    }


def expected(rows: list[Row], *, reach: int, before_us: int) -> dict[int, Row]:
    newest = {key: offset for offset, (key, _) in enumerate(rows[:reach])}
    return {
        offset: (key, value)
        for offset, (key, value) in enumerate(rows)
        if offset >= reach
        or key is None
        or (newest[key] == offset and (value is not None or offset >= before_us))
    }


def random_rows(random: Random, count: int) -> list[Row]:
    keys = [None, b"", b"a", b"b", b"c", b"long" * 20, b"long" * 21]
    return [
        (random.choice(keys), None if random.random() < 0.3 else b"%d" % number)
        for number in range(count)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_newest_of_each_key_stays_with_what_has_no_key(seed: int) -> None:
    random = Random(seed)
    rows = random_rows(random, random.randint(1, 60))
    batches = batches_of(rows, random)
    reach = random.choice([batch.next_offset for batch in batches])
    before_us = random.randint(0, len(rows))
    found = compacted(batches, reach=reach, before_us=before_us)
    wanted = expected(rows, reach=reach, before_us=before_us)
    if wanted:
        assert left(found) == wanted
    else:
        assert found == []


@pytest.mark.parametrize("seed", range(40))
def test_a_pass_that_notes_only_what_came_after_the_last_one_gives_the_same(seed: int) -> None:
    random = Random(seed)
    rows = random_rows(random, 40)
    batches = batches_of(rows, random)
    middle = batches[len(batches) // 2].next_offset
    first = [thinned.batch for thinned in compacted(batches, reach=middle)]
    clean = [batch for batch in first if batch.base_offset < middle]
    dirty = [batch for batch in batches if batch.base_offset >= middle]
    again = compacted(clean + dirty, dirty_from=middle, before_us=20)
    assert left(again) == expected(rows, reach=len(rows), before_us=20)


@pytest.mark.parametrize("seed", range(20))
def test_batches_touch_and_end_where_the_last_one_ended(seed: int) -> None:
    random = Random(seed)
    batches = batches_of(random_rows(random, 50), random)
    found = [thinned.batch for thinned in compacted(batches)]
    for before, after in pairwise(found):
        assert before.next_offset == after.base_offset
    assert found[-1].next_offset == batches[-1].next_offset


def test_a_batch_that_is_what_it_was_keeps_its_bytes_and_another_does_not() -> None:
    random = Random(1)
    rows: list[Row] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"b", b"4")]
    batches = batches_of(rows, random)
    assert [batch.base_offset for batch in batches] == [0, 2]
    found = compacted(batches)
    assert [thinned.raw for thinned in found] == [None, b""]


def test_the_newest_tombstone_that_stays_is_told() -> None:
    batches = batches_of([(b"a", None), (b"b", None), (b"a", b"1"), (b"c", b"2")], Random(3))
    assert max([thinned.tombstone_us for thinned in compacted(batches)]) == 1
    assert max([thinned.tombstone_us for thinned in compacted(batches, before_us=2)]) == 0


def test_keys_are_counted_and_forgotten_part_by_part() -> None:
    latest = Latest()
    for batch in batches_of([(b"%d" % n, b"") for n in range(500)], Random(0)):
        latest.note(batch)
    assert len(latest) == 500
    assert latest.of(b"7") == 7
    assert latest.of(b"none") == -1
    assert len(list(latest.forget())) == 64
    assert len(latest) == 0


@pytest.mark.parametrize(
    ("dirty", "clean", "tombstone", "due"),
    [
        (0, 0, 0, False),
        (1, 0, 0, True),
        (5, 5, 0, False),
        (6, 5, 0, True),
        (0, 5, 9, True),
        (0, 5, 10, False),
    ],
)
def test_a_pass_is_due_when_most_is_dirty_or_the_tombstones_grace_is_over(
    dirty: int, clean: int, tombstone: int, due: bool
) -> None:
    found = is_due(
        dirty_bytes=dirty, clean_bytes=clean, tombstone_us=tombstone, tombstones_before_us=10
    )
    assert found is due
