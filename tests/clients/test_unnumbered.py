"""A producer without sequences sends again only what is surely not stored."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.clients.error import ConnectionLost, NoAnswer, RequestRefused, Unreachable
from dragoman.clients.leader import Leaders
from dragoman.clients.plan import Address, Pause, Retry
from dragoman.clients.unnumbered import Unnumbered
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

HOME = Address("h", 1)


def drive(values: list[bytes], *answers: Any, partition: int | None = None) -> tuple[Any, Any]:
    """Plays a produce against these answers; returns what it returned, and the values asked."""
    writer = Unnumbered(Leaders(HOME), Retry(attempts=3, dice=lambda: 0), calls.Acks.LEADER)
    plan = writer.produce("t", [(value, None) for value in values], partition)
    left, asked = [*answers], []
    argument = None
    while True:
        try:
            step = plan.send(argument)
        except StopIteration as done:
            assert not left
            return done.value, asked
        argument = None
        if not isinstance(step, Pause):
            (ask,) = step
            assert ask.address == HOME
            asked.append([[*request.batch.values] for request in ask.requests])
            argument = [left.pop(0)]


BUSY = Failure(ErrorCode.OVERLOADED)


def test_what_was_refused_for_the_moment_is_sent_again() -> None:
    done = calls.Produced(0, 0, 2)
    assert drive([b"a", b"b"], [BUSY], [done]) == ([done], [[[b"a", b"b"]]] * 2)


def test_only_the_records_that_were_refused_are_sent_again() -> None:
    parts = [calls.Produced(0, 0, 1), BUSY]
    many = calls.ProducedMany([*parts], [0, 1, 0])
    last = calls.Produced(1, 0, 1)
    produced, asked = drive([b"a", b"b", b"c"], [many], [last])
    assert produced == [parts[0], last]
    assert asked == [[[b"a", b"b", b"c"]], [[b"b"]]]


def test_a_server_that_is_not_there_yet_is_tried_again() -> None:
    done = calls.Produced(1, 0, 1)
    produced, asked = drive([b"a"], Unreachable("nobody"), [done], partition=1)
    assert (produced, len(asked)) == ([done], 2)


@pytest.mark.parametrize("error", [ConnectionLost("gone"), NoAnswer("silent")])
def test_a_lost_answer_is_told_and_nothing_sent_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        drive([b"a"], error)


def test_a_hard_refusal_is_raised() -> None:
    with pytest.raises(RequestRefused, match="record too large"):
        drive([b"a"], [Failure(ErrorCode.RECORD_TOO_LARGE)])


def test_attempts_are_bounded() -> None:
    with pytest.raises(RequestRefused, match="overloaded"):
        drive([b"a"], [BUSY], [BUSY], [BUSY])
