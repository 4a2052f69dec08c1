from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
import trio.testing

from dragoman.gateway import session as session_module
from dragoman.gateway.carrier import SLOW_READER_US
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.stream import SEND_BYTES_MAX, StreamConnection
from support.house import House, ask, hear, hear_end, open_house

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


@asynccontextmanager
async def connected(
    house: House, *, lockstep: bool = False
) -> AsyncIterator[tuple[trio.StapledStream, StreamConnection, trio.Event]]:
    """A peer's end, the connection, and an event that says it is over.

    Args:
        lockstep: What is sent waits until the other end has received it.
    """
    testing = trio.testing
    theirs, ours = testing.lockstep_stream_pair() if lockstep else testing.memory_stream_pair()
    connection = StreamConnection(
        ours,
        house.session(),
        house.flusher,
        idle_us=60_000_000,
        inflow=house.inflow,
        clock=house.clock,
    )
    over = trio.Event()

    async def run() -> None:
        await connection.run()
        over.set()

    house.nursery.start_soon(run)
    yield theirs, connection, over
    await trio.aclose_forcefully(theirs)


async def test_requests_are_answered_in_order() -> None:
    async with open_house() as house, connected(house) as (peer, _, _):
        await ask(peer, b"p a\ne b\n", b"ok 0\nb\n")
        await ask(peer, b"f 0\n", b"got a\n")


async def test_every_byte_alone_is_the_same_request() -> None:
    async with open_house() as house, connected(house) as (peer, _, _):
        for byte in b"p hello\n":
            await peer.send_all(bytes([byte]))
        assert await hear(peer, 5) == b"ok 0\n"


async def test_another_connections_write_reaches_a_follower() -> None:
    async with open_house() as house, connected(house) as (peer, _, _):
        await ask(peer, b"p a\ns 0 0\n", b"ok 0\npush a\n")
        await ask(house.connect(), b"p b\n", b"ok 1\n")
        assert await hear(peer, 7) == b"push b\n"


async def test_a_peer_that_ends_its_half_still_gets_what_it_asked() -> None:
    async with open_house() as house, connected(house) as (peer, _, over):
        await peer.send_all(b"p a\n")
        await peer.send_eof()
        assert await hear_end(peer) == b"ok 0\n"
        await over.wait()


async def test_a_fatal_refusal_is_said_and_then_the_stream_ends() -> None:
    async with open_house() as house, connected(house) as (peer, _, over):
        await peer.send_all(b"R\n")
        assert await hear_end(peer) == b"refused MALFORMED\n"
        await over.wait()


async def test_a_vanished_peer_ends_the_connection() -> None:
    async with open_house() as house, connected(house) as (peer, _, over):
        await ask(peer, b"e x\n", b"x\n")
        await trio.aclose_forcefully(peer)
        with trio.fail_after(5):
            await over.wait()


async def test_offloaded_work_goes_through_a_thread() -> None:
    async with open_house() as house, connected(house) as (peer, _, _):
        await ask(peer, b"o one\ne two\n", b"one\ntwo\n")


async def test_a_reader_that_is_slow_holds_back_its_own_requests_only() -> None:
    async with open_house() as house, connected(house) as (peer, _, _):
        await peer.send_all(b"n 700000\n" * 6 + b"e end\n")
        assert await hear(peer, 6 * 700_001 + 4) == (b"n" * 700_000 + b"\n") * 6 + b"end\n"


async def test_an_idle_connection_is_closed() -> None:
    async with open_house() as house, connected(house) as (peer, connection, over):
        await ask(peer, b"e x\n", b"x\n")
        house.pass_time(61)
        connection.sweep(house.clock())
        with trio.fail_after(5):
            await over.wait()


async def test_a_follower_is_kept_alive() -> None:
    async with open_house() as house, connected(house) as (peer, connection, _):
        await ask(peer, b"p a\ns 0 3000\n", b"ok 0\npush a\n")
        house.pass_time(4)
        connection.sweep(house.clock())
        assert await hear(peer, 5) == b"idle\n"


async def test_a_producer_rests_while_the_engine_is_overloaded() -> None:
    async with open_house() as house, connected(house) as (peer, connection, _):
        await ask(peer, b"p a\n", b"ok 0\n")
        house.flusher.overloaded = True
        await ask(peer, b"e x\n", b"x\n")
        await peer.send_all(b"e y\n")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.session.outbox.size == 0
        house.flusher.overloaded = False
        connection.wake_resting(house.clock())
        assert await hear(peer, 2) == b"y\n"


async def test_draining_closes_what_is_owed_nothing() -> None:
    async with open_house() as house, connected(house) as (peer, connection, over):
        await ask(peer, b"p a\n", b"ok 0\n")
        connection.drain(house.clock())
        assert await hear_end(peer) == b""
        with trio.fail_after(5):
            await over.wait()


async def test_who_paused_goes_on_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "HEARING_NS_MAX", -1)
    async with open_house() as house, connected(house) as (peer, _, _):
        await peer.send_all(b"e x\n" * 1000)
        assert await hear(peer, 2000) == b"x\n" * 1000


async def test_a_half_frame_rests_while_memory_is_short() -> None:
    async with (
        open_house(Inflow(130_000)) as house,
        connected(house) as (first, _, _),
        connected(house) as (second, resting, _),
    ):
        half = b"e " + b"h" * 60_000
        for peer in (first, second):
            await peer.send_all(half)
            await trio.testing.wait_all_tasks_blocked()
        assert house.inflow.short
        await second.send_all(b"h" * 10_000)
        await trio.testing.wait_all_tasks_blocked()
        await second.send_all(b"\n")
        await trio.testing.wait_all_tasks_blocked()
        assert resting.charged < len(half) + 10_001
        await ask(first, b"\n", half[2:] + b"\n")
        assert await hear(second, len(half) + 9_999) == half[2:] + b"h" * 10_000 + b"\n"
        assert house.inflow.bytes_held == 0


async def test_half_a_frame_that_stalls_is_closed_while_memory_is_short() -> None:
    async with open_house(Inflow(70_000)) as house, connected(house) as (peer, _, over):
        await peer.send_all(b"e " + b"h" * 60_000)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(12):
            house.pass_time(1)
        with trio.fail_after(5):
            await over.wait()
        assert house.inflow.bytes_held == 0


async def test_a_reader_that_stops_reading_is_closed() -> None:
    async with open_house() as house, connected(house, lockstep=True) as (peer, connection, over):
        await ask(peer, b"p a\n", b"ok 0\n")
        await peer.send_all(b"f 0\n")
        await trio.testing.wait_all_tasks_blocked()
        house.pass_time(SLOW_READER_US / 1_000_000 - 1)
        connection.sweep(house.clock())
        await trio.testing.wait_all_tasks_blocked()
        assert not over.is_set()
        house.pass_time(2)
        connection.sweep(house.clock())
        with trio.fail_after(5):
            await over.wait()


async def test_a_reader_that_takes_a_little_is_not_closed() -> None:
    async with open_house() as house, connected(house, lockstep=True) as (peer, connection, over):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send_all, b"e x\nf 0\nn 300000\n")
            assert await hear(peer, 2) == b"x\n"
        for _ in range(3):
            house.pass_time(SLOW_READER_US / 1_000_000 - 1)
            connection.sweep(house.clock())
            await hear(peer, SEND_BYTES_MAX)
            await trio.testing.wait_all_tasks_blocked()
        assert not over.is_set()
