from __future__ import annotations

import gc
import socket
import struct
import weakref
from typing import TYPE_CHECKING

import pytest
import structlog
import trio
import trio.testing
from structlog.testing import LogCapture

from dragoman.gateway import lane as lane_module
from dragoman.gateway import session as session_module
from dragoman.gateway.carrier import LINGER_US, SLOW_READER_US
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.lane import READ, RECEIVE_BYTES_MAX, RECEIVE_BYTES_MIN
from dragoman.gateway.session import REPLY_BYTES_WAITING_MAX
from support.house import ask, hear, hear_end, open_house

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.gateway.lane import Connection
    from support.house import House


@pytest.fixture(name="log")
def captured_log() -> Iterator[LogCapture]:
    capture = LogCapture()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    yield capture
    structlog.reset_defaults()


async def until_gone(house_connections: set[object]) -> None:
    """Waits until the lane holds no connection."""
    with trio.fail_after(5):
        while house_connections:
            await trio.lowlevel.checkpoint()


async def test_a_request_is_answered_after_its_flush() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p hello\n", b"ok 0\n")
        await ask(peer, b"f 0\n", b"got hello\n")


async def test_many_connections_are_served_by_one_task() -> None:
    async with open_house() as house:
        peers = [house.connect() for _ in range(50)]
        for peer in peers:
            await peer.send_all(b"p x\ne done\n")
        for peer in peers:
            answer = await hear(peer, 10)
            assert answer.startswith(b"ok ")
        assert len(house.lane.connections) == 50


async def test_a_request_in_single_bytes_is_answered_once_it_is_whole() -> None:
    async with open_house() as house:
        peer = house.connect()
        for byte in b"p hello\ne on\n":
            await peer.send_all(bytes([byte]))
        assert await hear(peer, 8) == b"ok 0\non\n"


