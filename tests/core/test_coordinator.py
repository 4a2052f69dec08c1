"""Members: joining, sharing, fencing, expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import (
    AddPartitions,
    CommitOffset,
    CreateGroup,
    CreateNamespace,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
    FetchOffset,
    GroupJoined,
    GroupLeft,
    Heartbeat,
    HeartbeatAccepted,
    IfExists,
    JoinGroup,
    LeaveGroup,
    RemovePartitions,
    SyncGroup,
)
from dragoman.core.error import ErrorCode
from dragoman.core.outcome import Client
from support.log import Log

if TYPE_CHECKING:
    from dragoman.core.calls import Request

TIMEOUT_US = 10_000_000


@pytest.fixture
def log() -> Log:
    """Member m of group g on topic t with 3 partitions."""
    made = Log()
    made.ask(CreateTopic("t", 3))
    made.ask(JoinGroup("t", "g", "m"))
    return made


def test_the_member_gets_every_partition_in_generation_1(log: Log) -> None:
    expected = GroupJoined("m", 1, (0, 1, 2))
    assert log.ask(JoinGroup("t", "g", "m")) == expected
    assert log.ask(SyncGroup("t", "g", "m", 1)) == expected
    assert log.ask(SyncGroup("t", "g", "m")) == expected
    assert log.ask(Heartbeat("t", "g", "m", 1)) == HeartbeatAccepted("m", 1)


def test_members_share_the_partitions_by_the_order_of_their_ids(log: Log) -> None:
    assert log.ask(JoinGroup("t", "g", "a")) == GroupJoined("a", 2, (0, 2))
    assert log.code(Heartbeat("t", "g", "m", 1)) is ErrorCode.STALE_GENERATION
    assert log.ask(SyncGroup("t", "g", "m", 2)) == GroupJoined("m", 2, (1,))


def test_a_change_of_the_partitions_is_a_new_generation(log: Log) -> None:
    log.ask(AddPartitions("t", 1))
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 2, (0, 1, 2, 3))
    log.ask(CreateTopic("t", 5, if_exists=IfExists.GROW))
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 3, (0, 1, 2, 3, 4))
    log.ask(RemovePartitions("t", 5))
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 4, ())


def test_a_group_can_form_before_its_topic_exists() -> None:
    log = Log()
    assert log.ask(JoinGroup("t", "g", "m", assume_partitions=2)).partitions == (0, 1)
    log.ask(CreateTopic("t", 3))
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 2, (0, 1, 2))


def test_a_topic_as_large_as_assumed_changes_nothing() -> None:
    log = Log()
    log.ask(JoinGroup("t", "g", "m", assume_partitions=2))
    log.ask(CreateTopic("t", 2))
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 1, (0, 1))


def test_groups_of_one_name_on_two_topics_are_two_groups(log: Log) -> None:
    log.ask(CreateTopic("u", 1))
    log.ask(JoinGroup("u", "g", "other"))
    assert log.ask(Heartbeat("t", "g", "m")).member == "m"
    assert log.ask(Heartbeat("u", "g", "other")).member == "other"


def test_topics_are_known_by_number_too(log: Log) -> None:
    assert log.ask(Heartbeat(1, "g", "m", namespace=4_294_967_295)).member == "m"
    assert log.ask(Heartbeat("t", "g", "m", namespace=4_294_967_295)).member == "m"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (JoinGroup("u", "g", "m"), ErrorCode.UNKNOWN_TOPIC),
        (JoinGroup("t", "g", "m", namespace="n"), ErrorCode.UNKNOWN_NAMESPACE),
        (JoinGroup("a b", "g", "m", assume_partitions=1), ErrorCode.INVALID_NAME),
        (JoinGroup("t", "", "m"), ErrorCode.INVALID_NAME),
        (JoinGroup("t", "g", ""), ErrorCode.UNKNOWN_MEMBER),
        (SyncGroup("t", "x", "m"), ErrorCode.UNKNOWN_GROUP),
        (SyncGroup("t", "g", "x"), ErrorCode.UNKNOWN_MEMBER),
        (SyncGroup("t", "g", "m", 2), ErrorCode.STALE_GENERATION),
        (Heartbeat("t", "x", "m"), ErrorCode.UNKNOWN_GROUP),
        (Heartbeat("t", "g", "x"), ErrorCode.UNKNOWN_MEMBER),
        (Heartbeat("t", "g", "x", 0), ErrorCode.STALE_GENERATION),
        (Heartbeat("u", "g", "m"), ErrorCode.GROUP_TOPIC_MISMATCH),
        (LeaveGroup("t", "x", "m"), ErrorCode.UNKNOWN_GROUP),
        (LeaveGroup("t", "g", "m", 2), ErrorCode.STALE_GENERATION),
        (CommitOffset("t", "x", ((0, 1),), member="m"), ErrorCode.UNKNOWN_GROUP),
        (CommitOffset("u", "g", ((0, 1),), member="m"), ErrorCode.GROUP_TOPIC_MISMATCH),
        (CommitOffset("t", "g", ((0, 1),), member="m", generation=9), ErrorCode.STALE_GENERATION),
        (CommitOffset("t", "g", ((0, 1),), member="x", generation=1), ErrorCode.UNKNOWN_MEMBER),
        (CommitOffset("t", "g", ((3, 1),), member="m"), ErrorCode.NOT_OWNER),
        (CommitOffset("t", "g", ((0, 1), (-1, 1)), member="m"), ErrorCode.NOT_OWNER),
    ],
)
def test_what_a_group_cannot_do_is_refused(log: Log, request_: Request, code: ErrorCode) -> None:
    assert log.code(request_) is code


def test_refusals_carry_what_a_dialect_prints(log: Log) -> None:
    assert log.refused(Heartbeat("t", "g", "m", 7)).facts == {"current": 1, "requested": 7}
    mismatch = log.refused(Heartbeat("u", "g", "m")).facts
    assert mismatch == {"group": "g", "expected": "t", "actual": "u"}
    request = CommitOffset("t", "g", ((5, 1),), member="m")
    assert log.refused(request).facts == {"partition": 5, "generation": 1}


def test_a_fenced_commit_of_the_owner_is_stored(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((2, 5),), member="m", generation=1))
    assert log.ask(FetchOffset("t", "g", 2)).offset == 5
    assert log.engine.statistics()["unfenced_commits"] == 0


def test_leaving_empties_the_group_and_says_whether_it_was_known(log: Log) -> None:
    assert log.ask(LeaveGroup("t", "g", "x")) == GroupLeft("x", False)
    assert log.ask(LeaveGroup("t", "g", "m", 1)) == GroupLeft("m", True)
    assert log.ask(LeaveGroup("t", "g", "m")) == GroupLeft("m", False)
    assert log.code(Heartbeat("t", "g", "m")) is ErrorCode.UNKNOWN_MEMBER
    assert log.ask(JoinGroup("t", "g", "m")).generation == 3


def test_a_silent_member_expires_after_its_timeout(log: Log) -> None:
    log.pass_time(10)
    assert log.ask(Heartbeat("t", "g", "m")).member == "m"
    log.pass_time(10)
    assert log.engine.statistics()["members"] == 1
    log.pass_time(1)
    assert log.engine.statistics()["members"] == 0
    assert log.engine.statistics()["members_expired"] == 1
    assert log.code(Heartbeat("t", "g", "m")) is ErrorCode.UNKNOWN_MEMBER


def test_expiry_is_seen_by_the_next_request_without_waiting_for_a_tick(log: Log) -> None:
    log.now = log.now._replace(mono_us=log.now.mono_us + TIMEOUT_US + 1)
    commit = CommitOffset("t", "g", ((0, 1),), member="m", generation=1)
    assert log.code(commit) is ErrorCode.STALE_GENERATION
    commit.generation = 2
    assert log.code(commit) is ErrorCode.UNKNOWN_MEMBER


@pytest.mark.parametrize("request_type", [JoinGroup, SyncGroup, Heartbeat])
def test_being_heard_of_keeps_a_member_alive(log: Log, request_type: type) -> None:
    for _ in range(3):
        log.pass_time(9)
        log.ask(request_type("t", "g", "m"))
    assert log.engine.statistics()["members"] == 1


def test_commits_do_not_keep_a_member_alive(log: Log) -> None:
    log.pass_time(9)
    log.ask(CommitOffset("t", "g", ((0, 1),), member="m"))
    log.pass_time(2)
    assert log.engine.statistics()["members"] == 0


def test_a_bound_member_lives_as_long_as_its_connection(log: Log) -> None:
    client = Client(2, "test")
    log.ask(JoinGroup("t", "h", "b", bound=True), client)
    log.pass_time(100)
    assert log.ask(Heartbeat("t", "h", "b")).member == "b"
    log.engine.disconnected(client, log.now)
    assert log.code(Heartbeat("t", "h", "b")) is ErrorCode.UNKNOWN_MEMBER


def test_connections_that_end_leave_nothing_behind(log: Log) -> None:
    first, second = Client(2, "test"), Client(3, "test")
    log.ask(JoinGroup("t", "h", "b", bound=True), first)
    log.ask(JoinGroup("t", "h", "c", bound=True), second)
    log.engine.disconnected(first, log.now)
    assert log.ask(SyncGroup("t", "h", "c")) == GroupJoined("c", 3, (0, 1, 2))
    log.engine.disconnected(second, log.now)
    assert log.engine._groups._bound == {}


def test_groups_and_members_are_limited() -> None:
    log = Log(groups_max=2, group_members_max=2)
    log.ask(CreateTopic("t", 1))
    for group in ("a", "b"):
        log.ask(JoinGroup("t", group, "m"))
    assert log.code(JoinGroup("t", "c", "m")) is ErrorCode.LIMIT_REACHED
    assert log.code(CreateGroup("t", "c")) is ErrorCode.LIMIT_REACHED
    log.ask(JoinGroup("t", "a", "n"))
    assert log.code(JoinGroup("t", "a", "o")) is ErrorCode.LIMIT_REACHED
    assert log.ask(JoinGroup("t", "a", "n")).generation == 2
    log.ask(DeleteGroup("t", "b"))
    log.ask(JoinGroup("t", "c", "m"))


def test_a_member_id_without_end_is_refused(log: Log) -> None:
    assert log.code(JoinGroup("t", "g", "m" * 1025)) is ErrorCode.INVALID_NAME


def test_groups_go_with_their_topic(log: Log) -> None:
    log.ask(DeleteTopic("t"))
    assert log.code(SyncGroup("t", "g", "m")) is ErrorCode.UNKNOWN_GROUP
    log.ask(CreateTopic("t", 1))
    assert log.ask(JoinGroup("t", "g", "m")) == GroupJoined("m", 1, (0,))


def test_groups_of_other_namespaces_are_apart(log: Log) -> None:
    log.ask(CreateNamespace("n"))
    log.ask(CreateTopic("t", 1, namespace="n"))
    assert log.code(Heartbeat("t", "g", "m", namespace="n")) is ErrorCode.UNKNOWN_GROUP
