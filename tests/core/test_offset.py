"""Committed offsets: what is stored, what is refused, what is told."""

from __future__ import annotations

import pytest

from dragoman.core.calls import (
    ASSIGNED,
    CommitOffset,
    CreateGroup,
    CreateTopic,
    DeleteTopic,
    Fetch,
    FetchOffset,
    Follow,
    JoinGroup,
    LeaveGroup,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
)
from dragoman.core.error import ErrorCode
from dragoman.core.outcome import Client
from support.log import Log


@pytest.fixture
def log() -> Log:
    made = Log()
    made.put("t", b"a", b"b", b"c")
    return made


def committed(log: Log, partition: int = 0, group: str = "g") -> int | None:
    reply = log.ask(FetchOffset("t", group, partition))
    assert isinstance(reply, OffsetFetched)
    return reply.offset


def test_several_partitions_are_stored_together(log: Log) -> None:
    assert log.ask(CommitOffset("t", "g", ((0, 2), (2, 9)))) == OffsetCommitted(2)
    assert [committed(log, partition) for partition in range(3)] == [2, None, 9]


def test_nothing_is_stored_where_one_partition_is_refused(log: Log) -> None:
    assert log.code(CommitOffset("t", "g", ((0, 2), (3, 1)))) is ErrorCode.UNKNOWN_PARTITION
    assert committed(log) is None


@pytest.mark.parametrize("offset", [0, -1, 2**63 - 1, -(2**63)])
def test_any_signed_64_bit_number_is_stored(log: Log, offset: int) -> None:
    log.ask(CommitOffset("t", "g", ((0, offset),)))
    assert committed(log) == offset
    assert Log(log.store.restarted()).ask(FetchOffset("t", "g", 0)).offset == offset


@pytest.mark.parametrize("offset", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_refused(log: Log, offset: int) -> None:
    assert log.code(CommitOffset("t", "g", ((0, offset),))) is ErrorCode.INVALID_OFFSET


def test_the_last_writer_wins_unless_commits_only_rise(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 3),)))
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    assert committed(log) == 1
    failure = log.refused(CommitOffset("t", "g", ((0, 0),), monotonic=True))
    assert failure.code is ErrorCode.OFFSET_REGRESSION
    assert failure.facts == {"current": 1, "requested": 0, "partition": 0}
    log.ask(CommitOffset("t", "g", ((0, 1),), monotonic=True))
    log.ask(CommitOffset("t", "other", ((0, 0),), monotonic=True))


@pytest.mark.parametrize(("offset", "is_stored"), [(0, True), (3, True), (4, False), (-1, False)])
def test_offsets_within_the_log_are_checked_where_asked(
    log: Log, offset: int, is_stored: bool
) -> None:
    request = CommitOffset("t", "g", ((0, offset),), within_log=True)
    if is_stored:
        log.ask(request)
        assert committed(log) == offset
    else:
        assert log.code(request) is ErrorCode.INVALID_OFFSET


def test_groups_and_consumers_are_two_maps(log: Log) -> None:
    log.ask(CommitOffset("t", "1", ((0, 1),)))
    log.ask(CommitOffset("t", "1", ((0, 2),), kind=OffsetKind.CONSUMER))
    assert committed(log, group="1") == 1
    assert log.ask(FetchOffset("t", "1", 0, kind=OffsetKind.CONSUMER)).offset == 2


def test_a_fetched_offset_comes_with_the_high_watermark(log: Log) -> None:
    assert log.ask(FetchOffset("t", "g", 0)) == OffsetFetched(0, None, 3)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CommitOffset("u", "g", ((0, 1),)), ErrorCode.UNKNOWN_TOPIC),
        (CommitOffset("t", "", ((0, 1),)), ErrorCode.INVALID_NAME),
        (CommitOffset("t", "x" * 256, ((0, 1),)), ErrorCode.INVALID_NAME),
        (CommitOffset("t", "\udc80", ((0, 1),)), ErrorCode.INVALID_NAME),
        (CommitOffset("t", "a\tb", ((0, 1),)), ErrorCode.INVALID_NAME),
        (FetchOffset("u", "g", 0), ErrorCode.UNKNOWN_TOPIC),
        (FetchOffset("t", "g", 3), ErrorCode.UNKNOWN_PARTITION),
        (FetchOffset("t", "g", -2), ErrorCode.UNKNOWN_PARTITION),
    ],
)
def test_what_cannot_be_served_is_refused(
    log: Log, request_: CommitOffset | FetchOffset, code: ErrorCode
) -> None:
    assert log.code(request_) is code


def test_any_printable_group_name_will_do(log: Log) -> None:
    for group in ("billing:eu", "größe", "a b", "x" * 255):
        log.ask(CommitOffset("t", group, ((0, 1),)))
        assert committed(log, group=group) == 1


def test_a_regression_waits_for_the_commit_that_it_reveals(log: Log) -> None:
    log.hand(CommitOffset("t", "g", ((0, 3),)))
    outcome = log.hand(CommitOffset("t", "g", ((0, 1),), monotonic=True))
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_the_same_offset_again_writes_nothing_and_waits_as_long(log: Log) -> None:
    first = log.hand(CommitOffset("t", "g", ((0, 3),)))
    second = log.hand(CommitOffset("t", "g", ((0, 3),)))
    assert not second.ready
    log.flush()
    assert first.ready
    assert second.ready
    assert log.hand(CommitOffset("t", "g", ((0, 3),))).ready


