"""Follow: records pushed as they become visible, positions kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DeleteTopic,
    FetchOffset,
    Follow,
    Produce,
    RemovePartitions,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from support.log import WALL_US, Log, batch, values

if TYPE_CHECKING:
    from dragoman.core.outcome import Outcome


@pytest.fixture(params=[False, True], ids=["hot", "cold"])
def log(request: pytest.FixtureRequest) -> Log:
    """A log with records a b | c in partition 0; once with reads that block."""
    made = Log(MemoryStore(blocking_reads=request.param))
    made.put("t", b"a", b"b")
    made.pass_time(1)
    made.put("t", b"c")
    made.ready.clear()
    return made


def pulled(log: Log, outcome: Outcome) -> list[Any]:
    """Everything that pulling gives, cold reads done on the way."""
    out: list[Any] = []
    while True:
        push = log.engine.pull(outcome, log.now)
        if isinstance(push, Failure):
            return [*out, push.code]
        if push is not None:
            out += values(push.slices)
        elif not log.work():
            return out


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [b"a", b"b", b"c"]),
        ({"offset": 1}, [b"b", b"c"]),
        ({"whence": Whence.EARLIEST}, [b"a", b"b", b"c"]),
        ({"whence": Whence.LATEST}, []),
        ({"whence": Whence.LAST, "offset": 1}, [b"c"]),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 1}, [b"c"]),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 99_000_000}, []),
        ({"whence": Whence.COMMITTED, "group": "g"}, [b"c"]),
        ({"whence": Whence.MAX_COMMITTED, "group": "g", "offset": 3}, []),
    ],
)
def test_a_follow_begins_where_whence_says(
    log: Log, fields: dict[str, Any], expected: list[bytes]
) -> None:
    log.ask(CommitOffset("t", "g", ((0, 2),)))
    outcome = log.hand(Follow("t", 0, **fields))
    assert outcome.follows
    assert not outcome.ready
    assert pulled(log, outcome) == expected


def test_a_follow_is_announced_at_once_where_there_is_something(log: Log) -> None:
    assert log.hand(Follow("t", 0)) in log.ready
    assert log.hand(Follow("t", 0, whence=Whence.LATEST)) not in log.ready


def test_a_follow_is_announced_when_records_are_durable_not_before(log: Log) -> None:
    outcome = log.hand(Follow("t", 0, whence=Whence.LATEST))
    log.hand(Produce("t", batch(b"d"), 0))
    assert pulled(log, outcome) == []
    assert log.ready == []
    log.flush()
    assert outcome in log.ready
    assert pulled(log, outcome) == [b"d"]


def test_a_follow_is_announced_again_only_after_an_empty_pull(log: Log) -> None:
    outcome = log.hand(Follow("t", 0))
    log.put("t", b"d")
    log.put("t", b"e")
    assert log.ready.count(outcome) == 1
    assert pulled(log, outcome) == [b"a", b"b", b"c", b"d", b"e"]
    log.ready.clear()
    log.put("t", b"f")
    assert log.ready.count(outcome) == 1


def test_a_push_keeps_to_its_limits(log: Log) -> None:
    outcome = log.hand(Follow("t", 0, records_max=1))
    push = log.engine.pull(outcome, log.now)
    if push is None:
        log.work()
        push = log.engine.pull(outcome, log.now)
    assert not isinstance(push, Failure | None)
    assert values(push.slices) == [b"a"]
    assert (push.start_offset, push.next_offset, push.high_watermark) == (0, 1, 3)


def test_every_record_is_pushed_once_whatever_the_limits(log: Log) -> None:
    for limit in (1, 2, 3, 100):
        outcome = log.hand(Follow("t", 0, records_max=limit, bytes_max=2))
        assert pulled(log, outcome) == [b"a", b"b", b"c"]


def test_what_was_pushed_an_interval_ago_is_committed(log: Log) -> None:
    outcome = log.hand(Follow("t", 0, group="g", commit_us=5_000_000))
    log.pass_time(5)
    assert log.engine.take_flush() is None
    pulled(log, outcome)
    log.pass_time(5)
    assert log.ask(FetchOffset("t", "g", 0)).offset is None
    log.pass_time(5)
    assert log.ask(FetchOffset("t", "g", 0)).offset == 3
    log.pass_time(5)
    assert log.engine.take_flush() is None


def test_a_follow_leaves_committing_to_a_group_that_commits_by_itself(log: Log) -> None:
    outcome = log.hand(Follow("t", 0, group="g", commit_us=5_000_000))
    pulled(log, outcome)
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    log.pass_time(30)
    assert log.ask(FetchOffset("t", "g", 0)).offset == 1


@pytest.mark.parametrize("way", ["cancel", "disconnect"])
def test_what_was_pushed_last_is_not_committed_at_the_end(log: Log, way: str) -> None:
    outcome = log.hand(Follow("t", 0, group="g", commit_us=5_000_000))
    pulled(log, outcome)
    if way == "cancel":
        log.engine.cancel(outcome, log.now)
    else:
        log.engine.disconnected(log.client, log.now)
    log.pass_time(20)
    assert log.ask(FetchOffset("t", "g", 0)).offset is None
    assert log.engine.statistics()["followers"] == 0
    assert log.engine.pull(outcome, log.now) is None


def test_without_an_interval_nothing_is_committed(log: Log) -> None:
    outcome = log.hand(Follow("t", 0, group="g"))
    pulled(log, outcome)
    log.engine.cancel(outcome, log.now)
    assert log.ask(FetchOffset("t", "g", 0)).offset is None


def test_a_cold_read_that_ends_after_a_cancel_is_dropped() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a")
    outcome = log.hand(Follow("t", 0))
    assert log.engine.pull(outcome, log.now) is None
    log.engine.cancel(outcome, log.now)
    log.ready.clear()
    log.work()
    assert log.ready == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [(DeleteTopic("t"), ErrorCode.UNKNOWN_TOPIC), (RemovePartitions("t", 3), None)],
)
def test_a_follow_ends_when_its_partition_goes(
    log: Log, request_: DeleteTopic | RemovePartitions, code: ErrorCode | None
) -> None:
    outcome = log.hand(Follow("t", 0, whence=Whence.LATEST))
    log.hand(request_)
    assert log.engine.pull(outcome, log.now) is None
    assert outcome not in log.ready
    log.flush()
    assert outcome in log.ready
    assert pulled(log, outcome) == [code or ErrorCode.UNKNOWN_PARTITION]
    assert pulled(log, outcome) == []


def test_a_follow_that_meets_damage_ends_with_it(log: Log) -> None:
    log.store.damaged[1, 0] = [(2, 2)]
    outcome = log.hand(Follow("t", 0))
    assert pulled(log, outcome) == [b"a", b"b", ErrorCode.DAMAGED]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Follow("missing", 0), ErrorCode.UNKNOWN_TOPIC),
        (Follow("t", 9), ErrorCode.UNKNOWN_PARTITION),
        (Follow("t", 0, -1), ErrorCode.INVALID_OFFSET),
        (Follow("t", 0, group="\0", commit_us=1), ErrorCode.INVALID_NAME),
    ],
)
def test_what_cannot_be_followed_is_refused(log: Log, request_: Follow, code: ErrorCode) -> None:
    assert log.code(request_) is code


def test_a_thousand_followers_cost_no_queue() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    outcomes = [log.hand(Follow("t", 0)) for _ in range(1000)]
    log.ready.clear()
    log.put("t", b"a")
    assert [outcome for outcome in log.ready if outcome.follows] == outcomes
