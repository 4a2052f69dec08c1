"""Follows of what a group's member is assigned: fair, and without gap or repeat when it changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.calls import (
    ASSIGNED,
    AddPartitions,
    CommitOffset,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
    Fetch,
    FetchOffset,
    Follow,
    Followed,
    JoinGroup,
    LeaveGroup,
    RemovePartitions,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client, Outcome
from support.log import Log, values


class Subscriber:
    """One connection that subscribed; pulls whenever it is told to.

    Args:
        joined: Is a member already.
    """

    def __init__(
        self,
        log: Log,
        number: int,
        joined: Client | None = None,
        *,
        group: str = "g",
        topic: str = "t",
    ) -> None:
        self.log = log
        self.client = joined or Client(number, "test")
        self.member = f"m-{number}"
        self.got: list[bytes | None] = []
        self.failure: ErrorCode | None = None
        self.partitions: list[int] = []
        if joined is None:
            log.ask(JoinGroup(topic, group, self.member, bound=True), self.client)
        self.outcome: Outcome = self.follow(group, topic)

    def follow(self, group: str = "g", topic: str = "t", **fields: Any) -> Outcome:
        """Asks for the pushes."""
        fields = {"whence": Whence.LATEST, "records_max": 2, **fields}
        outcome = self.log.hand(Follow(topic, ASSIGNED, group=group, **fields), self.client)
        assert outcome.follows, outcome.reply
        return outcome

    def pull(self) -> list[bytes | None]:
        """Everything that is there; cold reads are done on the way."""
        got: list[bytes | None] = []
        while self.failure is None:
            push = self.log.engine.pull(self.outcome, self.log.now)
            if isinstance(push, Failure):
                self.failure = push.code
            elif push is not None:
                self.partitions.append(push.partition)
                got += values(push.slices)
            elif not self.log.work():
                break
        self.got += got
        return got

    def leave(self) -> None:
        """Its connection ends."""
        self.log.engine.disconnected(self.client, self.log.now)
        self.log.flush()


@pytest.fixture(params=[False, True], ids=["hot", "cold"])
def log(request: pytest.FixtureRequest) -> Log:
    """Topic t with 3 partitions and a record in each; once with reads that block."""
    made = Log(MemoryStore(blocking_reads=request.param))
    made.ask(CreateTopic("t", 3))
    for partition in range(3):
        made.put("t", b"old", partition=partition)
    return made


def put(log: Log, *written: bytes) -> None:
    """One record to a partition each, which its last digit names."""
    for value in written:
        log.put("t", value, partition=int(value[-1:]))


def test_what_comes_after_the_subscription_is_pushed(log: Log) -> None:
    one = Subscriber(log, 1)
    assert one.pull() == []
    put(log, b"a0", b"a1", b"a2", b"b0")
    assert one.outcome in log.ready
    assert sorted(one.pull()) == [b"a0", b"a1", b"a2", b"b0"]
    assert log.ask(FetchOffset("t", "g", 0)).offset is None


def test_it_is_announced_again_only_after_an_empty_pull(log: Log) -> None:
    one = Subscriber(log, 1)
    log.ready.clear()
    put(log, b"a0", b"a1")
    assert log.ready.count(one.outcome) == 1
    one.pull()
    log.ready.clear()
    put(log, b"a2")
    assert log.ready.count(one.outcome) == 1


def test_partitions_take_turns(log: Log) -> None:
    one = Subscriber(log, 1)
    for _ in range(3):
        put(log, b"a0", b"b0", b"a1", b"b1", b"a2", b"b2")
    one.pull()
    assert sorted(one.partitions[:3]) == sorted(one.partitions[3:6]) == [0, 1, 2]


def test_two_subscribers_share_and_miss_and_repeat_nothing(log: Log) -> None:
    one = Subscriber(log, 1)
    put(log, b"a0", b"a1", b"a2")
    assert len(one.pull()) == 3
    put(log, b"b0", b"b1", b"b2")
    two = Subscriber(log, 2)
    put(log, b"c0", b"c1", b"c2")
    assert sorted(one.pull()) == [b"b0", b"b2", b"c0", b"c2"]
    assert two.pull() == [b"b1", b"c1"]
    one.leave()
    put(log, b"d0", b"d1", b"d2")
    assert sorted(two.pull()) == [b"d0", b"d1", b"d2"]


def test_what_was_not_pushed_when_a_subscriber_left_is_pushed_to_the_other(log: Log) -> None:
    one, two = Subscriber(log, 1), Subscriber(log, 2)
    put(log, b"a0", b"b0", b"c0", b"a1")
    push = log.engine.pull(one.outcome, log.now)
    if push is None:
        log.work()
        push = log.engine.pull(one.outcome, log.now)
    assert not isinstance(push, Failure | None)
    assert values(push.slices) == [b"a0", b"b0"]
    one.leave()
    assert sorted(two.pull()) == [b"a1", b"c0"]


def test_nothing_is_pushed_before_the_membership_is_durable(log: Log) -> None:
    client = Client(1, "test")
    log.hand(JoinGroup("t", "g", "m", bound=True), client)
    outcome = log.hand(Follow("t", ASSIGNED, group="g", whence=Whence.EARLIEST), client)
    assert log.engine.pull(outcome, log.now) is None
    log.ready.clear()
    log.flush()
    assert outcome in log.ready
    pushed = log.engine.pull(outcome, log.now)
    if pushed is None:
        log.work()
        pushed = log.engine.pull(outcome, log.now)
    assert isinstance(pushed, Followed)


def test_a_member_that_never_became_durable_is_pushed_nothing(log: Log) -> None:
    client = Client(1, "test")
    log.hand(JoinGroup("t", "g", "m", bound=True), client)
    outcome = log.hand(Follow("t", ASSIGNED, group="g", whence=Whence.EARLIEST), client)
    log.ready.clear()
    log.flush(OSError(5, "broken"))
    assert outcome in log.ready
    refused = log.engine.pull(outcome, log.now)
    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.STORAGE_FAILED
    assert log.engine.pull(outcome, log.now) is None


def test_what_was_pushed_is_not_committed_whoever_comes_and_goes(log: Log) -> None:
    one, two = Subscriber(log, 1), Subscriber(log, 2)
    put(log, b"a0", b"a1", b"a2")
    one.pull()
    two.pull()
    one.leave()
    two.pull()
    two.leave()
    assert [log.ask(FetchOffset("t", "g", number)).offset for number in range(3)] == [None] * 3


def test_who_has_subscribed_for_longer_goes_on_where_a_newer_one_was(log: Log) -> None:
    log.ask(AddPartitions("t", 1))
    one, two = Subscriber(log, 1), Subscriber(log, 2)
    put(log, b"a1")
    first = Subscriber(log, 0)
    put(log, b"b0", b"b1", b"b2", b"b3")
    assert [sorted(each.pull()) for each in (first, one, two)] == [
        [b"b0", b"b3"],
        [b"a1", b"b1"],
        [b"b2"],
    ]


def test_what_comes_before_a_member_asks_for_its_share_is_not_missed(log: Log) -> None:
    late = Client(2, "test")
    log.ask(JoinGroup("t", "g", "late", bound=True), late)
    one = Subscriber(log, 1)
    put(log, b"a0", b"a1", b"a2")
    log.ask(AddPartitions("t", 3))
    put(log, b"a3", b"a4", b"a5")
    two = Subscriber(log, 2, late)
    put(log, b"b0", b"b1", b"b2", b"b3", b"b4", b"b5")
    got = one.pull() + two.pull()
    assert sorted(got) == sorted(b"%c%d" % (c, n) for c in b"ab" for n in range(6))


def test_without_subscribers_the_group_forgets_where_they_were(log: Log) -> None:
    one = Subscriber(log, 1)
    one.leave()
    put(log, b"a0")
    two = Subscriber(log, 2)
    put(log, b"b0")
    assert two.pull() == [b"b0"]


def test_a_member_of_another_kind_has_its_share_and_its_commits_count(log: Log) -> None:
    one = Subscriber(log, 1)
    put(log, b"a0", b"a1")
    one.pull()
    v1 = log.ask(JoinGroup("t", "g", "z"))
    assert v1.partitions == (1,)
    put(log, b"b0", b"b1", b"c1")
    assert one.pull() == [b"b0"]
    log.ask(CommitOffset("t", "g", ((1, 3),), member="z", generation=v1.generation))
    log.ask(LeaveGroup("t", "g", "z"))
    assert one.pull() == [b"c1"]


def test_new_partitions_are_pushed_from_their_first_record(log: Log) -> None:
    one = Subscriber(log, 1)
    log.ask(AddPartitions("t", 1))
    put(log, b"a3", b"a0")
    assert sorted(one.pull()) == [b"a0", b"a3"]


def test_removed_partitions_are_left_without_a_word(log: Log) -> None:
    one = Subscriber(log, 1)
    put(log, b"a2")
    log.ask(RemovePartitions("t", 1))
    put(log, b"a0")
    assert one.pull() == [b"a0"]
    assert one.failure is None
    log.ask(AddPartitions("t", 1))
    put(log, b"b2")
    assert one.pull() == [b"b2"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (DeleteTopic("t"), ErrorCode.UNKNOWN_TOPIC),
        (DeleteGroup("t", "g"), ErrorCode.UNKNOWN_GROUP),
        (LeaveGroup("t", "g", "m-1"), ErrorCode.UNKNOWN_MEMBER),
    ],
    ids=["topic", "group", "member"],
)
def test_what_ends_a_subscription_is_told_once_it_is_durable(
    log: Log, request_: Any, code: ErrorCode
) -> None:
    one = Subscriber(log, 1)
    one.pull()
    log.ready.clear()
    log.hand(request_)
    assert one.pull() == []
    assert one.failure is None
    log.flush()
    assert one.outcome in log.ready
    one.pull()
    assert one.failure is code
    assert log.engine.pull(one.outcome, log.now) is None
    assert log.engine.statistics()["followers"] == 0


def test_a_stop_ends_every_subscription(log: Log) -> None:
    one, two = Subscriber(log, 1), Subscriber(log, 2, group="h")
    log.engine.begin_close(log.now)
    log.collect()
    for each in (one, two):
        assert each.outcome in log.ready
        each.pull()
        assert each.failure is ErrorCode.SHUTTING_DOWN
    assert log.engine.statistics()["followers"] == 0


def test_who_asks_again_goes_on_where_it_was(log: Log) -> None:
    one = Subscriber(log, 1)
    put(log, b"a0", b"a1")
    first = one.outcome
    one.outcome = one.follow()
    log.engine.cancel(first, log.now)
    assert log.engine.pull(first, log.now) is None
    assert sorted(one.pull()) == [b"a0", b"a1"]
    assert log.engine.statistics()["followers"] == 3


def test_a_cancelled_subscription_stops_and_leaves_its_place_to_the_others(log: Log) -> None:
    one, two = Subscriber(log, 1), Subscriber(log, 2)
    log.engine.cancel(one.outcome, log.now)
    put(log, b"a0", b"a1")
    assert one.pull() == []
    assert two.pull() == [b"a1"]
    one.leave()
    assert two.pull() == [b"a0"]


def test_a_member_without_partitions_waits_for_some(log: Log) -> None:
    several = [Subscriber(log, number) for number in range(1, 5)]
    put(log, b"a0", b"a1", b"a2")
    assert [each.pull() for each in several] == [[b"a0"], [b"a1"], [b"a2"], []]
    several[0].leave()
    put(log, b"b0", b"b1", b"b2")
    assert [each.pull() for each in several[1:]] == [[b"b0"], [b"b1"], [b"b2"]]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Follow("x", ASSIGNED, group="g"), ErrorCode.UNKNOWN_TOPIC),
        (Follow("t", ASSIGNED, group="x"), ErrorCode.UNKNOWN_GROUP),
        (Follow("t", ASSIGNED, group="g"), ErrorCode.UNKNOWN_MEMBER),
        (Follow("t", ASSIGNED, -1, group="g"), ErrorCode.INVALID_OFFSET),
        (Follow("t", ASSIGNED), ErrorCode.UNKNOWN_PARTITION),
    ],
)
def test_who_is_no_member_is_refused(log: Log, request_: Follow, code: ErrorCode) -> None:
    Subscriber(log, 1)
    assert log.code(request_) is code


def test_damage_ends_the_whole_subscription() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.ask(CreateTopic("t", 3))
    one = Subscriber(log, 1)
    put(log, b"a0")
    assert log.engine.pull(one.outcome, log.now) is None
    log.work(OSError("broken"))
    assert one.outcome in log.ready
    one.pull()
    assert one.failure is ErrorCode.STORAGE_FAILED
    assert log.engine.statistics()["followers"] == 0


def test_a_follow_that_asks_to_be_told_ends_with_its_generation(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "m"))
    request = Follow("t", 0, group="g", member="m", generation=1)
    outcome = log.hand(request)
    push = log.engine.pull(outcome, log.now)
    if push is None:
        log.work()
        push = log.engine.pull(outcome, log.now)
    assert not isinstance(push, Failure | None)
    log.hand(JoinGroup("t", "g", "n"))
    assert log.engine.pull(outcome, log.now) is None
    log.flush()
    assert outcome in log.ready
    failure = log.engine.pull(outcome, log.now)
    assert isinstance(failure, Failure)
    assert failure.facts == {"current": 2, "requested": 1}
    assert log.code(request) is ErrorCode.STALE_GENERATION
    assert log.engine._groups.watchers == {}
    assert log.ask(Fetch("t", 0)).count == 1


def test_a_follow_that_asks_to_be_told_goes_on_while_its_group_rests(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "m"))
    outcome = log.hand(Follow("t", 0, group="g", member="m", generation=1, whence=Whence.LATEST))
    log.ask(JoinGroup("t", "h", "n"))
    put(log, b"a0")
    assert outcome in log.ready
    log.engine.cancel(outcome, log.now)
    assert log.engine._groups.watchers == {}


STEP = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "pull"]), st.integers(1, 4)),
    st.tuples(st.just("put"), st.integers(0, 2)),
    st.tuples(st.just("grow"), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=40), st.booleans())
def test_through_all_joins_and_leaves_every_record_comes_once(
    steps: list[tuple[str, int]], blocking: bool
) -> None:
    log = Log(MemoryStore(blocking_reads=blocking))
    log.ask(CreateTopic("t", 3))
    stays = Subscriber(log, 9)
    here: dict[int, Subscriber] = {}
    gone: list[Subscriber] = []
    written: list[bytes] = []
    for what, which in steps:
        if what == "join" and which not in here:
            here[which] = Subscriber(log, which)
        elif what == "leave" and which in here:
            here[which].leave()
            gone.append(here.pop(which))
        elif what == "pull" and which in here:
            here[which].pull()
        elif what == "put":
            written.append(b"%d" % len(written))
            log.put("t", written[-1], partition=which)
        elif what == "grow" and len(written) % 5 == 4:
            log.ask(AddPartitions("t", 1))
    for each in (stays, *here.values()):
        each.pull()
    everyone = [stays, *here.values(), *gone]
    assert sorted([value or b"" for each in everyone for value in each.got]) == sorted(written)
    for each in (stays, *here.values()):
        each.leave()
    assert log.engine._groups.watchers == {}
    assert log.engine._following._subscribing._circles == {}