def test_a_fetch_does_not_wait_for_commits_of_other_groups(log: Log) -> None:
    log.hand(CommitOffset("t", "g", ((0, 3),)))
    assert log.hand(Fetch("t", 0, group="other")).ready
    assert not log.hand(Fetch("t", 0, group="g")).ready


def test_an_unfenced_commit_beside_a_member_is_taken_and_counted(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "m"))
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    assert committed(log) == 1
    assert log.engine.statistics()["unfenced_commits"] == 1


def test_offsets_of_topics_without_partitions_are_refused(log: Log) -> None:
    log.ask(CreateTopic("empty", 0))
    assert log.code(CommitOffset("empty", "g", ((0, 1),))) is ErrorCode.NO_PARTITIONS


def test_groups_with_offsets_are_bounded_and_a_deleted_topic_makes_room() -> None:
    log = Log(groups_max=2)
    log.put("t", b"a")
    log.put("u", b"a")
    log.ask(CommitOffset("t", "a", ((0, 1),)))
    log.ask(CommitOffset("u", "b", ((0, 1),), kind=OffsetKind.CONSUMER))
    assert log.code(CommitOffset("t", "c", ((0, 1),))) is ErrorCode.LIMIT_REACHED
    assert log.code(Fetch("t", 0, group="c", auto_commit=True)) is ErrorCode.LIMIT_REACHED
    assert log.code(Follow("t", 0, group="c", commit_us=1)) is ErrorCode.LIMIT_REACHED
    log.ask(CommitOffset("t", "a", ((0, 0),)))
    again = Log(log.store.restarted(), groups_max=2)
    assert again.code(CommitOffset("t", "c", ((0, 1),))) is ErrorCode.LIMIT_REACHED
    again.ask(DeleteTopic("u"))
    assert again.ask(CommitOffset("t", "c", ((0, 1),))) == OffsetCommitted(1)


# ---------------------------------------------------------------- where a member is assigned


def bound(log: Log, member: str = "m", number: int = 7) -> Client:
    client = Client(number, "iggy")
    log.ask(JoinGroup("t", "g", member, bound=True), client)
    return client


def assigned(offset: int) -> CommitOffset:
    return CommitOffset("t", "g", ((ASSIGNED, offset),))


def test_a_bound_member_commits_and_reads_where_it_polled_last(log: Log) -> None:
    client = bound(log)
    for expected in (0, 1):
        log.ask(Fetch("t", ASSIGNED, group="g"), client)
        assert log.ask(FetchOffset("t", "g", ASSIGNED), client).partition == expected
        log.ask(assigned(expected + 1), client)
        assert log.ask(FetchOffset("t", "g", ASSIGNED), client).offset == expected + 1
    assert [committed(log, partition) for partition in range(3)] == [1, 2, None]
    assert log.engine.statistics()["unfenced_commits"] == 0


def test_before_its_first_poll_a_member_is_nowhere(log: Log) -> None:
    client = bound(log)
    assert log.code(assigned(1), client) is ErrorCode.UNKNOWN_PARTITION
    assert log.code(FetchOffset("t", "g", ASSIGNED), client) is ErrorCode.UNKNOWN_PARTITION


def test_who_did_not_join_is_assigned_nothing(log: Log) -> None:
    assert log.code(assigned(1)) is ErrorCode.UNKNOWN_GROUP
    bound(log)
    assert log.code(assigned(1)) is ErrorCode.UNKNOWN_MEMBER
    assert log.code(FetchOffset("t", "g", ASSIGNED)) is ErrorCode.UNKNOWN_MEMBER


def test_a_partition_that_was_another_members_meanwhile_is_not_committed(log: Log) -> None:
    client = bound(log, "m")
    log.ask(Fetch("t", ASSIGNED, group="g"), client)
    log.ask(JoinGroup("t", "g", "before"))
    assert log.refused(assigned(1), client).facts == {"partition": 0, "generation": 2}
    log.ask(LeaveGroup("t", "g", "before"))
    assert log.code(assigned(1), client) is ErrorCode.NOT_OWNER
    assert log.ask(FetchOffset("t", "g", ASSIGNED), client).offset is None
    log.ask(Fetch("t", ASSIGNED, group="g"), client)
    assert log.ask(assigned(1), client) == OffsetCommitted(1)


def test_a_partition_that_stays_the_members_is_committed_after_a_new_deal(log: Log) -> None:
    client = bound(log, "m")
    log.ask(Fetch("t", ASSIGNED, group="g"), client)
    log.ask(JoinGroup("t", "g", "z"))
    log.ask(assigned(1), client)
    assert committed(log) == 1


def test_offsets_are_known_by_the_groups_number(log: Log) -> None:
    log.ask(CreateGroup("t", "g", 5))
    log.ask(CommitOffset("t", "", ((0, 2),), group_number=5))
    assert committed(log) == 2
    assert log.ask(FetchOffset("t", "", 0, group_number=5)).offset == 2
    log.ask(CommitOffset("t", "", ((0, 3),), group_number=6))
    assert committed(log, group="6") == 3
    log.ask(CommitOffset("t", "", ((0, 1),), kind=OffsetKind.CONSUMER, group_number=5))
    consumer = FetchOffset("t", "5", 0, kind=OffsetKind.CONSUMER)
    assert log.ask(consumer).offset == 1
