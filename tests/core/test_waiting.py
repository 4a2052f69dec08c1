"""Outcomes leave when what they reveal is durable, in the order of their requests."""

from __future__ import annotations

from dragoman.core.calls import Ponged
from dragoman.core.change import NamespacePut
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from dragoman.core.waiting import Waiting
from support.log import Log

ME, OTHER = Client(1, "test"), Client(2, "test")


def flush(store: MemoryStore, error: OSError | None = None) -> None:
    work = store.take_flush(Log().now)
    assert work is not None
    store.flushed(work, error)


def test_a_reply_waits_for_what_it_reveals() -> None:
    store = MemoryStore()
    waiting = Waiting(store)
    sequence = store.append(NamespacePut(1, "n", 0))
    early, late = waiting.answer(ME, Ponged(), 0), waiting.answer(ME, Ponged(), sequence)
    assert (early.ready, late.ready) == (True, False)
    waiting.release()
    assert waiting.take_ready() == []
    flush(store)
    waiting.release()
    assert waiting.take_ready() == [late]


def test_what_waits_at_a_store_that_failed_is_refused() -> None:
    store = MemoryStore()
    waiting = Waiting(store)
    outcome = waiting.answer(ME, Ponged(), store.append(NamespacePut(1, "n", 0)))
    flush(store, OSError(5, "I/O error"))
    waiting.release()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.STORAGE_FAILED


def test_nobody_is_told_of_what_a_gone_client_waited_for() -> None:
    store = MemoryStore()
    waiting = Waiting(store)
    sequence = store.append(NamespacePut(1, "n", 0))
    waiting.answer(ME, Ponged(), sequence)
    mine = waiting.answer(OTHER, Ponged(), sequence)
    waiting.forget(ME)
    flush(store)
    waiting.release()
    assert waiting.take_ready() == [mine]
