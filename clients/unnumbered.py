"""The plan of a producer in a dialect without sequences: nothing is ever written twice.

Sent again is only what the server refused for the moment, or what never reached it. Where an answer
is lost nobody can tell whether the records are there, and that is what the caller is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.clients.appending import WAYS, batch_of, produce_request
from dragoman.clients.error import ClientError, RequestRefused, Unreachable
from dragoman.clients.plan import Ask, on
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.clients.appending import Rows
    from dragoman.clients.leader import Leaders
    from dragoman.clients.plan import Answer, Plan, Retry
    from dragoman.core.calls import Produce, Produced

NOT_STORED = {ErrorCode.NOT_LEADER, ErrorCode.OVERLOADED, ErrorCode.SHUTTING_DOWN}
"""Refusals for the moment, of records that are surely not there."""


class Unnumbered:
    """Writes records without sequences; one call at a time."""

    def __init__(self, leaders: Leaders, retry: Retry, acks: calls.Acks, turn: int = 0) -> None:
        self._leaders = leaders
        self._retry = retry
        self._acks = acks
        self._turn = turn

    def produce(self, topic: str, rows: Rows, partition: int | None) -> Plan[list[Produced]]:
        """Appends records, in as few requests as the dialect allows.

        Raises:
            RequestRefused: As the first refusal that another attempt cannot change.
            ConnectionLost, NoAnswer: It is not known whether the records are there.
            Unsayable: The dialect has no words for them; nothing was sent.
        """
        self._turn += 1
        if partition is not None:
            request = produce_request(topic, rows, partition, self._acks)
            return (yield from self._send([request]))
        reasons: list[str] = []
        for way in WAYS:
            try:
                task = way(topic, rows, self._acks, self._turn)
                requests = yield from on(self._leaders.home, task)
                return (yield from self._send(requests))
            except Unsayable as error:
                reasons.append(str(error))
        raise Unsayable("; ".join(filter(None, dict.fromkeys(reasons))))

    def _send(self, requests: list[Produce]) -> Plan[list[Produced]]:
        produced: list[Produced] = []
        pauses = self._retry.pauses()
        while requests:
            answer: Answer
            (answer,) = yield (Ask(self._leaders.home, tuple(requests)),)
            if isinstance(answer, Unreachable):
                failure: ClientError = answer
            elif isinstance(answer, Exception):
                raise answer
            else:
                requests, failures = _left(requests, answer, produced)
                if not requests:
                    break
                failure = RequestRefused(failures[0])
            pause = next(pauses, None)
            if pause is None:
                raise failure
            yield pause
        return produced


def _left(
    requests: list[Produce], replies: list[calls.Reply | Failure], produced: list[Produced]
) -> tuple[list[Produce], list[Failure]]:
    """What is to be sent again, and why.

    Raises:
        RequestRefused: A part was refused for good.
    """
    left: list[Produce] = []
    failures: list[Failure] = []
    for request, reply in zip(requests, replies, strict=True):
        if isinstance(reply, calls.ProducedMany):
            parts, places = reply.parts, reply.places
        else:
            assert isinstance(reply, calls.Produced | Failure), "the reply to a Produce"
            parts, places = [reply], [0] * request.batch.count
        produced += [part for part in parts if not isinstance(part, Failure)]
        refused = {place: part for place, part in enumerate(parts) if isinstance(part, Failure)}
        if refused:
            failures += refused.values()
            rows = _rows(request, [index for index, at in enumerate(places) if at in refused])
            request.batch = batch_of(rows)
            left.append(request)
    for failure in failures:
        if failure.code not in NOT_STORED:
            raise RequestRefused(failure)
    return left, failures


def _rows(request: Produce, indices: Iterable[int]) -> Rows:
    batch = request.batch
    return [
        (batch.values[index], None if batch.keys is None else batch.keys[index])
        for index in indices
    ]