async def test_replies_that_are_ready_together_leave_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_house() as house:
        peer = house.connect()
        await peer.send_all(b"".join(b"e %d\n" % number for number in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        received = await peer.receive_some(65_536)
        assert received == b"".join(b"%d\n" % number for number in range(100))


async def test_a_peer_that_ends_its_half_still_gets_what_it_asked() -> None:
    async with open_house() as house:
        peer = house.connect()
        await peer.send_all(b"p a\ne on\n")
        await peer.send_eof()
        assert await hear_end(peer) == b"ok 0\non\n"
        await until_gone(house.lane.connections)


async def test_a_long_poller_that_ended_its_half_waits_unwatched_and_is_answered() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        await peer.send_all(b"w 1 30000\n")
        await peer.send_eof()
        connection = house.last
        assert connection is not None
        with trio.fail_after(5):
            while connection.interest:
                await trio.lowlevel.checkpoint()
        await ask(house.connect(), b"p b\n", b"ok 1\n")
        assert await hear_end(peer) == b"got b\n"


async def test_a_reset_long_poller_is_found_by_the_sweep() -> None:
    async with open_house() as house:
        server = trio.socket.socket()
        await server.bind(("127.0.0.1", 0))
        server.listen()
        peer = socket.socket()
        peer.connect(server.getsockname())
        accepted, _ = await server.accept()
        ours = socket.socket(fileno=accepted.detach())
        connection = house.lane.add(ours, house.session(), house.clock())
        peer.sendall(b"p a\nw 1 300000\n")
        peer.shutdown(socket.SHUT_WR)
        with trio.fail_after(5):
            while connection.interest or not connection.ended:
                await trio.lowlevel.checkpoint()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        house.pass_time(1)
        assert connection.closed
        server.close()


async def test_a_reset_ends_one_connection_and_no_other() -> None:
    async with open_house() as house:
        peer, other = house.connect(), house.connect()
        await ask(peer, b"e x\n", b"x\n")
        await trio.aclose_forcefully(peer)
        await ask(other, b"e y\n", b"y\n")
        with trio.fail_after(5):
            while len(house.lane.connections) > 1:
                await trio.lowlevel.checkpoint()


async def test_a_refused_peer_gets_our_last_word_although_it_still_talks() -> None:
    async with open_house() as house:
        peer = house.connect()
        await peer.send_all(b"R\n" + b"x" * 10_000)
        assert await hear_end(peer) == b"refused MALFORMED\n"
        await peer.aclose()
        await until_gone(house.lane.connections)


async def test_a_refused_peer_that_stays_is_closed_after_a_moment() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"R\n", b"refused MALFORMED\n")
        await trio.testing.wait_all_tasks_blocked()
        assert len(house.lane.connections) == 1
        house.pass_time(LINGER_US / 1_000_000)
        assert not house.lane.connections


async def test_an_idle_connection_is_closed_and_a_waiting_one_is_not() -> None:
    async with open_house() as house:
        idle, waiting = house.connect(), house.connect()
        await ask(idle, b"p a\n", b"ok 0\n")
        await waiting.send_all(b"w 1 120000\n")
        await trio.testing.wait_all_tasks_blocked()
        house.pass_time(59)
        assert len(house.lane.connections) == 2
        house.pass_time(2)
        assert len(house.lane.connections) == 1
        assert await hear_end(idle) == b""


async def test_a_follower_is_never_idle_and_is_kept_alive() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\ns 0 3000\n", b"ok 0\npush a\n")
        for _ in range(30):
            house.pass_time(4)
        assert await hear(peer, 150) == b"idle\n" * 30


async def test_a_follower_that_takes_nothing_is_closed() -> None:
    async with open_house() as house:
        peer, writer = house.connect(), house.connect()
        await ask(writer, b"p a\n", b"ok 0\n")
        await ask(peer, b"s 0 0\n", b"push a\n")
        for offset in range(1, 7):
            await ask(writer, b"p " + b"v" * 900_000 + b"\n", b"ok %d\n" % offset)
        await trio.testing.wait_all_tasks_blocked()
        house.pass_time(SLOW_READER_US / 1_000_000 - 1)
        assert len(house.lane.connections) == 2
        house.pass_time(2)
        assert len(house.lane.connections) == 1


async def test_a_peer_that_reads_late_gets_every_byte_and_is_not_read_meanwhile() -> None:
    async with open_house() as house:
        peer = house.connect()
        size, requests = 300_000, 40
        await peer.send_all(b"n %d\n" % size * requests)
        await trio.testing.wait_all_tasks_blocked()
        connection = house.last
        assert connection is not None
        assert not connection.interest & READ
        assert connection.session.outbox.size < 2 * REPLY_BYTES_WAITING_MAX
        whole = await hear(peer, (size + 1) * requests)
        assert whole == (b"n" * size + b"\n") * requests
        await ask(peer, b"e on\n", b"on\n")


async def test_more_buffers_than_one_system_call_takes_all_arrive() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        lines = 1_020
        await peer.send_all(b"f 0\n" * lines)
        assert await hear(peer, 6 * lines) == b"got a\n" * lines


async def test_offloaded_work_runs_in_a_thread_and_keeps_the_order() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"e one\no two\ne three\no four\n", b"one\ntwo\nthree\nfour\n")


async def test_a_round_ends_in_time_and_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_house() as house:
        monkeypatch.setattr(lane_module, "ROUND_NS_MAX", -1)
        peers = [house.connect() for _ in range(5)]
        for peer in peers:
            await peer.send_all(b"e x\n")
        for peer in peers:
            assert await hear(peer, 2) == b"x\n"


async def test_a_bulk_connection_does_not_hold_back_the_others() -> None:
    async with open_house() as house:
        bulk, small = house.connect(), house.connect()
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                while True:
                    await bulk.send_all(b"e x\n" * 2_000)

            async def swallow() -> None:
                while True:
                    await bulk.receive_some(1 << 20)

            nursery.start_soon(flood)
            nursery.start_soon(swallow)
            for _ in range(8):
                await ask(small, b"e y\n", b"y\n")
            nursery.cancel_scope.cancel()


