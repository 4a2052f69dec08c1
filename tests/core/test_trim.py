"""DeleteRecords: what may be asked, what it answers and when, and who reads below."""

from __future__ import annotations

import pytest

from dragoman.core.calls import (
    CreateTopic,
    DeleteRecords,
    DescribeTopic,
    Fetch,
    Follow,
    RecordsDeleted,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from support.log import Log, values


def filled() -> Log:
    """Topic t with the records 0 to 4 in partition 0."""
    log = Log()
    log.ask(CreateTopic("t", 2))
    for number in range(5):
        log.put("t", b"%d" % number)
    return log


@pytest.mark.parametrize(("before", "left"), [(0, 5), (2, 3), (5, 0), (-1, 0)])
def test_records_below_the_offset_are_gone(before: int, left: int) -> None:
    log = filled()
    assert log.ask(DeleteRecords("t", 0, before)) == RecordsDeleted(0, 5 - left)
    assert log.read("t") == [b"0", b"1", b"2", b"3", b"4"][5 - left :]


@pytest.mark.parametrize("before", [6, -2, 1 << 62, -(1 << 63)])
def test_an_offset_that_is_not_visible_is_refused(before: int) -> None:
    log = filled()
    refused = log.refused(DeleteRecords("t", 0, before))
    assert refused.code is ErrorCode.INVALID_OFFSET
    assert refused.facts == {"requested": before, "latest": 5}
    assert len(log.read("t")) == 5


def test_what_is_deleted_already_is_deleted_well() -> None:
    log = filled()
    log.ask(DeleteRecords("t", 0, 3))
    assert log.ask(DeleteRecords("t", 0, 1)) == RecordsDeleted(0, 3)
    assert log.engine.take_flush() is None


def test_a_refusal_that_tells_the_log_start_waits_for_the_trim() -> None:
    log = filled()
    log.hand(DeleteRecords("t", 0, 3))
    refused = log.hand(Fetch("t", 0, 1, strict=True))
    assert not refused.ready
    log.flush()
    assert isinstance(refused.reply, Failure)
    assert refused.reply.facts["earliest"] == 3


def test_a_description_waits_for_the_trim_that_it_shows() -> None:
    log = filled()
    log.hand(DeleteRecords("t", 0, 3))
    described = log.hand(DescribeTopic("t"))
    assert not described.ready
    log.flush()
    assert described.ready


def test_the_reply_waits_for_the_trim_also_for_one_that_another_made() -> None:
    log = filled()
    first = log.hand(DeleteRecords("t", 0, 3))
    second = log.hand(DeleteRecords("t", 0, 2))
    assert not first.ready
    assert not second.ready
    log.flush()
    assert first.reply == second.reply == RecordsDeleted(0, 3)


def test_whoever_is_led_to_the_new_start_waits_for_the_trim_too() -> None:
    log = filled()
    log.hand(DeleteRecords("t", 0, 3))
    read = log.hand(Fetch("t", 0))
    assert not read.ready
    log.flush()
    assert read.ready
    assert values(read.reply.slices) == [b"3", b"4"]  # type: ignore[union-attr]


def test_a_trim_survives_a_restart() -> None:
    log = filled()
    log.ask(DeleteRecords("t", 0, -1))
    again = Log(log.store.restarted())
    found = again.ask(DescribeTopic("t")).topic.partitions[0]
    assert (found.log_start_offset, found.high_watermark) == (5, 5)
    assert again.put("t", b"5").base_offset == 5


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (DeleteRecords("nope", 0, 0), ErrorCode.UNKNOWN_TOPIC),
        (DeleteRecords("t", 7, 0), ErrorCode.UNKNOWN_PARTITION),
    ],
)
def test_what_is_not_there_has_no_records(request_: DeleteRecords, code: ErrorCode) -> None:
    assert filled().code(request_) is code


def test_a_server_that_stops_deletes_nothing() -> None:
    log = filled()
    log.engine.begin_close(log.now)
    assert log.code(DeleteRecords("t", 0, 3)) is ErrorCode.SHUTTING_DOWN


def test_a_strict_read_below_is_refused_and_another_goes_on_at_the_start() -> None:
    log = filled()
    log.ask(DeleteRecords("t", 0, 3))
    assert log.code(Fetch("t", 0, 1, strict=True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read("t", 1) == [b"3", b"4"]
    assert log.read("t", 9, whence=Whence.LAST) == [b"3", b"4"]


def test_a_follow_goes_on_at_the_new_start() -> None:
    log = filled()
    follow = log.hand(Follow("t", 0, records_max=1))
    push = log.engine.pull(follow, log.now)
    assert push is not None
    assert not isinstance(push, Failure)
    assert values(push.slices) == [b"0"]
    log.ask(DeleteRecords("t", 0, 3))
    push = log.engine.pull(follow, log.now)
    assert push is not None
    assert not isinstance(push, Failure)
    assert values(push.slices) == [b"3"]


def test_a_long_poll_at_the_end_hears_of_what_comes_after() -> None:
    log = filled()
    poll = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.ask(DeleteRecords("t", 0, -1))
    assert not poll.ready
    log.put("t", b"5")
    assert values(poll.reply.slices) == [b"5"]  # type: ignore[union-attr]
