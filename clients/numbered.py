"""The plan of a producer that numbers its records, so that it may send again what was not answered.

The records of each partition count up from 1 within the producer's epoch, and a batch of a
partition is sent only when that before it was acknowledged. What is not known to be stored is sent
again under the same numbers, where the server knows it if it has it. Where a producer gives up on
records of which it cannot know, it goes on in a new epoch, since their numbers must never be those
of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.clients.appending import produce_request
from dragoman.clients.error import (
    ConnectionLost,
    NoAnswer,
    PartlySent,
    RequestRefused,
    Unreachable,
)
from dragoman.clients.plan import TRANSIENT, Ask, is_worth_another
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from dragoman.clients.appending import Rows
    from dragoman.clients.leader import Leaders
    from dragoman.clients.plan import Address, Answer, Plan, Retry
    from dragoman.core.calls import Produced

UNCERTAIN = {ErrorCode.REPLICATION_TIMEOUT, ErrorCode.STORAGE_FAILED, ErrorCode.INTERNAL}
"""Refusals after which the records may be there nevertheless."""


@dataclass(slots=True)
class Share:
    """What of a call goes to one partition and is not acknowledged yet.

    Attributes:
        in_doubt: It may be stored, for all we know.
    """

    rows: Rows
    in_doubt: bool = False


class Numbered:
    """Writes records under sequences; one call at a time.

    Args:
        name: The producer's, unique unless its epoch is higher than that of who had it before.
        turn: Where records without a key begin to go round.
    """

    def __init__(
        self,
        leaders: Leaders,
        retry: Retry,
        *,
        name: str,
        epoch: int,
        acks: calls.Acks = calls.Acks.LEADER,
        turn: int = 0,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.acks = acks
        self._leaders = leaders
        self._retry = retry
        self._turn = turn
        self._next: dict[tuple[str, int], int] = {}

    def produce(self, topic: str, rows: Rows, partition: int | None) -> Plan[list[Produced]]:
        """Appends records, those of one key to one partition and those without to the next one.

        Raises:
            RequestRefused: As the first refusal that another attempt cannot change.
            ClientError: The last attempt's.
            PartlySent: The dialect has no words for some of the records; the others are stored.
            Unsayable: It has none for any of them, or no sequences; nothing was sent.
        """
        shares: dict[int, Share] | None = None
        produced: list[Produced] = []
        pauses = self._retry.pauses()
        try:
            while True:
                stored = len(produced)
                try:
                    leaders = yield from self._leaders.find(topic)
                    if shares is None:
                        shares = self._deal(topic, rows, partition, len(leaders))
                    failure = yield from self._round(topic, shares, produced)
                except Exception as error:
                    failure = error
                if shares == {}:
                    return produced
                if isinstance(failure, Unsayable) and produced:
                    raise PartlySent(failure, produced)
                if failure is not None and not is_worth_another(failure):
                    raise failure
                if len(produced) > stored:
                    pauses = self._retry.pauses()
                elif (pause := next(pauses, None)) is not None:
                    yield pause
                else:
                    assert failure is not None, "what is not stored has a reason"
                    raise failure
        finally:
            if shares and any(share.in_doubt for share in shares.values()):
                self.epoch += 1
                self._next.clear()

    def _deal(self, topic: str, rows: Rows, partition: int | None, count: int) -> dict[int, Share]:
        if partition is not None:
            return {partition: Share(rows)}
        if not count:
            raise RequestRefused(Failure(ErrorCode.NO_PARTITIONS, f"{topic} has no partition"))
        shares: dict[int, Share] = {}
        for row in rows:
            key = row[1]
            chosen = (self._turn if key is None else fnv1a_64(key)) % count
            shares.setdefault(chosen, Share([])).rows.append(row)
        self._turn += 1
        return shares

    def _round(
        self, topic: str, shares: dict[int, Share], produced: list[Produced]
    ) -> Plan[Exception | None]:
        """Sends every share once, all of a leader together; what is acknowledged is taken out.
        Returns why something is left: the reason that weighs most."""
        by_leader: dict[Address, list[int]] = {}
        for partition in shares:
            address = self._leaders.address(topic, partition)
            by_leader.setdefault(address, []).append(partition)
        asks = [
            Ask(address, tuple([self._request(topic, each, shares[each]) for each in partitions]))
            for address, partitions in by_leader.items()
        ]
        doubted = {partition: share.in_doubt for partition, share in shares.items()}
        for share in shares.values():
            share.in_doubt = True
        answers: list[Answer] = yield tuple(asks)
        worst: Exception | None = None
        for (address, partitions), answer in zip(by_leader.items(), answers, strict=True):
            replies: list[object] = []
            if isinstance(answer, list):
                replies += answer
            elif isinstance(answer, PartlySent):
                replies += answer.replies
            if isinstance(answer, Unreachable | ConnectionLost | NoAnswer):
                is_unreachable = isinstance(answer, Unreachable)
                self._leaders.pass_over(address, unreachable=is_unreachable)
            replies += [answer] * (len(partitions) - len(replies))
            for partition, reply in zip(partitions, replies, strict=True):
                shares[partition].in_doubt = doubted[partition]
                error = self._take(topic, partition, shares, reply, produced)
                if error is not None and (worst is None or is_worth_another(worst)):
                    worst = error
        return worst

    def _request(self, topic: str, partition: int, share: Share) -> calls.Produce:
        request = produce_request(topic, share.rows, partition, self.acks)
        request.idempotent = True
        batch = request.batch
        batch.producers = (self.name.encode(),)
        batch.producer_epoch = self.epoch
        batch.base_sequence = self._next.get((topic, partition), 1)
        return request

    def _take(
        self,
        topic: str,
        partition: int,
        shares: dict[int, Share],
        reply: object,
        produced: list[Produced],
    ) -> Exception | None:
        """Counts what a reply acknowledges; returns why it does not acknowledge all."""
        share = shares[partition]
        if isinstance(reply, calls.Produced):
            place = topic, partition
            self._next[place] = self._next.get(place, 1) + reply.count
            self._leaders.acknowledged(topic, partition, reply.leader)
            share.in_doubt = False
            if reply.count:
                produced.append(reply)
            if reply.count == len(share.rows):
                del shares[partition]
                return None
            del share.rows[: reply.count]
            return RequestRefused(Failure(ErrorCode.OVERLOADED, "only a part was stored"))
        if isinstance(reply, Failure):
            if reply.code in UNCERTAIN:
                share.in_doubt = True
            if reply.code is ErrorCode.NOT_LEADER:
                self._leaders.refused(topic, partition, reply.facts.get("leader"))
            elif reply.code in TRANSIENT:
                self._leaders.forget(topic)
            return RequestRefused(reply)
        if isinstance(reply, ConnectionLost | NoAnswer):
            share.in_doubt = True
        assert isinstance(reply, Exception), "an ask is answered by replies or why there are none"
        return reply
