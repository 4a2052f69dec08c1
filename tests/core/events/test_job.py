"""Requests in several steps: what they wait for, who leaves, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import Ponged
from dragoman.core.error import EngineError, ErrorCode, Failure
from dragoman.core.events.job import FLUSHED, Jobs
from dragoman.core.memory import MemoryRead, MemoryStore
from dragoman.core.outcome import Client
from dragoman.core.reader import Reader
from dragoman.core.waiting import Waiting

if TYPE_CHECKING:
    from dragoman.core.events.job import Served, Steps

CLIENT = Client(1, "test")


class Desk:
    """Jobs over a store in memory."""

    def __init__(self) -> None:
        store = MemoryStore()
        self.waiting = Waiting(store)
        self.reader = Reader(store, None)  # type: ignore[arg-type]
        self.jobs = Jobs(self.reader, self.waiting, lambda: 0)

    def work(self, error: OSError | None = None) -> None:
        """Runs what was handed out."""
        for work in self.reader.take_work():
            work.run()
            self.reader.finished(work, error)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def answered() -> Served:
    return Ponged(), 0
    yield FLUSHED


def refused() -> Served:
    raise EngineError(ErrorCode.MALFORMED, "no")
    yield FLUSHED


def test_steps_that_wait_for_nothing_answer_at_once(desk: Desk) -> None:
    outcome = desk.jobs.serve(answered(), CLIENT)
    assert (outcome.ready, outcome.reply) == (True, Ponged())


def test_steps_that_refuse_at_once_raise(desk: Desk) -> None:
    with pytest.raises(EngineError):
        desk.jobs.serve(refused(), CLIENT)


def test_a_flush_is_waited_for(desk: Desk) -> None:
    def steps() -> Served:
        yield FLUSHED
        yield FLUSHED
        return Ponged(), 0

    outcome = desk.jobs.serve(steps(), CLIENT)
    desk.jobs.flushed()
    assert not outcome.ready
    desk.jobs.flushed()
    assert outcome.ready
    assert desk.waiting.take_ready() == [outcome]
    assert desk.waiting.kept(CLIENT) == []


def test_a_read_is_waited_for_and_gives_its_batches(desk: Desk) -> None:
    got: list[object] = []

    def steps() -> Served:
        got.append((yield MemoryRead([], None)))
        return Ponged(), 0

    outcome = desk.jobs.serve(steps(), CLIENT)
    desk.work()
    assert (outcome.ready, got) == (True, [[]])


def test_a_read_that_fails_refuses(desk: Desk) -> None:
    def steps() -> Served:
        yield MemoryRead([], None)
        return Ponged(), 0

    outcome = desk.jobs.serve(steps(), CLIENT)
    desk.work(OSError("gone"))
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.STORAGE_FAILED


def test_shared_work_is_waited_for_by_all(desk: Desk) -> None:
    def work() -> Steps[None]:
        yield FLUSHED

    shared = desk.jobs.share(work())

    def steps() -> Served:
        yield shared
        assert shared.done
        return Ponged(), 0

    outcomes = [desk.jobs.serve(steps(), CLIENT) for _ in range(3)]
    assert not any(outcome.ready for outcome in outcomes)
    desk.jobs.flushed()
    assert desk.waiting.take_ready() == outcomes


def test_shared_work_that_fails_says_so(desk: Desk) -> None:
    def work() -> Steps[None]:
        yield FLUSHED
        raise EngineError(ErrorCode.DAMAGED)

    shared = desk.jobs.share(work())
    desk.jobs.flushed()
    assert shared.done
    assert shared.error is not None
    assert shared.error.code is ErrorCode.DAMAGED


def test_who_leaves_is_not_resumed(desk: Desk) -> None:
    ended: list[str] = []

    def steps() -> Served:
        try:
            yield FLUSHED
            ended.append("resumed")
        finally:
            ended.append("closed")
        return Ponged(), 0

    outcome = desk.jobs.serve(steps(), CLIENT)
    desk.jobs.cancel(outcome)
    desk.jobs.flushed()
    assert ended == ["closed"]
    assert not outcome.ready
    assert desk.waiting.kept(CLIENT) == []
