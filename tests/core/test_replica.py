"""The in-sync rule: who counts, and how far readers may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.calls import CreateTopic
from dragoman.core.clock import Now
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from dragoman.core.replica import Replicas
from support.log import Log

if TYPE_CHECKING:
    from dragoman.core.partition import Partition

SECOND = 1_000_000


class Bench:
    """One partition with its replicas, its ends moved by hand."""

    def __init__(self, **options: int) -> None:
        log = Log()
        log.ask(CreateTopic("t", 1))
        (topic,) = log.engine._directory.topics.values()
        self.partition: Partition = topic.partitions[0]
        self.store = MemoryStore()
        self.replicas = Replicas(EngineOptions(**options), self.store)
        self.mono_us = 0

    def now(self) -> Now:
        return Now(0, self.mono_us)

    def append(self, count: int, *, durable: bool = True) -> None:
        self.partition.state.next_offset += count
        if durable:
            self.flush()

    def flush(self) -> None:
        end = self.partition.state.next_offset
        self.store.visible[self.partition.topic_id, 0] = end
        self.replicas.durable(self.partition, end, self.now())

    def report(self, number: int, next_offset: int) -> None:
        self.replicas.report(self.partition, number, next_offset, self.now())
        self.replicas.advance(self.partition)

    def pass_time(self, microseconds: int) -> None:
        self.mono_us += microseconds
        for partition in self.replicas.take_stale(self.now()):
            self.replicas.advance(partition)

    @property
    def seen(self) -> int:
        return self.partition.high_watermark


@pytest.mark.parametrize(
    ("end", "reported", "lag_max", "in_sync", "high_watermark"),
    [
        (5, {}, 0, (0,), 5),
        (5, {1: 5}, 0, (0, 1), 5),
        (5, {1: 4}, 0, (0,), 5),
        (5, {1: 4}, 1, (0, 1), 4),
        (5, {1: 3}, 1, (0,), 5),
        (5, {1: 4, 2: 3}, 2, (0, 1, 2), 3),
        (5, {1: 4, 2: 2}, 2, (0, 1), 4),
        (5, {2: 5, 1: 5}, 0, (0, 1, 2), 5),
        (5, {1: 99}, 0, (0, 1), 5),
        (0, {1: 0}, 0, (0, 1), 0),
        (5, {1: -7}, 4, (0,), 5),
        (5, {1: -7}, 5, (0, 1), 0),
    ],
)
def test_the_watermark_is_the_least_that_a_replica_in_sync_has(
    end: int,
    reported: dict[int, int],
    lag_max: int,
    in_sync: tuple[int, ...],
    high_watermark: int,
) -> None:
    bench = Bench(replica_lag_max=lag_max)
    bench.append(end, durable=False)
    for number, next_offset in reported.items():
        bench.replicas.report(bench.partition, number, next_offset, bench.now())
    bench.flush()
    assert bench.replicas.in_sync(bench.partition) == in_sync
    assert bench.seen == high_watermark


def test_a_replica_has_no_more_than_the_log_had_when_it_reported() -> None:
    bench = Bench(replica_lag_max=10)
    bench.append(5)
    bench.report(1, 99)
    bench.append(3)
    assert bench.seen == 5


def test_a_replicas_progress_never_falls() -> None:
    bench = Bench(replica_lag_max=1)
    bench.append(5)
    bench.report(1, 5)
    bench.report(1, 2)
    assert bench.replicas.in_sync(bench.partition) == (0, 1)


def test_a_replica_that_lags_too_much_leaves_and_holds_nobody_back() -> None:
    bench = Bench(replica_lag_max=2)
    bench.append(5)
    bench.report(1, 5)
    bench.append(2)
    assert bench.seen == 5
    bench.append(1)
    assert bench.seen == 8


def test_a_silent_replica_holds_readers_back_for_as_long_as_it_may_be_silent() -> None:
    bench = Bench(replica_lag_max=9, replica_lag_timeout_us=10 * SECOND)
    bench.append(1)
    bench.report(1, 1)
    bench.append(1)
    bench.pass_time(10 * SECOND - 1)
    assert bench.seen == 1
    bench.pass_time(1)
    assert bench.seen == 2
    assert bench.replicas.in_sync(bench.partition) == (0,)


def test_a_replica_that_goes_on_reporting_stays() -> None:
    bench = Bench(replica_lag_max=9)
    bench.append(1)
    for _ in range(5):
        bench.report(1, 1)
        bench.pass_time(6 * SECOND)
        assert bench.replicas.in_sync(bench.partition) == (0, 1)


def test_of_two_replicas_the_one_that_falls_silent_leaves_first() -> None:
    bench = Bench(replica_lag_max=9)
    bench.append(4)
    bench.report(1, 2)
    bench.pass_time(6 * SECOND)
    bench.append(2)
    bench.report(2, 5)
    bench.pass_time(4 * SECOND)
    assert bench.replicas.in_sync(bench.partition) == (0, 2)
    assert bench.seen == 5
    bench.pass_time(6 * SECOND)
    assert bench.seen == 6


def test_time_costs_nothing_where_nobody_reported() -> None:
    bench = Bench()
    bench.append(3)
    assert bench.replicas.take_stale(Now(0, 1 << 60)) == []


def test_a_partition_that_went_is_never_stale() -> None:
    bench = Bench()
    bench.append(1)
    bench.report(1, 1)
    bench.replicas.forget(bench.partition)
    assert bench.replicas.take_stale(Now(0, 1 << 60)) == []


@pytest.mark.parametrize(("in_sync_min", "expected"), [(1, False), (2, False), (3, True)])
def test_too_few_in_sync_is_under_replicated(in_sync_min: int, expected: bool) -> None:
    bench = Bench(in_sync_min=in_sync_min)
    bench.append(1)
    bench.report(1, 1)
    assert bench.replicas.is_under_replicated(bench.partition) is expected


def test_readers_beside_the_engine_see_what_its_own_readers_see() -> None:
    bench = Bench(replica_lag_max=5)
    place = (bench.partition.topic_id, 0)
    bench.append(2)
    bench.report(1, 2)
    bench.append(2)
    assert bench.store.visible[place] == 2
    bench.report(1, 3)
    assert bench.store.visible[place] == 3
    bench.pass_time(20 * SECOND)
    assert bench.store.visible[place] == 4


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("flush"), st.just(0), st.just(True)),
    st.tuples(st.just("report"), st.integers(1, 2), st.integers(-2, 40)),
    st.tuples(st.just("wait"), st.integers(0, 12 * SECOND), st.just(True)),
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 6), st.lists(STEPS, max_size=30))
def test_the_watermark_never_falls_and_never_passes_what_is_durable(
    lag_max: int, steps: list[tuple[str, int, int]]
) -> None:
    bench = Bench(replica_lag_max=lag_max)
    durable = before = 0
    for what, first, second in steps:
        match what:
            case "append":
                bench.append(first, durable=bool(second))
                durable = bench.partition.state.next_offset if second else durable
            case "flush":
                bench.flush()
                durable = bench.partition.state.next_offset
            case "report":
                bench.report(first, second)
            case _:
                bench.pass_time(first)
        assert before <= bench.seen <= durable
        assert bench.store.visible.get((bench.partition.topic_id, 0), 0) == bench.seen
        before = bench.seen
    bench.pass_time(30 * SECOND)
    assert bench.seen == durable
