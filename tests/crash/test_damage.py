"""Damage of every kind to every file: named, never silent, and never more than it is.

`CRASH_FLIPS` sets how many bits of an 8 KiB segment are flipped (65,536 are all of them),
`CRASH_LARGE_FLIPS` how many of a segment of 1 MiB, and `CRASH_TORN_SIZES` how many sizes of
segments are torn at every byte.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from dragoman.core.storage.group import aligned
from support.effort import effort
from support.harm import (
    HARMS,
    JOURNAL,
    OPTIONS,
    SEGMENT_BYTES,
    cut_segments,
    flipped_catalogs,
    flipped_journals,
    flipped_segments,
    groups_of,
    journalled,
    sampled_flips,
    torn_journals,
    torn_segments,
)
from support.spread import spread
from support.store import Driven, read_all
from support.verdict import rule

FLIPS = effort("CRASH_FLIPS", 8 * SEGMENT_BYTES)
LARGE_FLIPS = effort("CRASH_LARGE_FLIPS", 2000)
TORN_SIZES = effort("CRASH_TORN_SIZES", 1)
SAMPLES = effort("CRASH_FLIP_SAMPLES", 3000)
PARTS = os.cpu_count() or 1
PARTED = [(kind, part, PARTS) for kind in HARMS for part in range(PARTS)]


@pytest.mark.slow
def test_a_journal_torn_at_any_byte_keeps_exactly_the_groups_before_it() -> None:
    with rule("D3", "journal torn at each byte of its last 3 groups, five ways") as row:
        row.cases = sum(spread(torn_journals, PARTED))


@pytest.mark.slow
@pytest.mark.timeout(300 * TORN_SIZES**2)
def test_a_segment_torn_at_any_byte_is_made_whole_from_the_journal() -> None:
    with rule("D3", "segment torn at each byte of its last 3 batches, journal whole") as row:
        scales = [2**power for power in range(TORN_SIZES)]
        row.cases = sum(spread(torn_segments, [(*p, scale) for scale in scales for p in PARTED]))


@pytest.mark.slow
def test_a_segment_torn_where_nothing_else_holds_it_is_named_offset_by_offset() -> None:
    with rule("D3", "the same after a checkpoint: named, never cut") as row:
        row.cases = sum(spread(cut_segments, PARTED))


def test_the_padding_of_a_group_means_nothing() -> None:
    base, values = journalled()
    last = groups_of(base)[-1]
    data = base.file(JOURNAL)
    for at in range(last.position + last.length, last.position + aligned(last.length)):
        data[at] = 0xFF
    assert read_all(Driven(base, **OPTIONS).store) == values


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_flipped_bit_of_a_segment_is_named() -> None:
    bits = min(FLIPS, 8 * SEGMENT_BYTES)
    size = -(-bits // (4 * PARTS))
    tasks = [(range(first, min(first + size, bits)),) for first in range(0, bits, size)]
    with rule("D4", "bits of an 8 KiB segment flipped one by one, by check and reader") as row:
        for cases, silent in spread(flipped_segments, tasks):
            row.cases += cases
            row.silent += silent
        assert row.cases == bits


@pytest.mark.slow
@pytest.mark.timeout(120 + LARGE_FLIPS // 100)
def test_flipped_bits_of_a_large_segment_are_named() -> None:
    scale = 128
    bits = list(sampled_flips(Random(8), SEGMENT_BYTES * scale, LARGE_FLIPS))
    tasks = [(bits[at : at + 1000], scale) for at in range(0, len(bits), 1000)]
    with rule("D4", "bits of a 1 MiB segment, sampled") as row:
        for cases, silent in spread(flipped_segments, tasks):
            row.cases += cases
            row.silent += silent


@pytest.mark.slow
def test_flipped_bits_of_a_journal_are_named_but_in_its_last_group() -> None:
    with rule("D4", "bits of the journal") as row:
        row.cases, row.silent = flipped_journals(Random(4), SAMPLES)


@pytest.mark.slow
def test_flipped_bits_of_a_catalog_are_named_and_the_one_before_takes_over() -> None:
    with rule("D4", "bits of the newest catalog") as row:
        row.cases, row.silent = flipped_catalogs(Random(4), SAMPLES)
