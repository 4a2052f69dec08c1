"""`dragoman consume --group`: read as a member of a group, and commit what was printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dragoman.cli.asking import UNSAYABLE, Where, complain, guarded, reach, record_row, show
from dragoman.clients.consumer import WAIT_S, connect_consumer
from dragoman.clients.task import EARLIEST, LATEST

if TYPE_CHECKING:
    from dragoman.clients.consumer import SyncConsumer
    from dragoman.clients.membership import Delivered


def consume_as_member(
    topic: str,
    group: str,
    partition: int | None,
    offset: str,
    left: int | None,
    follow: bool,
    at: Where,
) -> int:
    """Prints what the group has not committed yet of this member's share, until there is no more.

    Args:
        left: Stop after so many records; None for no limit.
        follow: Wait for more instead of stopping.
    """
    if partition is not None:
        return complain("a group deals the partitions: --partition goes without it", UNSAYABLE)
    if offset not in (EARLIEST, LATEST):
        return complain(f"a group begins at {EARLIEST} or {LATEST}, not {offset}", UNSAYABLE)
    if left is not None and left < 0:
        return complain(f"--max is how many records to print, not {left}", UNSAYABLE)

    def action() -> None:
        reach(at)
        where = (at.dialect, at.host, at.port)
        with connect_consumer(topic, group, *where, offset=offset, **at.secured) as consumer:
            _read(consumer, left, follow)

    return guarded(at, action)


def _read(consumer: SyncConsumer, left: int | None, follow: bool) -> None:
    while left is None or left > 0:
        polled = consumer.poll(WAIT_S if follow else 0)
        if not polled and not follow:
            return
        for delivered in polled:
            printed = _print(delivered, left)
            if left is not None:
                left -= printed
            if printed:
                end = delivered.next_offset
                if printed < len(delivered.records):
                    end = delivered.records[printed].offset
                consumer.commit({delivered.partition: end})


def _print(delivered: Delivered, left: int | None) -> int:
    """Prints as many records as are wanted still; returns how many that were."""
    records = delivered.records[:left]
    for record in records:
        show(record_row(delivered.partition, record))
    sys.stdout.flush()
    return len(records)