async def test_who_asks_much_at_once_is_read_in_smaller_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_house() as house:
        peer = house.connect()
        connection = house.last
        assert connection is not None
        connection.receive_bytes = RECEIVE_BYTES_MAX
        monkeypatch.setattr(lane_module, "TURN_NS_MAX", -1)
        for _ in range(10):
            await ask(peer, b"e x\n", b"x\n")
        assert connection.receive_bytes == RECEIVE_BYTES_MIN


async def test_who_paused_goes_on_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "HEARING_NS_MAX", -1)
    async with open_house() as house:
        bulk, small = house.connect(), house.connect()
        await bulk.send_all(b"e x\n" * 1000)
        await ask(small, b"e y\n", b"y\n")
        assert await hear(bulk, 2000) == b"x\n" * 1000


async def test_producers_rest_while_the_engine_is_overloaded() -> None:
    async with open_house() as house:
        producer, reader = house.connect(), house.connect()
        await ask(producer, b"p a\n", b"ok 0\n")
        house.engine.overloaded = lambda: True  # type: ignore[method-assign]
        await ask(producer, b"p b\n", b"ok 1\n")
        await producer.send_all(b"p c\n")
        await ask(reader, b"f 1\n", b"got b\n")
        await ask(reader, b"f 2\n", b"none\n")
        house.engine.overloaded = lambda: False  # type: ignore[method-assign]
        house.pass_time(0.05)
        assert await hear(producer, 5) == b"ok 2\n"


async def test_producers_that_rest_go_on_as_soon_as_the_disk_has_caught_up() -> None:
    async with open_house() as house:
        producer, reader = house.connect(), house.connect()
        await ask(producer, b"p a\n", b"ok 0\n")
        house.engine.overloaded = lambda: True  # type: ignore[method-assign]
        await ask(producer, b"p b\n", b"ok 1\n")
        await producer.send_all(b"p c\n")
        await ask(reader, b"f 2\n", b"none\n")
        house.engine.overloaded = lambda: False  # type: ignore[method-assign]
        await ask(reader, b"f 1\n", b"got b\n")
        assert await hear(producer, 5) == b"ok 2\n"


async def test_a_bug_in_a_codec_closes_its_connection_and_no_other() -> None:
    async with open_house() as house:
        broken, fine = house.connect(), house.connect()
        await broken.send_all(b"b\n")
        assert await hear_end(broken) == b""
        await ask(fine, b"e x\n", b"x\n")


async def test_draining_closes_the_idle_at_once_and_others_when_answered() -> None:
    async with open_house() as house:
        idle, waiting = house.connect(), house.connect()
        await ask(idle, b"p a\n", b"ok 0\n")
        await waiting.send_all(b"w 1 1000\n")
        await trio.testing.wait_all_tasks_blocked()
        house.lane.drain(house.clock())
        assert await hear_end(idle) == b""
        house.pass_time(1)
        assert await hear_end(waiting) == b"none\n"


async def test_cancelling_the_lane_closes_every_connection() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"e x\n", b"x\n")
        house.nursery.cancel_scope.cancel()
    assert not house.lane.connections


async def test_what_a_closed_connection_held_is_free_at_once() -> None:
    gc.disable()
    try:
        async with open_house() as house:
            peer = house.connect()
            await ask(peer, b"p a\ns 0 0\np half", b"ok 0\npush a\n")
            assert house.last is not None
            codec = weakref.ref(house.last.session._codec)
            house.last = None
            await peer.aclose()
            await until_gone(house.lane.connections)  # type: ignore[arg-type]
            await trio.testing.wait_all_tasks_blocked()
            assert codec() is None
    finally:
        gc.enable()


