"""Requests that are served in several steps, between which others are: as generators.

A generator reads like a function and yields what it has to wait for: a read that blocks, the next
flush, or a piece of work that several requests share. While nothing has to be waited for it runs
through within `handle`. It ends by returning its reply and the newest sequence that the reply
reveals, or by raising an `EngineError`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman.core.error import EngineError
from dragoman.core.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Reply
    from dragoman.core.interface import Work
    from dragoman.core.outcome import Client
    from dragoman.core.reader import Reader
    from dragoman.core.waiting import Waiting

Result = TypeVar("Result")


class Flushed:
    """What a step yields that waits for the end of a flush, good or bad."""


FLUSHED: Final = Flushed()


class Shared:
    """A piece of work that requests wait for, begun by the first of them.

    Attributes:
        done: It ended.
        error: How, if badly.
    """

    def __init__(self) -> None:
        self.waiters: list[Job] = []
        self.done = False
        self.error: EngineError | None = None


if TYPE_CHECKING:
    Awaited = Work | Flushed | Shared
    Steps = Generator[Awaited, Any, Result]
    """What waits for a `Work` is resumed with the batches that it read."""
    Served = Steps[tuple[Reply, int]]
else:
    Steps = Generator
    Served = Generator


class Job:
    """The `state` of an outcome whose steps wait.

    Attributes:
        client: Who asked; None for shared work.
    """

    __slots__ = ("client", "on_end", "outcome", "steps")

    def __init__(
        self,
        steps: Generator[Awaited, Any, Any],
        client: Client | None,
        on_end: Callable[..., None],
    ) -> None:
        self.steps = steps
        self.client = client
        self.outcome: Outcome | None = None
        self.on_end = on_end


class Jobs:
    """Drives jobs.

    Args:
        revealed_by_refusal: The newest sequence that a refusal may reveal.
    """

    def __init__(
        self, reader: Reader, waiting: Waiting, revealed_by_refusal: Callable[[], int]
    ) -> None:
        self._reader = reader
        self._waiting = waiting
        self._revealed_by_refusal = revealed_by_refusal
        self._for_flush: list[Job] = []

    def serve(self, steps: Served, client: Client) -> Outcome:
        """The outcome of a request that these steps serve.

        Raises:
            EngineError: They refuse at once.
        """
        try:
            awaited = next(steps)
        except StopIteration as done:
            reply, sequence = done.value
            return self._waiting.answer(client, reply, sequence)
        job = Job(steps, client, self._settle)
        outcome = job.outcome = Outcome(None, ready=False)
        outcome.state = job
        self._waiting.keep(client, outcome)
        self._wait(job, awaited)
        return outcome

    def share(self, steps: Steps[None]) -> Shared:
        """Begins work that several requests may wait for; it goes on whoever leaves."""
        shared = Shared()

        def end(job: Job, _: None, error: EngineError | None) -> None:
            shared.done = True
            shared.error = error
            waiters, shared.waiters = shared.waiters, []
            for waiter in waiters:
                self._resume(waiter, None, None)

        job = Job(steps, None, end)
        job.outcome = Outcome(None, ready=False)
        job.outcome.state = job
        self._resume(job, None, None)
        return shared

    def read_ended(
        self, outcome: Outcome, batches: list[RecordBatch], error: EngineError | None
    ) -> None:
        """A read that blocks ended."""
        if outcome.state is not None:
            self._resume(outcome.state, batches, error)

    def flushed(self) -> None:
        """A flush ended, or the store is fenced."""
        if self._for_flush:
            jobs, self._for_flush = self._for_flush, []
            for job in jobs:
                self._resume(job, None, None)

    def cancel(self, outcome: Outcome) -> None:
        """Nobody waits for this any more."""
        job: Job = outcome.state
        outcome.state = None
        job.steps.close()
        assert job.client is not None, "shared work is nobody's"
        self._waiting.let_go(job.client, outcome)

    def _resume(self, job: Job, value: object, error: EngineError | None) -> None:
        outcome = job.outcome
        assert outcome is not None
        if outcome.state is None:
            return  # cancelled
        try:
            awaited = job.steps.send(value) if error is None else job.steps.throw(error)
        except StopIteration as done:
            outcome.state = None
            job.on_end(job, done.value, None)
        except EngineError as failed:
            outcome.state = None
            job.on_end(job, None, failed)
        else:
            self._wait(job, awaited)

    def _wait(self, job: Job, awaited: Awaited) -> None:
        if isinstance(awaited, Shared):
            awaited.waiters.append(job)
        elif isinstance(awaited, Flushed):
            self._for_flush.append(job)
        else:
            assert job.outcome is not None
            self._reader.submit(awaited, job.outcome, self)

    def _settle(
        self, job: Job, served: tuple[Reply, int] | None, error: EngineError | None
    ) -> None:
        outcome, client = job.outcome, job.client
        assert outcome is not None
        assert client is not None
        self._waiting.let_go(client, outcome)
        if served is not None:
            self._waiting.settle(outcome, client, *served)
        else:
            assert error is not None
            self._waiting.settle(outcome, client, error.failure(), self._revealed_by_refusal())
