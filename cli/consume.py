"""`dragoman consume`: read records over any dialect, one line of JSON each."""

from __future__ import annotations

import sys
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import trio
from cyclopts import Parameter

from dragoman.cli.asking import HERE, At, Where, guarded, record_row, show
from dragoman.cli.member import consume_as_member
from dragoman.clients import task as tasks
from dragoman.clients.connection import open_client
from dragoman.clients.error import ClientError
from dragoman.codecs.base import Unsayable

if TYPE_CHECKING:
    from dragoman.clients.task import Offset
    from dragoman.core.calls import Fetched, Followed


def consume(
    topic: str,
    /,
    *,
    partition: int | None = None,
    offset: str = tasks.EARLIEST,
    max_: Annotated[int | None, Parameter(name="--max")] = None,
    follow: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    group: str | None = None,
    at: At = HERE,
) -> int:
    """Read records; prints partition, offset, timestamp_us where known, key and value.

    Parameters
    ----------
    topic
        The topic, as `topic` or `namespace/topic`.
    partition
        Which partition; all of them where it is missing.
    offset
        Where to begin: earliest, latest or a number.
    max_
        Stop after so many records.
    follow
        Go on with what arrives, instead of stopping at the end.
    group
        Read as a member of this group, from where it committed, and commit what is printed; each
        record is printed by one of its members. --offset says where a new group begins.
    """

    if group is not None:
        return consume_as_member(topic, group, partition, offset, max_, follow, at)

    def action() -> None:
        reading = Reading(topic, int(offset) if offset.isdecimal() else offset, max_, at)
        trio.run(reading.run, partition, follow)

    return guarded(at, action)


class Reading:
    """One run of the command.

    Args:
        left: How many records may still be printed; None for all.
    """

    def __init__(self, topic: str, offset: Offset, left: int | None, at: Where) -> None:
        if left is not None and left < 0:
            raise ValueError(f"--max is how many records to print, not {left}")
        if isinstance(offset, str):
            tasks.whence_of(offset)
        self.topic = topic
        self.offset = offset
        self.left = left
        self.error: Exception | None = None
        self.open = partial(open_client, at.dialect, at.host, at.port, **at.secured)

    async def run(self, partition: int | None, follow: bool) -> None:
        """Reads one partition or all."""
        if partition is None:
            async with self.open() as client:
                partitions = range(await client.run(tasks.partition_count(self.topic)))
        else:
            partitions = range(partition, partition + 1)
        if not follow:
            for number in partitions:
                await self.read(number)
            return
        async with trio.open_nursery() as nursery:
            for number in partitions:
                nursery.start_soon(self.follow, number, nursery.cancel_scope)
        if self.error is not None:
            raise self.error

    async def read(self, partition: int) -> None:
        """Prints a partition from the offset to its end."""
        offset = self.offset
        async with self.open() as client:
            while self.left is None or self.left > 0:
                records_max = self.left or tasks.RECORDS_MAX
                task = tasks.fetch(self.topic, partition, offset, records_max=records_max)
                fetched = await client.run(task)
                if not fetched.slices:
                    return
                self.print(fetched)
                offset = fetched.next_offset

    async def follow(self, partition: int, scope: trio.CancelScope) -> None:
        """Prints a partition from the offset on, until enough is printed or one of them fails."""
        try:
            async with (
                self.open() as client,
                aclosing(client.follow(self.topic, partition, self.offset)) as pushes,
            ):
                async for followed in pushes:
                    self.print(followed)
                    if self.left == 0:
                        scope.cancel()
        except (ClientError, Unsayable, OSError) as error:
            self.error = self.error or error
            scope.cancel()

    def print(self, reply: Fetched | Followed) -> None:
        """Prints the records of a reply, as many as are still wanted."""
        records = tasks.records_of(reply)
        if self.left is not None:
            records = records[: self.left]
            self.left -= len(records)
        for record in records:
            show(record_row(reply.partition, record))
        sys.stdout.flush()
