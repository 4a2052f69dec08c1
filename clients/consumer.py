"""A member of a consumer group: reads its share of a topic, and goes on where the group committed.

::

    async with open_consumer("orders", "billing") as consumer:
        async for delivered in consumer:
            for record in delivered.records:
                print(delivered.partition, record.offset, record.value)
            await consumer.commit()

    with connect_consumer("orders", "billing") as consumer:
        for delivered in consumer:
            ...
            consumer.commit()

Every record is delivered at least once: what was not committed when a member dies, or when its
partition goes to another one, comes again. Heartbeats go on their own connection, however long the
records take. Dialects: those whose members live by heartbeats, Cursus and V1.
"""

from __future__ import annotations

import random
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import trio

from dragoman.clients import task as tasks
from dragoman.clients.leader import Leaders
from dragoman.clients.membership import Membership
from dragoman.clients.plan import Address, Retry
from dragoman.clients.pool import Pool, SyncPool
from dragoman.codecs.registry import dialect as dialect_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from dragoman.clients.membership import Delivered

HEARTBEAT_S = 3.0
"""A third of the shortest session timeout that servers have by default."""
WAIT_S = 1.0
LEAVE_TIMEOUT_S = 2.0
"""How long the end waits for a server to hear that the member leaves."""
RECORDS_MAX = 8192
"""Of one partition in one delivery."""
RETRY = Retry()


class _Consumer:
    """What both faces tell of themselves."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    @property
    def member(self) -> str:
        """The member's id, as the server has it."""
        return self._membership.member

    @property
    def generation(self) -> int:
        """The group's generation as it was joined last; 0 before the first poll."""
        return self._membership.generation

    @property
    def is_stale(self) -> bool:
        """The group has moved on since, or was not joined yet: the next poll joins."""
        return self._membership.is_stale

    @property
    def partitions(self) -> tuple[int, ...]:
        """The member's share of the topic."""
        return tuple(self._membership.positions)


class Consumer(_Consumer):
    """The Trio face, made by `open_consumer`; for one task at a time."""

    def __init__(self, pool: Pool, membership: Membership) -> None:
        super().__init__(membership)
        self._pool = pool
        self._turn = trio.Lock()

    async def poll(
        self, wait_s: float = WAIT_S, *, records_max: int = RECORDS_MAX
    ) -> list[Delivered]:
        """What is new, joining first where that has to be; nothing if that is so for `wait_s`.

        Raises:
            RequestRefused: The group or topic is refused, for a reason that does not pass.
            Unreachable, ConnectionLost, NoAnswer: As the last of the attempts ended.
            Unsayable: The dialect has no such groups.
        """
        async with self._turn:
            return await self._pool.run(self._membership.poll(wait_s, records_max))

    async def commit(self, offsets: Mapping[int, int] | None = None) -> bool:
        """Stores the next offset to read of all that was delivered, or of each partition as given.

        Returns:
            Whether all are stored. If not, a partition has gone to another member, who gets its
            records again from the last commit on.
        """
        async with self._turn:
            return await self._pool.run(self._membership.commit(offsets))

    async def __aiter__(self) -> AsyncIterator[Delivered]:
        """Yields deliveries for ever."""
        while True:
            for delivered in await self.poll():
                yield delivered


class SyncConsumer(_Consumer):
    """The synchronous face, made by `connect_consumer`; for one thread at a time."""

    def __init__(self, pool: SyncPool, membership: Membership) -> None:
        super().__init__(membership)
        self._pool = pool

    def poll(self, wait_s: float = WAIT_S, *, records_max: int = RECORDS_MAX) -> list[Delivered]:
        """What is new; see `Consumer.poll`."""
        return self._pool.run(self._membership.poll(wait_s, records_max))

    def commit(self, offsets: Mapping[int, int] | None = None) -> bool:
        """Stores the next offsets to read; see `Consumer.commit`."""
        return self._pool.run(self._membership.commit(offsets))

    def __iter__(self) -> Iterator[Delivered]:
        """Yields deliveries for ever."""
        while True:
            yield from self.poll()


def _membership(
    topic: str, group: str, home: Address, member: str, offset: str, retry: Retry
) -> Membership:
    name = member or f"dragoman-{random.randbytes(4).hex()}"
    return Membership(Leaders(home), retry, topic=topic, group=group, member=name, offset=offset)


@asynccontextmanager
async def open_consumer(
    topic: str,
    group: str,
    dialect: str = "cursus",
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    member: str = "",
    offset: str = tasks.EARLIEST,
    retry: Retry = RETRY,
    heartbeat_s: float = HEARTBEAT_S,
    **options: Any,
) -> AsyncIterator[Consumer]:
    """A member of a group, which joins at its first poll and leaves at the end.

    Args:
        member: Its name; one that nobody has where it is empty.
        offset: Where to begin in partitions of which the group committed nothing: `earliest`, or
            `latest`.
        retry: How often, and how fast, what may pass is tried again.
        options: Of `open_client`.
    """
    home = Address(host, dialect_of(dialect).port if port is None else port)
    membership = _membership(topic, group, home, member, offset, retry)
    pool, heart = Pool(dialect, **options), Pool(dialect, **options)

    async def live() -> None:
        while True:
            await trio.sleep(heartbeat_s)
            await heart.run(membership.beat())

    ended: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live)
        try:
            yield Consumer(pool, membership)
        except BaseException as error:
            ended = error  # raised below as it is, instead of in a nursery's group
        with trio.CancelScope(shield=True):
            with trio.move_on_after(LEAVE_TIMEOUT_S):
                await pool.run(membership.leave())
            nursery.cancel_scope.cancel()
            await pool.aclose()
            await heart.aclose()
    if ended is not None:
        raise ended


@contextmanager
def connect_consumer(
    topic: str,
    group: str,
    dialect: str = "cursus",
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    member: str = "",
    offset: str = tasks.EARLIEST,
    retry: Retry = RETRY,
    heartbeat_s: float = HEARTBEAT_S,
    **options: Any,
) -> Iterator[SyncConsumer]:
    """The same without Trio; its heartbeats, and its end, have a thread of their own."""
    home = Address(host, dialect_of(dialect).port if port is None else port)
    membership = _membership(topic, group, home, member, offset, retry)
    pool, heart = SyncPool(dialect, **options), SyncPool(dialect, **options)
    over = threading.Event()

    def live() -> None:
        while not over.wait(heartbeat_s):
            heart.run(membership.beat())
        pool.run(membership.leave())  # the end is this thread's, so that it may take long
        pool.close()
        heart.close()

    thread = threading.Thread(target=live, name=f"heart of {membership.member}", daemon=True)
    thread.start()
    try:
        yield SyncConsumer(pool, membership)
    finally:
        over.set()
        thread.join(LEAVE_TIMEOUT_S)
