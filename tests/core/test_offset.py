"""Committed offsets: what is stored, what is refused, what is told."""

from __future__ import annotations

import pytest

from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DeleteTopic,
    Fetch,
    FetchOffset,
    Follow,
    JoinGroup,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
)
from dragoman.core.error import ErrorCode
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
