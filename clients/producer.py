"""A producer: writes to the leaders of partitions, and again what was not acknowledged.

::

    async with open_producer("cursus", "127.0.0.1", 9000) as producer:
        await producer.produce("orders", [b"one", b"two"], keys=[b"a", b"b"])

    with connect_producer("cursus") as producer:
        producer.produce("orders", [b"three"])

In a dialect with sequences (Cursus) its records are numbered: after a lost answer, a lost
connection, a new leader or a restart of the server it sends again what is not acknowledged, and no
record is there twice. In a dialect without them it sends again only what is surely not there.
"""

from __future__ import annotations

import random
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import trio

from dragoman.clients.appending import rows_of
from dragoman.clients.error import RequestRefused
from dragoman.clients.leader import Leaders
from dragoman.clients.numbered import Numbered
from dragoman.clients.plan import Address, Retry
from dragoman.clients.pool import Pool, SyncPool
from dragoman.clients.unnumbered import Unnumbered
from dragoman.codecs.base import Unsayable
from dragoman.codecs.registry import dialect as dialect_of
from dragoman.core.calls import Acks
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from dragoman.clients.plan import Plan
    from dragoman.core.calls import Produced

RETRY = Retry()


class Writing:
    """What both faces of a producer do.

    Args:
        home: A server; it tells of the others.
        name: The producer's, under which servers know its numbers; a new one where it is empty.
        epoch: Above that of any earlier producer of this name; milliseconds since 1970 where None.
        acks: What must be true before records count as acknowledged.
        retry: How often, and how fast.
    """

    def __init__(
        self,
        home: Address,
        *,
        name: str = "",
        epoch: int | None = None,
        acks: Acks = Acks.LEADER,
        retry: Retry = RETRY,
    ) -> None:
        leaders = Leaders(home)
        turn = random.randrange(1 << 16)
        self.numbered = Numbered(
            leaders,
            retry,
            name=name or f"dragoman-{random.randbytes(8).hex()}",
            epoch=time.time_ns() // 1_000_000 if epoch is None else epoch,
            acks=acks,
            turn=turn,
        )
        self.unnumbered = Unnumbered(leaders, retry, acks, turn)

    def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        partition: int | None,
    ) -> Plan[list[Produced]]:
        """Appends records, numbered where the dialect numbers them and the topic is there."""
        rows = rows_of(values, keys)
        if not rows:
            return []
        try:
            return (yield from self.numbered.produce(topic, rows, partition))
        except Unsayable:
            pass
        except RequestRefused as refused:
            if refused.code is not ErrorCode.UNKNOWN_TOPIC:
                raise  # a server may make the topic now that it is written to
        return (yield from self.unnumbered.produce(topic, rows, partition))


class Producer:
    """The Trio face, made by `open_producer`. Tasks that share it take turns."""

    def __init__(self, pool: Pool, writing: Writing) -> None:
        self._pool = pool
        self._writing = writing
        self._turn = trio.Lock()

    async def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partition: int | None = None,
    ) -> list[Produced]:
        """Appends records, and returns once all are acknowledged.

        Records of one key go to one partition, those without a key of one call to the next in turn;
        or all to the partition that is named.

        Returns:
            Where they went, an entry for each acknowledgement.

        Raises:
            RequestRefused: The server refused some of them.
            Unreachable, ConnectionLost, NoAnswer: As the last of the attempts ended.
            Unsayable: The dialect has no words for them; nothing was sent.
            PartlySent: It has none for some of them; the others are stored.
        """
        async with self._turn:
            return await self._pool.run(self._writing.produce(topic, values, keys, partition))


class SyncProducer:
    """The synchronous face, made by `connect_producer`; for one thread."""

    def __init__(self, pool: SyncPool, writing: Writing) -> None:
        self._pool = pool
        self._writing = writing

    def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partition: int | None = None,
    ) -> list[Produced]:
        """Appends records, and returns once all are acknowledged; see `Producer.produce`."""
        return self._pool.run(self._writing.produce(topic, values, keys, partition))


@asynccontextmanager
async def open_producer(
    dialect: str = "cursus",
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    name: str = "",
    epoch: int | None = None,
    acks: Acks = Acks.LEADER,
    retry: Retry = RETRY,
    **options: Any,
) -> AsyncIterator[Producer]:
    """A producer; connections are made when they are first needed.

    Args:
        name, epoch, acks, retry: As `Writing` has them.
        options: Of `open_client`.
    """
    home = Address(host, dialect_of(dialect).port if port is None else port)
    pool = Pool(dialect, **options)
    try:
        yield Producer(pool, Writing(home, name=name, epoch=epoch, acks=acks, retry=retry))
    finally:
        await pool.aclose()


@contextmanager
def connect_producer(
    dialect: str = "cursus",
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    name: str = "",
    epoch: int | None = None,
    acks: Acks = Acks.LEADER,
    retry: Retry = RETRY,
    **options: Any,
) -> Iterator[SyncProducer]:
    """The same without Trio."""
    home = Address(host, dialect_of(dialect).port if port is None else port)
    pool = SyncPool(dialect, **options)
    try:
        yield SyncProducer(pool, Writing(home, name=name, epoch=epoch, acks=acks, retry=retry))
    finally:
        pool.close()
