"""An engine over a log in memory, flushed by hand, for tests that ask it in core's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice, Fetch, Produce
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from dragoman.core.outcome import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import Request
    from dragoman.core.outcome import Outcome

WALL_US = 1_700_000_000_000_000


def batch(*values: bytes | None, keys: Sequence[bytes | None] | None = None) -> RecordBatch:
    """A batch of these values."""
    return RecordBatch(
        len(values),
        VarColumn.of(values),
        origin=Origin.CURSUS,
        keys=None if keys is None else VarColumn.of(keys),
    )


def values(slices: Sequence[BatchSlice]) -> list[bytes | None]:
    """The values of the records in these slices."""
    return [record.value for piece in slices for record in piece.batch.records(*piece[1:])]


class Log:
    """An engine with one client, a manual clock, and a flush that happens when told to.

    Attributes:
        ready: Every outcome that `take_ready` has returned since it was last cleared.
    """

    def __init__(self, store: MemoryStore | None = None, **options: int) -> None:
        self.store = MemoryStore() if store is None else store
        self.engine = Engine(self.store, EngineOptions(**options))
        self.client = Client(1, "test")
        self.now = Now(WALL_US, 1_000_000)
        self.ready: list[Outcome] = []

    def hand(self, request: Request, client: Client | None = None) -> Outcome:
        """Hands the request in; nothing is flushed."""
        outcome = self.engine.handle(request, client or self.client, self.now)
        self.collect()
        return outcome

    def collect(self) -> None:
        """Takes what became ready."""
        self.ready += self.engine.take_ready()

    def flush(self, error: OSError | None = None) -> None:
        """Flushes once, if anything is pending."""
        work = self.engine.take_flush()
        if work is not None:
            work.run()
            self.engine.flushed(work, error, self.now)
        self.collect()

    def work(self, error: OSError | None = None) -> int:
        """Runs the reads that block; returns how many there were."""
        works = self.engine.take_work()
        for work in works:
            work.run()
            self.engine.finished(work, error, self.now)
        self.collect()
        return len(works)

    def ask(self, request: Request, client: Client | None = None) -> Any:
        """The reply, after as many flushes and reads as it needs."""
        outcome = self.hand(request, client)
        for _ in range(4):
            if outcome.ready:
                break
            self.flush()
            self.work()
        assert outcome.ready, "the outcome never became ready"
        return outcome.reply

    def refused(self, request: Request, client: Client | None = None) -> Failure:
        """The failure that answers the request."""
        reply = self.ask(request, client)
        assert isinstance(reply, Failure), reply
        return reply

    def code(self, request: Request, client: Client | None = None) -> ErrorCode:
        """The reason for which the request is refused."""
        return self.refused(request, client).code

    def put(self, topic: str, *written: bytes | None, partition: int = 0) -> Any:
        """Produces these values durably; makes the topic with 3 partitions where it is missing."""
        return self.ask(Produce(topic, batch(*written), partition, create_partitions=3))

    def read(self, topic: str, offset: int = 0, partition: int = 0, **fields: Any) -> list[Any]:
        """The values that a fetch returns."""
        return values(self.ask(Fetch(topic, partition, offset, **fields)).slices)

    def pass_time(self, seconds: float) -> None:
        """Moves both clocks and ticks."""
        passed = round(seconds * 1_000_000)
        self.now = Now(self.now.wall_us + passed, self.now.mono_us + passed)
        self.engine.tick(self.now)
        self.collect()
