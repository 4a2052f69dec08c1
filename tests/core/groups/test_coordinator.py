"""Members: joining, sharing, fencing, expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.calls import (
    AddPartitions,
    Assignor,
    CommitOffset,
    CreateGroup,
    CreateNamespace,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
    Fetch,
    FetchOffset,
    GroupJoined,
    GroupLeft,
    Heartbeat,
    HeartbeatAccepted,
    IfExists,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetKind,
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


def test_an_id_made_for_a_new_member_goes_on_to_one_that_nobody_has(log: Log) -> None:
    for expected in ("c-9998", "c-9999", "c-0000"):
        joined = log.ask(JoinGroup("t", "g", "c-9998", is_new=True))
        assert joined.member == expected
    assert log.ask(JoinGroup("t", "g", "c-9999")).generation == 4
    assert log.code(JoinGroup("t", "g", "m", is_new=True)) is ErrorCode.LIMIT_REACHED


def test_a_member_leaves_by_the_name_that_its_id_was_made_of(log: Log) -> None:
    mine, other = Client(8, "test"), Client(9, "test")
    for member, client in (("c-0001", mine), ("c-0002", other), ("c-x-0003", mine)):
        log.ask(JoinGroup("t", "g", member), client)
    stem = LeaveGroup("t", "g", "c", is_stem=True)
    assert log.ask(stem, mine) == GroupLeft("c-0001", known=True)
    assert log.ask(stem, mine) == GroupLeft("c-0002", known=True)
    assert log.ask(stem, mine) == GroupLeft("c", known=False)


def test_of_several_members_of_a_name_the_one_leaves_that_joined_last(log: Log) -> None:
    for member in ("c-0002", "c-0001", "c"):
        log.ask(JoinGroup("t", "g", member))
    stranger = Client(9, "test")
    stem = LeaveGroup("t", "g", "c", is_stem=True)
    assert log.ask(stem, stranger).member == "c"
    assert log.ask(stem, stranger).member == "c-0001"
    assert log.ask(LeaveGroup("t", "g", "c"), stranger) == GroupLeft("c", known=False)


def test_a_reader_that_asks_to_be_told_hears_that_its_group_has_moved_on(log: Log) -> None:
    fetch = Fetch("t", 0, group="g", member="m", generation=1)
    assert log.ask(fetch).count == 0
    log.ask(JoinGroup("t", "g", "n"))
    failure = log.refused(fetch)
    assert failure.code is ErrorCode.STALE_GENERATION
    assert failure.facts == {"current": 2, "requested": 1}
    log.ask(LeaveGroup("t", "g", "m"))
    failure = log.refused(Fetch("t", 0, group="g", member="m", generation=3))
    assert failure.code is ErrorCode.UNKNOWN_MEMBER
    assert failure.facts["generation"] == 3


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


# ---------------------------------------------------------------- generations, rule by rule


def test_the_first_member_of_a_new_group_begins_generation_1(log: Log) -> None:
    assert log.ask(JoinGroup("t", "h", "m")).generation == 1


def test_a_new_member_is_one_generation_more(log: Log) -> None:
    for expected, member in enumerate("abc", start=2):
        assert log.ask(JoinGroup("t", "g", member)).generation == expected


def test_joining_again_is_no_generation_and_takes_a_new_session_timeout(log: Log) -> None:
    assert log.ask(JoinGroup("t", "g", "m", session_timeout_us=60_000_000)).generation == 1
    log.pass_time(50)
    assert log.ask(Heartbeat("t", "g", "m", 1)).generation == 1
    again = Log(log.store.restarted())
    again.pass_time(0)
    again.pass_time(50)
    assert again.ask(Heartbeat("t", "g", "m", 1)).generation == 1


def test_another_assignor_is_a_generation_of_its_own(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "n"))
    joined = log.ask(JoinGroup("t", "g", "m", assignor=Assignor.RANGE))
    assert joined == GroupJoined("m", 3, (0, 1))
    assert log.ask(JoinGroup("t", "g", "m", assignor=Assignor.RANGE)).generation == 3
    joined = log.ask(JoinGroup("t", "g", "new", assignor=Assignor.ROUND_ROBIN))
    assert joined == GroupJoined("new", 5, (2,))


def test_a_join_without_assignor_keeps_the_groups(log: Log) -> None:
    log.ask(JoinGroup("t", "h", "a", assignor=Assignor.RANGE))
    assert log.ask(JoinGroup("t", "h", "b")) == GroupJoined("b", 2, (2,))
    assert log.ask(SyncGroup("t", "h", "a")).partitions == (0, 1)


def test_leaving_is_one_generation_more(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "n"))
    log.ask(LeaveGroup("t", "g", "m", 2))
    assert log.ask(SyncGroup("t", "g", "n")) == GroupJoined("n", 3, (0, 1, 2))


def test_a_member_that_expired_and_joins_again_is_a_new_one(log: Log) -> None:
    log.now = log.now._replace(mono_us=log.now.mono_us + TIMEOUT_US + 1)
    assert log.ask(JoinGroup("t", "g", "m")).generation == 3


def test_ids_sort_by_their_bytes(log: Log) -> None:
    members = ["b", "B", "é", "10", "9", "\U0001f600"]
    for member in members:
        log.ask(JoinGroup("t", "h", member))
    ordered = sorted(members, key=str.encode)
    for place, member in enumerate(ordered):
        expected = (place,) if place < 3 else ()
        assert log.ask(SyncGroup("t", "h", member)).partitions == expected


def test_members_of_both_kinds_share_a_group(log: Log) -> None:
    client = Client(2, "iggy")
    assert log.ask(JoinGroup("t", "g", "b", bound=True), client) == GroupJoined("b", 2, (0, 2))
    log.pass_time(11)
    assert log.ask(SyncGroup("t", "g", "b")) == GroupJoined("b", 3, (0, 1, 2))
    log.ask(JoinGroup("t", "g", "m"))
    log.engine.disconnected(client, log.now)
    assert log.ask(SyncGroup("t", "g", "m")) == GroupJoined("m", 5, (0, 1, 2))


def test_a_connection_has_one_member_of_a_group(log: Log) -> None:
    client = Client(2, "iggy")
    log.ask(JoinGroup("t", "h", "a", bound=True), client)
    assert log.ask(JoinGroup("t", "h", "b", bound=True), client) == GroupJoined("b", 2, (0, 1, 2))
    assert log.code(SyncGroup("t", "h", "a")) is ErrorCode.UNKNOWN_MEMBER
    log.ask(JoinGroup("t", "h", "c"))
    assert log.ask(JoinGroup("t", "h", "c", bound=True), client) == GroupJoined("c", 4, (0, 1, 2))
    assert log.engine.statistics()["members"] == 2


def test_a_member_can_change_how_it_lives(log: Log) -> None:
    first, second = Client(2, "iggy"), Client(3, "iggy")
    log.ask(JoinGroup("t", "g", "m", bound=True), first)
    assert log.ask(JoinGroup("t", "g", "m", bound=True), second).generation == 1
    log.engine.disconnected(first, log.now)
    assert log.ask(Heartbeat("t", "g", "m", 1)).generation == 1
    log.ask(JoinGroup("t", "g", "m"))
    log.engine.disconnected(second, log.now)
    assert log.ask(Heartbeat("t", "g", "m", 1)).generation == 1
    log.pass_time(11)
    assert log.code(Heartbeat("t", "g", "m")) is ErrorCode.UNKNOWN_MEMBER


def test_a_topic_without_partitions_takes_only_bound_members(log: Log) -> None:
    log.ask(CreateTopic("none", 0))
    assert log.code(JoinGroup("none", "g", "m")) is ErrorCode.NO_PARTITIONS
    assert log.code(JoinGroup("none", "g", "m", assume_partitions=3)) is ErrorCode.NO_PARTITIONS
    client = Client(2, "iggy")
    assert log.ask(JoinGroup("none", "g", "m", bound=True), client) == GroupJoined("m", 1, ())
    log.ask(AddPartitions("none", 2))
    assert log.ask(SyncGroup("none", "g", "m")) == GroupJoined("m", 2, (0, 1))


def test_a_group_that_must_exist_is_not_made(log: Log) -> None:
    request = JoinGroup("t", "h", "m", must_exist=True)
    assert log.code(request) is ErrorCode.UNKNOWN_GROUP
    request.assignor = Assignor.RANGE
    assert log.code(request) is ErrorCode.UNKNOWN_GROUP
    log.ask(CreateGroup("t", "h"))
    assert log.ask(request).generation == 2


def test_groups_are_joined_and_left_by_number(log: Log) -> None:
    log.ask(CreateGroup("t", "h", 5))
    assert log.ask(JoinGroup("t", "", "a", group_number=5)).generation == 1
    assert log.ask(Heartbeat("t", "h", "a")).generation == 1
    assert log.ask(JoinGroup("t", "", "a", group_number=6)).generation == 1
    assert log.ask(Heartbeat("t", "6", "a")).generation == 1
    assert log.ask(LeaveGroup("t", "", "a", group_number=5)).known
    assert log.code(LeaveGroup("t", "", "a", group_number=9)) is ErrorCode.UNKNOWN_GROUP
    assert log.code(LeaveGroup("x", "", "a", group_number=5)) is ErrorCode.UNKNOWN_TOPIC


@pytest.mark.parametrize("member", ["\udc80", "a\ud800"])
def test_a_member_id_is_text(log: Log, member: str) -> None:
    assert log.code(JoinGroup("t", "g", member)) is ErrorCode.INVALID_NAME


@pytest.mark.parametrize("timeout_us", [-1, 0, 1 << 80])
def test_any_session_timeout_is_safe(log: Log, timeout_us: int) -> None:
    log.ask(JoinGroup("t", "g", "n", session_timeout_us=timeout_us))
    log.pass_time(9)
    assert log.engine.statistics()["members"] == (2 if timeout_us > 0 else 1)
    Log(log.store.restarted()).pass_time(1)


def test_a_stale_generation_is_told_before_anything_else(log: Log) -> None:
    assert log.code(Heartbeat("t", "g", "x", 7)) is ErrorCode.STALE_GENERATION
    commit = CommitOffset("t", "g", ((99, 1),), member="x", generation=7)
    assert log.code(commit) is ErrorCode.STALE_GENERATION
    commit.generation = 1
    assert log.code(commit) is ErrorCode.UNKNOWN_MEMBER
    commit.member = "m"
    assert log.code(commit) is ErrorCode.NOT_OWNER


def test_the_generations_are_counted(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "a", assignor=Assignor.RANGE))
    log.ask(LeaveGroup("t", "g", "a"))
    assert log.engine.statistics()["group_generations"] == 4


def test_unfenced_commits_count_while_the_group_has_members(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    log.ask(CommitOffset("t", "g", ((0, 1),), kind=OffsetKind.CONSUMER))
    log.now = log.now._replace(mono_us=log.now.mono_us + TIMEOUT_US + 1)
    log.ask(CommitOffset("t", "g", ((0, 2),)))
    assert log.engine.statistics()["unfenced_commits"] == 1


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["join", "range", "bind", "leave", "cut", "wait", "grow", "shrink"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_whatever_happens_every_partition_has_one_owner(steps: list[tuple[str, int]]) -> None:
    log = Log()
    log.ask(CreateTopic("t", 3))
    clients = [Client(number + 2, "iggy") for number in range(6)]
    last = 0
    for step, number in steps:
        member = f"m{number}"
        match step:
            case "join":
                log.ask(JoinGroup("t", "g", member))
            case "range":
                log.ask(JoinGroup("t", "g", member, assignor=Assignor.RANGE))
            case "bind":
                log.ask(JoinGroup("t", "g", member, bound=True), clients[number])
            case "leave":
                log.ask(LeaveGroup("t", "g", member))
            case "cut":
                log.engine.disconnected(clients[number], log.now)
            case "wait":
                log.pass_time(number * 2)
            case "grow":
                log.ask(AddPartitions("t", 1))
            case _:
                log.ask(RemovePartitions("t", 1))
        groups = log.ask(ListGroups("t")).groups
        if not groups:
            continue
        (group,) = groups
        owned = sorted(partition for row in group.members for partition in row.partitions)
        assert owned == (list(range(group.partition_count)) if group.members else [])
        assert group.generation >= last
        last = group.generation
    shown = [
        [row.member, row.dialect, row.partitions]
        for group in log.ask(ListGroups("t")).groups
        for row in group.members
        if not row.bound
    ]
    if not any(row.bound for group in log.ask(ListGroups("t")).groups for row in group.members):
        again = Log(log.store.restarted())
        assert [
            [row.member, row.dialect, row.partitions]
            for group in again.ask(ListGroups("t")).groups
            for row in group.members
        ] == shown