HALF = b"e " + b"h" * 60_000


async def two_halves(house: House) -> tuple[list[trio.SocketStream], list[Connection]]:
    """Two peers whose half lines fill the budget; the second one rests."""
    peers, connections = [], []
    for _ in range(2):
        peer = house.connect()
        assert house.last is not None
        peers.append(peer)
        connections.append(house.last)
        await peer.send_all(HALF)
        await trio.testing.wait_all_tasks_blocked()
    await peers[1].send_all(b"h" * 20_000)
    await trio.testing.wait_all_tasks_blocked()
    return peers, connections


async def test_a_half_frame_rests_while_memory_is_short_and_goes_on_in_its_turn() -> None:
    async with open_house(Inflow(130_000)) as house:
        (first, second), (_, resting) = await two_halves(house)
        assert house.inflow.short
        assert not resting.interest & READ
        await ask(house.connect(), b"e small\n", b"small\n")
        await ask(first, b"\n", HALF[2:] + b"\n")
        assert not house.inflow.short
        await ask(second, b"\n", HALF[2:] + b"h" * 20_000 + b"\n")
        assert house.inflow.bytes_held == 0


async def test_half_a_frame_that_stalls_makes_room_for_one_that_goes_on(
    log: LogCapture,
) -> None:
    async with open_house(Inflow(130_000)) as house:
        (first, second), _ = await two_halves(house)
        for _ in range(12):
            house.pass_time(1)
        assert await hear_end(first) == b""
        (line,) = [entry for entry in log.entries if entry["event"] == "closed"]
        assert line["reason"] == "half a frame made no progress while memory was short"
        await ask(second, b"\n", HALF[2:] + b"h" * 20_000 + b"\n")


async def test_who_vanishes_gives_back_what_was_counted_of_it() -> None:
    async with open_house(Inflow(130_000)) as house:
        peers, _ = await two_halves(house)
        for peer in peers:
            await trio.aclose_forcefully(peer)
        house.pass_time(1)
        await until_gone(house.lane.connections)  # type: ignore[arg-type]
        assert house.inflow.bytes_held == 0


async def test_frames_that_arrive_whole_are_never_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_house() as house:
        peer = house.connect()
        monkeypatch.setattr(house.inflow, "count", None)
        await ask(peer, b"p a\ne b\n", b"ok 0\nb\n")
        await ask(peer, b"f 0\n", b"got a\n")


async def test_a_reader_that_stops_reading_is_closed_and_holds_up_nobody(
    log: LogCapture,
) -> None:
    async with open_house() as house:
        slow, other = house.connect(), house.connect()
        value = b"v" * 900_000
        for offset in range(8):
            await ask(other, b"p " + value + b"\n", b"ok %d\n" % offset)
        connection = next(c for c in house.lane.connections if c is not house.last)
        await slow.send_all(b"f 0\nf 1\nf 2\nf 3\n" * 10)
        await trio.testing.wait_all_tasks_blocked()
        assert connection.session.outbox.size < 9 * REPLY_BYTES_WAITING_MAX
        await ask(other, b"p more\n", b"ok 8\n")
        house.pass_time(SLOW_READER_US / 1_000_000 - 1)
        assert not connection.closed
        house.pass_time(2)
        assert connection.closed
        assert [e["reason"] for e in log.entries if e["event"] == "closed"] == ["stopped reading"]
        await ask(other, b"p again\n", b"ok 9\n")


async def test_a_reader_that_takes_a_little_is_not_closed() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        await peer.send_all(b"f 0\n" + b"n 4000000\n")
        await trio.testing.wait_all_tasks_blocked()
        assert house.last is not None
        for _ in range(4):
            house.pass_time(SLOW_READER_US / 1_000_000 - 1)
            await hear(peer, 500_000)
            await trio.testing.wait_all_tasks_blocked()
        assert not house.last.closed
