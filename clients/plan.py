"""What takes several servers, and time: generators that both faces drive, as they do tasks.

A task (`clients.task`) is one conversation on one connection. A **plan** says where it asks, and
when: it yields several asks that go out together, each to an address, or a pause. What became of
each ask is data, so that a plan can try again what is worth it; connections are made, kept and
thrown away by the pool (`clients.pool`) that drives it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dragoman.clients.error import (
    ClientError,
    ConnectionLost,
    NoAnswer,
    RequestRefused,
    Unreachable,
)
from dragoman.codecs.base import Unsayable
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.clients.task import Task
    from dragoman.core.calls import Reply, Request


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """Of `host:port`."""
        host, _, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))


class Ask(NamedTuple):
    """Requests that go to one server together."""

    address: Address
    requests: tuple[Request, ...]


class Pause(NamedTuple):
    """Nothing is done for so long."""

    seconds: float


Answer = list["Reply | Failure"] | ClientError | Unsayable
"""The replies of an ask in order, or why there are none."""

Result = TypeVar("Result")
Plan = Generator[tuple[Ask, ...] | Pause, Any, Result]
"""Yields asks, and is resumed with an `Answer` for each; or a pause."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often something is tried, and how long a client waits in between.

    Attributes:
        attempts: In all, in a row without any success.
        first_s, longest_s: The pause after the first attempt, which doubles up to the longest.
        dice: Numbers from 0 to 1: each pause is that share of its second half longer than half, so
            that clients which were cut off together do not come back together.
    """

    attempts: int = 12
    first_s: float = 0.05
    longest_s: float = 2.0
    dice: Callable[[], float] = random.random

    def pauses(self) -> Iterator[Pause]:
        """The pauses between the attempts."""
        for number in range(self.attempts - 1):
            whole_s = min(self.first_s * 2.0**number, self.longest_s)
            yield Pause(whole_s * (1 + self.dice()) / 2)


TRANSIENT = frozenset(
    {
        ErrorCode.NOT_LEADER,
        ErrorCode.OVERLOADED,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.REPLICATION_TIMEOUT,
    }
)
"""Refusals that another attempt, here or elsewhere, may not meet."""


def ask_one(address: Address, request: Request) -> Plan[Reply | Failure]:
    """Asks for one thing.

    Raises:
        ClientError, Unsayable: It could not be asked, or was not answered.
    """
    (answer,) = yield (Ask(address, (request,)),)
    if isinstance(answer, Exception):
        raise answer
    (reply,) = answer
    only: Reply | Failure = reply
    return only


def on(address: Address, task: Task[Result]) -> Plan[Result]:
    """A task, done at one server.

    Raises:
        ClientError, Unsayable: As the task does, or as its asks fail.
    """
    send: Any = task.send
    argument: Any = None
    while True:
        try:
            requests = send(argument)
        except StopIteration as done:
            result: Result = done.value
            return result
        (answer,) = yield (Ask(address, tuple(requests)),)
        if isinstance(answer, ClientError):
            raise answer
        if isinstance(answer, Unsayable):
            send, argument = task.throw, answer
        elif failures := [reply for reply in answer if isinstance(reply, Failure)]:
            send, argument = task.throw, RequestRefused(failures[0])
        else:
            send, argument = task.send, answer


def is_worth_another(error: Exception) -> bool:
    """Whether a later attempt may do better."""
    if isinstance(error, RequestRefused):
        return error.code in TRANSIENT
    return isinstance(error, Unreachable | ConnectionLost | NoAnswer)
