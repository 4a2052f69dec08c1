from __future__ import annotations

from collections import deque
from threading import Event, get_ident
from typing import TYPE_CHECKING

import trio
from structlog.testing import capture_logs

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryFlush, MemoryStore
from dragoman.gateway.flusher import Flusher
from dragoman.gateway.wakeup import Wakeup
from dragoman.gateway.worker import Workers
from support.conversation import Conversation, Exchange
from support.house import ask, hear, open_house
from support.toy import TOY

if TYPE_CHECKING:
    import pytest

    from dragoman.gateway.worker import Done


async def test_what_arrives_during_a_flush_is_the_next_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[int] = []
    first, go = Event(), Event()
    run = MemoryFlush.run

    def slow(work: MemoryFlush) -> None:
        groups.append(len(work.entries))
        first.set()
        go.wait(5)
        run(work)

    monkeypatch.setattr(MemoryFlush, "run", slow)
    async with open_house() as house:
        peers = [house.connect() for _ in range(8)]
        await peers[0].send_all(b"p a\n")
        await trio.to_thread.run_sync(first.wait)
        for peer in peers[1:]:
            await peer.send_all(b"p b\n")
        await ask(house.connect(), b"e x\n", b"x\n")
        go.set()
        for peer in peers:
            assert (await hear(peer, 5)).startswith(b"ok ")
    assert len(groups) == 2


async def test_flushes_run_in_a_thread_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    run = MemoryFlush.run

    def noted(work: MemoryFlush) -> None:
        threads.append(get_ident())
        run(work)

    monkeypatch.setattr(MemoryFlush, "run", noted)
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        await ask(peer, b"p b\n", b"ok 1\n")
    assert len(set(threads)) == 1
    assert get_ident() not in threads


async def test_a_failed_flush_refuses_what_waited_and_the_server_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(work: MemoryFlush) -> None:
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr(MemoryFlush, "run", broken)
    with capture_logs() as log:
        async with open_house() as house:
            peer = house.connect()
            await ask(peer, b"p a\n", b"refused STORAGE_FAILED\n")
            await ask(peer, b"p b\ne on\n", b"refused STORAGE_FAILED\non\n")
    assert [entry["event"] for entry in log] == ["work failed"]


async def test_a_bug_in_a_work_fences_the_engine_like_a_broken_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(work: MemoryFlush) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(MemoryFlush, "run", broken)
    with capture_logs():
        async with open_house() as house:
            await ask(house.connect(), b"p a\n", b"refused STORAGE_FAILED\n")


async def test_wait_quiet_returns_when_the_last_thread_is_done() -> None:
    async with open_house() as house:
        await house.connect().send_all(b"p a\n")
        await trio.testing.wait_all_tasks_blocked()
        await house.flusher.wait_quiet()
        assert house.flusher.quiet


def test_an_outcome_without_an_owner_is_passed_over() -> None:
    toy = Conversation(TOY, exchange=Exchange(Engine(MemoryStore())))
    flusher = Flusher(toy.engine)
    flusher.poke(toy.now)
    assert flusher.quiet
    flusher.close()


def test_one_worker_runs_jobs_in_order_and_many_return_what_they_raised() -> None:
    done: deque[Done] = deque()
    workers = Workers("test", 1, done, lambda: None)
    for number in range(20):
        workers.hand(number, lambda number=number: number * 2)
    workers.hand("bad", lambda: 1 // 0)
    workers.close()
    assert [(name, result) for name, result, _ in done][:20] == [(n, 2 * n) for n in range(20)]
    assert isinstance(done[20][2], ZeroDivisionError)


async def test_a_thread_wakes_a_waiting_task() -> None:
    wakeup = Wakeup()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, wakeup.signal)
        with trio.fail_after(5):
            await wakeup.wait_signalled()
    with trio.move_on_after(0) as again:
        await wakeup.wait_signalled()
    assert again.cancelled_caught
    wakeup.close()
