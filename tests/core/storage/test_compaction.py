"""One pass over segments: the files that it writes, in steps."""

from __future__ import annotations

import errno
from itertools import pairwise
from random import Random

import pytest

from dragoman.core.storage.compaction import CompactWork, DiscardWork, Pass, Unfit
from dragoman.core.storage.segment import build_index, load_index
from dragoman.simulation.disk import SimDisk
from support.keyed import Keyed

NUMBER = 9


def sources(disk: SimDisk, **options: int) -> Keyed:
    keyed = Keyed(disk, **options)
    keyed.driven.topic()
    random = Random(3)
    for _ in range(80):
        keyed.put_random(random)
        keyed.driven.settle()
    return keyed


def pass_over(keyed: Keyed, **changes: int) -> Pass:
    log = keyed.store._logs[1, 0]
    fields = {"dirty_at": 0, "segment_bytes": 4096, "keys_max": 1000, "tombstones_before_us": 0}
    assert keyed.driven.disk is not None
    return Pass(keyed.driven.disk, log, log.segments[:-1], number=NUMBER, **{**fields, **changes})


def finish(running: Pass) -> int:
    steps = 0
    while running.step() >= 0:
        steps += 1
    return steps


def test_a_pass_goes_by_the_batch_and_costs_at_least_4_kib_each() -> None:
    keyed = sources(SimDisk())
    running = pass_over(keyed)
    first = running.step()
    assert first >= 4096
    assert finish(running) > 100
    assert running.made
    assert running.dropped > 100


def test_new_segments_take_up_the_whole_range_under_new_names_with_indexes() -> None:
    disk = SimDisk()
    keyed = sources(disk)
    running = pass_over(keyed, segment_bytes=2048)
    finish(running)
    assert len(running.made) > 1
    assert [segment.path for segment in running.made] == running.paths
    for before, after in pairwise(running.made):
        assert before.next_offset == after.base
    assert running.made[-1].next_offset == running.sources[-1].next_offset
    for segment in running.made:
        assert segment.path.endswith(f"{segment.base:020d}-{NUMBER}.log")
        assert segment.sealed
        assert segment.is_clean
        loaded = load_index(disk, segment, 1, 0)
        assert loaded is not None
        assert segment.index is not None
        data = bytes(disk.file(segment.path))
        assert len(data) == segment.size

        def read(length: int, position: int, data: bytes = data) -> bytes:
            return data[position : position + length]

        built = build_index(read, segment.base, segment.size, 1, 0)
        assert loaded.bases == segment.index.bases == built.bases
        assert loaded.positions == built.positions


def test_where_the_map_is_full_the_file_ends_and_what_follows_is_not_clean() -> None:
    keyed = sources(SimDisk())
    running = pass_over(keyed, keys_max=3)
    finish(running)
    assert [segment.is_clean for segment in running.made] == [True, False]
    assert len(running.sources) == 1


def test_what_is_written_is_synced_before_it_is_given_out() -> None:
    disk = SimDisk()
    keyed = sources(disk)
    running = pass_over(keyed)
    finish(running)
    left = disk.crashed(Random(1))
    for segment in running.made:
        assert left.file(segment.path) == disk.file(segment.path)


def test_a_damaged_a_shortened_and_a_missing_segment_are_unfit() -> None:
    for harm in ("damage", "shorten", "remove"):
        disk = SimDisk()
        keyed = sources(disk)
        running = pass_over(keyed)
        path = running.sources[1].path
        if harm == "damage":
            disk.damage(path, lambda data: data.__setitem__(90, data[90] ^ 1))
        elif harm == "shorten":
            disk.damage(path, lambda data: data.__delitem__(slice(400, None)))
        else:
            disk.unlink(path)
        with pytest.raises(Unfit) as unfit:
            finish(running)
        assert unfit.value.segment is running.sources[1]
        running.close()


def test_a_work_takes_as_many_steps_as_its_budget_allows() -> None:
    keyed = sources(SimDisk())
    running = pass_over(keyed)
    works = 0
    while True:
        work = CompactWork(running, 40_960)
        work.run()
        works += 1
        if work.is_done:
            break
        assert 40_960 <= work.cost < 60_000
    assert works > 10


def test_closed_in_its_midst_a_pass_holds_no_descriptor_and_its_files_can_go() -> None:
    disk = SimDisk()
    keyed = sources(disk)
    opened = len(disk._open)
    running = pass_over(keyed)
    while not running.paths:
        running.step()
    assert len(disk._open) > opened
    DiscardWork(disk, running, running.paths, "data/topics/1").run()
    assert len(disk._open) == opened
    assert running.step() == -1
    names = disk.list(running.log.directory)
    assert not [name for name in names if f"-{NUMBER}." in name]


def test_a_full_disk_is_told_and_leaves_a_pass_that_can_be_closed() -> None:
    disk = SimDisk()
    keyed = sources(disk)
    running = pass_over(keyed)
    disk.bytes_max = disk.used
    with pytest.raises(OSError, match=f"Errno {errno.ENOSPC}"):
        finish(running)
    running.close()
