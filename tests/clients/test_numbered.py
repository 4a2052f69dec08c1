"""The plan of a numbering producer, step by step: what is sent together, and what it remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.clients.error import ConnectionLost, PartlySent, RequestRefused
from dragoman.clients.leader import Leaders
from dragoman.clients.numbered import Numbered
from dragoman.clients.plan import Address, Ask, Pause, Retry
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Callable

HOME, OTHER = Address("home", 1), Address("other", 2)
BUSY = Failure(ErrorCode.OVERLOADED)


class Servers:
    """Answers a plan's asks: METADATA by itself, writes by what the test gives.

    Attributes:
        sent: Of each step that writes, what goes where: address, partition, first sequence, values.
        pauses: How many there were.
    """

    def __init__(self, *answers: Callable[[calls.Produce], Any]) -> None:
        self.answers = [*answers]
        self.writer = Numbered(
            Leaders(HOME), Retry(attempts=3, dice=lambda: 0), name="p", epoch=1, turn=0
        )
        self.sent: list[list[tuple[str, int, int, list[bytes]]]] = []
        self.pauses = 0

    def write(self, *rows: tuple[bytes, bytes | None], partition: int | None = None) -> Any:
        plan = self.writer.produce("t", [*rows], partition)
        argument = None
        while True:
            try:
                step = plan.send(argument)
            except StopIteration as done:
                return done.value
            if isinstance(step, Pause):
                self.pauses += 1
                argument = None
            elif isinstance(step[0].requests[0], calls.DescribeTopic):
                argument = [[described()]]
            else:
                answer = self.answers.pop(0)
                argument = [answer(ask) for ask in step]
                self.sent.append([place(ask, each) for ask in step for each in ask.requests])


def described() -> calls.TopicDescribed:
    """Two partitions, the second led elsewhere."""
    partitions = [calls.PartitionDescription(number, 0, 0, 0, 0, 0, 0) for number in range(2)]
    partitions[1].leader = "other:2"
    topic = calls.TopicDescription("default", "t", 0, 0, calls.TopicConfig(), partitions)
    return calls.TopicDescribed(topic)


def place(ask: Ask, request: Any) -> tuple[str, int, int, list[bytes]]:
    batch = request.batch
    return ask.address.host, request.route, batch.base_sequence, [*batch.values]


def stored(ask: Ask) -> list[calls.Produced]:
    """Everything is acknowledged."""
    requests: Any = ask.requests
    return [calls.Produced(each.route, 0, each.batch.count) for each in requests]


def test_each_leader_is_sent_the_batches_of_its_partitions_in_one_step() -> None:
    servers = Servers(stored)
    servers.write((b"x", b"a"), (b"y", b"b"), (b"z", b"a"))
    assert sorted(servers.sent[0]) == [
        ("home", 0, 1, [b"x", b"z"]),
        ("other", 1, 1, [b"y"]),
    ] or sorted(servers.sent[0]) == [("home", 0, 1, [b"y"]), ("other", 1, 1, [b"x", b"z"])]


def test_records_without_keys_go_to_the_next_partition_with_each_call() -> None:
    servers = Servers(stored, stored, stored)
    for value in (b"x", b"y", b"z"):
        servers.write((value, None))
    assert servers.sent == [
        [("home", 0, 1, [b"x"])],
        [("other", 1, 1, [b"y"])],
        [("home", 0, 2, [b"z"])],
    ]


def test_only_the_partition_that_was_refused_is_sent_again() -> None:
    def half(ask: Ask) -> Any:
        return [BUSY] if ask.address == OTHER else stored(ask)

    servers = Servers(half, stored)
    servers.write((b"x", b"a"), (b"y", b"b"))
    assert [len(step) for step in servers.sent] == [2, 1]
    assert servers.sent[1][0][0] == "other"


def test_a_pause_lies_between_attempts_that_store_nothing() -> None:
    servers = Servers(lambda _: [BUSY], lambda _: [BUSY], stored)
    servers.write((b"x", None), partition=0)
    assert servers.pauses == 2


def test_a_lost_answer_to_the_last_attempt_begins_a_new_epoch() -> None:
    servers = Servers(*[lambda _: ConnectionLost("gone")] * 3, stored)
    with pytest.raises(ConnectionLost):
        servers.write((b"x", None), partition=0)
    assert servers.writer.epoch == 2
    servers.write((b"y", None), partition=0)
    assert servers.sent[-1][0][1:] == (0, 1, [b"y"])


def test_a_refusal_leaves_the_numbers_to_the_next_records() -> None:
    refused = Failure(ErrorCode.RECORD_TOO_LARGE)
    servers = Servers(lambda _: [refused], stored)
    with pytest.raises(RequestRefused):
        servers.write((b"x", None), partition=0)
    servers.write((b"y", None), partition=0)
    assert servers.writer.epoch == 1
    assert servers.sent[-1] == [("home", 0, 1, [b"y"])]


def test_a_refusal_after_a_lost_answer_begins_a_new_epoch() -> None:
    refused = Failure(ErrorCode.RECORD_TOO_LARGE)
    servers = Servers(lambda _: ConnectionLost("gone"), lambda _: [refused])
    with pytest.raises(RequestRefused):
        servers.write((b"x", None), partition=0)
    assert servers.writer.epoch == 2


def test_a_plan_that_is_dropped_while_it_waits_begins_a_new_epoch() -> None:
    writer = Numbered(Leaders(HOME), Retry(), name="p", epoch=1)
    plan = writer.produce("t", [(b"x", None)], 0)
    next(plan)
    plan.send([[described()]])
    plan.close()
    assert writer.epoch == 2


def test_what_cannot_be_said_after_something_was_stored_tells_what_was() -> None:
    def half(ask: Ask) -> Any:
        return Unsayable("no") if ask.address == OTHER else stored(ask)

    servers = Servers(half)
    with pytest.raises(PartlySent) as partly:
        servers.write((b"x", b"a"), (b"y", b"b"))
    assert [type(reply) for reply in partly.value.replies] == [calls.Produced]


def test_what_cannot_be_said_at_all_is_not_sent() -> None:
    servers = Servers(lambda _: Unsayable("no"))
    with pytest.raises(Unsayable):
        servers.write((b"x", None), partition=0)
    assert servers.writer.epoch == 1
