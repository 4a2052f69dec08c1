"""The log engine as everything above core sees it, and the work that it hands to threads.

Nothing above core knows where the log lives: another log can stand behind `LogEngine`. Every call
is made from one thread (the event loop) and returns at once; what may block is a `Work`, whose
`run` is called in a thread and touches no engine state, after which the loop hands it back.

The round of a caller::

    outcome = engine.handle(request, client, now)       # many times
    work = engine.take_flush()                          # None: nothing due, or one is under way
    work.run()                                          # in the flusher's thread
    engine.flushed(work, error, now)                    # durable now; then take_flush() again
    for outcome in engine.take_ready(): ...             # tell outcome.owner
    for work in engine.take_work(): ...                 # run each in its lane, then finished()
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.core.calls import Followed, Request
    from dragoman.core.clock import Now
    from dragoman.core.error import Failure
    from dragoman.core.lag import Lags
    from dragoman.core.outcome import Client, Outcome


class WorkLane(Enum):
    """Where a piece of work runs: one at a time and in order within a lane, but for READ."""

    FLUSH = "flush"
    SEGMENT = "segment"
    CHECKPOINT = "checkpoint"
    COMPACT = "compact"
    READ = "read"


class Work(Protocol):
    """Something that may block, to be run in a thread."""

    lane: WorkLane

    def run(self) -> None:
        """Does it. Raises OSError when the disk fails; the caller passes that back, never
        retries."""


class Flush(Work, Protocol):
    """Everything pending on its way to durability.

    Attributes:
        blocks: It waits for the disk. Otherwise it is short and ends in the page cache, and running
            it on the loop costs less than handing it to a thread.
    """

    blocks: bool


class LogEngine(Protocol):
    """One append-only log with topics, partitions, groups and offsets."""

    def handle(self, request: Request, client: Client, now: Now) -> Outcome:
        """Serves one request. Never raises on what a peer asked: refusals are `Failure` replies."""

    def has_topic(self, namespace: str, topic: str) -> bool:
        """Whether there is such a topic now."""

    def pull(self, outcome: Outcome, now: Now) -> Followed | Failure | None:
        """The next push of a Follow, or None until `take_ready` returns it again.

        A Failure ends the Follow.
        """

    def cancel(self, outcome: Outcome, now: Now) -> None:
        """Forgets a long poll or Follow whose asker lost interest."""

    def connected(self, client: Client, now: Now) -> None:
        """A connection began."""

    def disconnected(self, client: Client, now: Now) -> None:
        """A connection ended: its waiting outcomes are forgotten, its bound memberships given
        up."""

    def take_flush(self) -> Flush | None:
        """Everything pending, as one group to write and sync; None while one is under way."""

    def flushed(self, work: Flush, error: OSError | None, now: Now) -> None:
        """The group is durable, or the engine is fenced. Outcomes that waited for it become
        ready."""

    def take_work(self) -> list[Work]:
        """Segment writes, checkpoints and reads that are due, each handed out once."""

    def finished(self, work: Work, error: OSError | None, now: Now) -> None:
        """A work of `take_work` ended."""

    def take_ready(self) -> list[Outcome]:
        """The outcomes that became ready since the last call, in the order of their requests."""

    def tick(self, now: Now) -> None:
        """Long polls, expiry, retention, interval flushes. Called at least every 50 ms of
        `mono_us`."""

    def overloaded(self) -> bool:
        """Whether producers' sockets should not be read for now (budgets above 75 %)."""

    def begin_close(self, now: Now) -> None:
        """Asks for a last flush and checkpoint; done when `take_flush` and `take_work` stay
        empty."""

    def close(self) -> None:
        """Releases files and the lock."""

    def statistics(self) -> Mapping[str, int | float | str]:
        """Counters and gauges by name."""

    def lags(self, count_max: int) -> Lags:
        """How far groups are behind, up to so many of their partitions."""
