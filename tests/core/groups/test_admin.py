"""Groups made, shown and deleted by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import (
    Assignor,
    CommitOffset,
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    DescribeGroup,
    FetchOffset,
    GroupDeleted,
    GroupDescription,
    Heartbeat,
    JoinGroup,
    ListGroups,
    MemberDescription,
)
from dragoman.core.error import ErrorCode
from dragoman.core.outcome import Client
from support.log import WALL_US, Log

if TYPE_CHECKING:
    from dragoman.core.calls import Request

IGGY = Client(7, "iggy")


@pytest.fixture
def log() -> Log:
    """Topic t with 3 partitions, and u with 1."""
    made = Log()
    made.ask(CreateTopic("t", 3))
    made.ask(CreateTopic("u", 1))
    return made


def test_a_made_group_is_shown_without_members(log: Log) -> None:
    expected = GroupDescription("default", "t", "g", 5, 0, Assignor.ROUND_ROBIN, 3, [])
    assert log.ask(CreateGroup("t", "g", 5)).group == expected
    assert log.ask(DescribeGroup("t", "g")).group == expected
    assert log.ask(DescribeGroup("t", "", group_number=5)).group == expected
    assert log.ask(DescribeGroup(1, "g", namespace=4_294_967_295)).group == expected


def test_a_group_shows_its_members_by_id(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "z"))
    log.ask(JoinGroup("t", "g", "b", bound=True), IGGY)
    assert log.ask(DescribeGroup("t", "g")).group.members == [
        MemberDescription("b", "iggy", (0, 2), True, WALL_US),
        MemberDescription("z", "test", (1,), False, WALL_US),
    ]


def test_a_group_tells_when_members_were_heard_and_partitions_dealt(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "a"))
    log.pass_time(2)
    log.ask(JoinGroup("t", "g", "b"))
    log.pass_time(3)
    log.ask(Heartbeat("t", "g", "a", 2))
    found = log.ask(DescribeGroup("t", "g")).group
    assert found.dealt_us == WALL_US + 2_000_000
    assert [member.heard_us - WALL_US for member in found.members] == [5_000_000, 2_000_000]


def test_after_a_restart_it_is_not_known_when_that_was(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "a"))
    found = Log(log.store.restarted()).ask(DescribeGroup("t", "g")).group
    assert (found.dealt_us, found.members[0].heard_us) == (0, 0)


def test_a_group_without_its_topic_is_the_one_of_that_name_made_last(log: Log) -> None:
    log.ask(CreateGroup("t", "g"))
    assert log.ask(DescribeGroup("", "g")).group.topic == "t"
    log.ask(CreateGroup("u", "g"))
    assert log.ask(DescribeGroup("", "g")).group.topic == "u"
    failure = log.refused(DescribeGroup("", "x"))
    assert (failure.code, failure.facts) == (ErrorCode.UNKNOWN_GROUP, {"group": "x"})


def test_a_group_that_was_made_without_a_name_is_named_by_its_number(log: Log) -> None:
    assert log.ask(CreateGroup("t", "", 7)).group.name == "7"
    assert log.ask(CreateGroup("t", "8")).group.number == 8
    assert log.ask(CreateGroup("t", "x")).group.number == 1


def test_groups_are_listed_by_number(log: Log) -> None:
    for topic, name, number in (("t", "c", 9), ("t", "b", 2), ("u", "a", 1)):
        log.ask(CreateGroup(topic, name, number))
    assert [group.name for group in log.ask(ListGroups("t")).groups] == ["b", "c"]
    assert [group.name for group in log.ask(ListGroups()).groups] == ["b", "c", "a"]
    assert log.ask(ListGroups("u")).groups[0].number == 1


def test_where_names_are_enough_members_are_left_out(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "a"))
    (whole,) = log.ask(ListGroups("t")).groups
    (named,) = log.ask(ListGroups("t", names_only=True)).groups
    assert (named.name, named.number, named.generation) == ("g", 1, 1)
    assert (len(whole.members), named.members) == (1, [])


def test_a_topic_without_groups_lists_none(log: Log) -> None:
    assert log.ask(ListGroups("t")).groups == []


def test_a_group_that_waits_for_its_topic_is_shown(log: Log) -> None:
    log.ask(JoinGroup("later", "g", "m", assume_partitions=4))
    found = log.ask(DescribeGroup("later", "g")).group
    assert (found.topic, found.partition_count, found.members[0].partitions) == (
        "later",
        4,
        (0, 1, 2, 3),
    )


def test_a_silent_member_is_not_shown(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "m"))
    log.now = log.now._replace(mono_us=log.now.mono_us + 11_000_000)
    assert log.ask(ListGroups("t")).groups[0].members == []
    assert log.ask(DescribeGroup("t", "g")).group.generation == 2


def test_a_deleted_group_takes_members_and_offsets_along(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "m"))
    log.ask(JoinGroup("t", "g", "b", bound=True), IGGY)
    log.ask(CommitOffset("t", "g", ((0, 1), (1, 1))))
    log.ask(CommitOffset("t", "other", ((0, 1),)))
    assert log.engine._directory.offset_groups == 2
    assert log.ask(DeleteGroup("t", "g")) == GroupDeleted("g")
    assert log.engine._directory.offset_groups == 1
    assert log.code(Heartbeat("t", "g", "m")) is ErrorCode.UNKNOWN_GROUP
    assert log.ask(FetchOffset("t", "g", 0)).offset is None
    assert log.engine.statistics()["members"] == 0
    again = Log(log.store.restarted())
    assert again.code(DescribeGroup("t", "g")) is ErrorCode.UNKNOWN_GROUP
    assert again.ask(FetchOffset("t", "g", 0)).offset is None
    assert again.ask(FetchOffset("t", "other", 0)).offset == 1
    assert again.engine._directory.offset_groups == 1


def test_who_reads_a_deleted_groups_offset_waits_until_the_deletion_is_durable(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    log.ask(CreateGroup("t", "g"))
    log.hand(DeleteGroup("t", "g"))
    outcome = log.hand(FetchOffset("t", "g", 0))
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_the_number_of_a_deleted_group_is_free_again(log: Log) -> None:
    log.ask(CreateGroup("t", "a"))
    log.ask(CreateGroup("t", "b"))
    log.ask(DeleteGroup("t", "", group_number=1))
    assert log.ask(CreateGroup("t", "c")).group.number == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateGroup("t", "g"), ErrorCode.GROUP_EXISTS),
        (CreateGroup("t", "new", 1), ErrorCode.GROUP_EXISTS),
        (CreateGroup("t", "", 1), ErrorCode.GROUP_EXISTS),
        (CreateGroup("t", ""), ErrorCode.INVALID_NAME),
        (CreateGroup("t", "x" * 256), ErrorCode.INVALID_NAME),
        (CreateGroup("t", "new", -1), ErrorCode.INVALID_NUMBER),
        (CreateGroup("t", "new", 1 << 32), ErrorCode.INVALID_NUMBER),
        (CreateGroup("x", "new"), ErrorCode.UNKNOWN_TOPIC),
        (CreateGroup("t", "new", namespace="x"), ErrorCode.UNKNOWN_NAMESPACE),
        (DeleteGroup("t", "x"), ErrorCode.UNKNOWN_GROUP),
        (DeleteGroup("u", "g"), ErrorCode.UNKNOWN_GROUP),
        (DeleteGroup("t", "", group_number=2), ErrorCode.UNKNOWN_GROUP),
        (DeleteGroup("x", "g"), ErrorCode.UNKNOWN_TOPIC),
        (DescribeGroup("t", "x"), ErrorCode.UNKNOWN_GROUP),
        (DescribeGroup("x", "g"), ErrorCode.UNKNOWN_TOPIC),
        (DescribeGroup("t", "g", namespace="x"), ErrorCode.UNKNOWN_NAMESPACE),
        (ListGroups("x"), ErrorCode.UNKNOWN_TOPIC),
        (ListGroups(namespace="x"), ErrorCode.UNKNOWN_NAMESPACE),
    ],
)
def test_what_cannot_be_is_refused(log: Log, request_: Request, code: ErrorCode) -> None:
    log.ask(CreateGroup("t", "g"))
    assert log.code(request_) is code
