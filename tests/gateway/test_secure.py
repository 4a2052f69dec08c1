from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from dragoman.gateway.carrier import SLOW_READER_US
from dragoman.gateway.config import ListenerConfig
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.lane import RECEIVE_BYTES_MIN
from dragoman.gateway.secure import RECORD_BYTES, SEND_BYTES_MAX, SecureSocket, SecureStream
from dragoman.gateway.tls import Tls, shake_hands
from support.house import House, ask, hear, hear_end, open_house

if TYPE_CHECKING:
    from dragoman.gateway.lane import Connection

SUPPORT = Path(__file__).parent.parent / "support"
CERTIFICATE, KEY = SUPPORT / "localhost.cert.pem", SUPPORT / "localhost.key.pem"
CONFIG = ListenerConfig(
    dialect="toy",
    port=0,
    connections_max=3,
    idle_timeout_s=60.0,
    frame_bytes_max=1 << 20,
    tls_cert=CERTIFICATE,
    tls_key=KEY,
)
Peer = trio.SSLStream[trio.SocketStream]


async def secured(house: House) -> tuple[Peer, SecureSocket]:
    """A peer's end under TLS, and ours."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    house.peers.append(transport)
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    peer = trio.SSLStream(transport, context, server_hostname="localhost")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.do_handshake)
        secure = await shake_hands(ours, Tls(CONFIG, "toy"), 5.0)
    return peer, secure


async def connect(house: House) -> tuple[Peer, Connection]:
    """A connection under TLS through the lane."""
    peer, secure = await secured(house)
    return peer, house.lane.add(secure, house.session(), house.clock())


def fill(secure: SecureSocket, record: bytes) -> int:
    """Sends until nothing more is taken; returns how many bytes were."""
    taken = 0
    while True:
        try:
            taken += secure.send(record)
        except BlockingIOError:
            return taken


async def wait_closed(connection: Connection) -> None:
    with trio.fail_after(5):
        while not connection.closed:
            await trio.lowlevel.checkpoint()


async def test_requests_are_answered_in_order() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await ask(peer, b"p a\ne b\n", b"ok 0\nb\n")
        await ask(peer, b"f 0\n", b"got a\n")


async def test_every_byte_in_a_record_of_its_own_is_the_same_request() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        for byte in b"p hello\n":
            await peer.send_all(bytes([byte]))
        assert await hear(peer, 5) == b"ok 0\n"


async def test_a_request_of_many_records_is_heard_whole() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        long = b"x" * (20 * RECORD_BYTES + 5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send_all, b"e " + long + b"\n")
            assert await hear(peer, len(long) + 1) == long + b"\n"


@pytest.mark.parametrize("records", [1, 2, 3])
async def test_a_request_that_ends_with_its_record_is_heard(records: int) -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await ask(peer, b"e x\n", b"x\n")
        long = b"x" * (records * RECORD_BYTES - 3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send_all, b"e " + long + b"\n")
            assert await hear(peer, len(long) + 1) == long + b"\n"


async def test_another_connections_write_reaches_a_follower() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await ask(peer, b"p a\ns 0 0\n", b"ok 0\npush a\n")
        await ask(house.connect(), b"p b\n", b"ok 1\n")
        assert await hear(peer, 7) == b"push b\n"


async def test_a_peer_that_ends_its_half_still_gets_what_it_asked() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await peer.send_all(b"p a\n")
        await peer.transport_stream.send_eof()
        assert await hear_end(peer) == b"ok 0\n"
        await wait_closed(connection)


async def test_a_fatal_refusal_is_said_and_then_tls_ends_as_it_should() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await peer.send_all(b"R\n")
        told = b"refused MALFORMED\n"
        assert await hear(peer, len(told)) == told
        assert await peer.receive_some(1) == b""


async def test_what_comes_after_our_last_word_is_thrown_away() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await ask(peer, b"R\n", b"refused MALFORMED\n")
        await peer.send_all(b"e x\n" * 1000)
        assert await hear_end(peer) == b""
        house.pass_time(2)
        await wait_closed(connection)


async def test_garbage_between_records_ends_its_connection_and_no_other() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        other, _ = await connect(house)
        await ask(peer, b"e x\n", b"x\n")
        await peer.transport_stream.send_all(b"p plain text\n")
        await wait_closed(connection)
        await ask(other, b"e y\n", b"y\n")


async def test_a_vanished_peer_ends_the_connection() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await ask(peer, b"e x\n", b"x\n")
        await trio.aclose_forcefully(peer)
        await wait_closed(connection)


async def test_a_long_poller_that_ended_its_half_is_not_taken_for_gone() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await ask(peer, b"p a\n", b"ok 0\n")
        await peer.send_all(b"w 1 60000\n")
        await peer.transport_stream.send_eof()
        await trio.testing.wait_all_tasks_blocked()
        assert connection.interest == 0
        house.pass_time(1)
        await ask(house.connect(), b"p b\n", b"ok 1\n")
        assert await hear_end(peer) == b"got b\n"


async def test_offloaded_work_goes_through_a_thread() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await ask(peer, b"o one\ne two\n", b"one\ntwo\n")


async def test_a_peer_that_reads_late_gets_every_byte() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await peer.send_all(b"n 700000\n" * 6 + b"e end\n")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.session.outbox.size > SEND_BYTES_MAX
        assert await hear(peer, 6 * 700_001 + 4) == (b"n" * 700_000 + b"\n") * 6 + b"end\n"
        await ask(peer, b"e x\n", b"x\n")


async def test_what_did_not_fit_goes_on_before_what_was_said_later() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await ask(peer, b"p 0\ns 0 0\n", b"ok 0\npush 0\n")
        await peer.send_all(b"n 700000\n")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.session.outbox.size
        writer = house.connect()
        for number in (1, 2):
            await ask(writer, b"p %d\n" % number, b"ok %d\n" % number)
        told = b"n" * 700_000 + b"\npush 1\npush 2\n"
        assert await hear(peer, len(told)) == told


async def test_a_record_that_was_not_taken_is_offered_again_as_it_was() -> None:
    async with open_house() as house:
        peer, secure = await secured(house)
        record, more = b"a" * 1000, b"b" * 5000
        taken = fill(secure, record)
        stream = SecureStream(secure)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, record + more)
            told = b"a" * (taken + len(record)) + more
            assert await hear(peer, len(told)) == told
        await stream.aclose()


async def test_a_look_at_who_rests_takes_nothing_of_what_it_sent() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await ask(peer, b"p a\n", b"ok 0\n")
        house.flusher.overloaded = True
        house.lane.attend(connection, house.clock())
        assert connection.interest == 0
        await peer.send_all(b"e x\n")
        house.lane.sweep(house.clock())
        assert not connection.closed
        house.flusher.overloaded = False
        house.lane.attend(connection, house.clock())
        assert await hear(peer, 2) == b"x\n"


async def test_a_drain_closes_who_is_owed_nothing_and_says_so() -> None:
    async with open_house() as house:
        peer, _ = await connect(house)
        await ask(peer, b"p a\n", b"ok 0\n")
        house.lane.drain(house.clock())
        with trio.fail_after(5):
            assert await peer.receive_some(1) == b""


async def test_half_a_frame_that_stalls_is_closed_while_memory_is_short() -> None:
    async with open_house(Inflow(70_000)) as house:
        peer, connection = await connect(house)
        await peer.send_all(b"e " + b"h" * 60_000)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(12):
            house.pass_time(1)
        await wait_closed(connection)
        assert house.inflow.bytes_held == 0


async def test_a_reader_that_stops_reading_is_closed() -> None:
    async with open_house() as house:
        peer, connection = await connect(house)
        await peer.send_all(b"s 0 0\n" + b"n 700000\n" * 3)
        await trio.testing.wait_all_tasks_blocked()
        house.pass_time(SLOW_READER_US / 1_000_000 - 1)
        assert not connection.closed
        house.pass_time(2)
        await wait_closed(connection)


def test_a_peer_that_is_gone_before_tls_begins_is_no_fault_of_ours() -> None:
    context = Tls(CONFIG, "toy").context
    with (
        context.wrap_socket(
            socket.socket(), server_side=True, do_handshake_on_connect=False
        ) as secure,
        pytest.raises(OSError, match="not connected"),
    ):
        secure.do_handshake()


async def test_a_stream_sends_and_receives_until_its_end() -> None:
    async with open_house() as house:
        peer, secure = await secured(house)
        stream = SecureStream(secure)
        long = bytes(range(256)) * 8192
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, long)
            assert await hear(peer, len(long)) == long
        await stream.wait_send_all_might_not_block()
        await peer.send_all(b"a")
        assert await stream.receive_some() == b"a"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send_all, long)
            assert await hear(stream, len(long)) == long
        await peer.transport_stream.send_eof()
        assert await stream.receive_some() == b""
        await stream.aclose()
        await stream.aclose()
        assert await hear_end(peer) == b""


async def test_a_stream_whose_peer_is_gone_is_broken() -> None:
    async with open_house() as house:
        peer, secure = await secured(house)
        stream = SecureStream(secure)
        await peer.transport_stream.send_all(b"no record at all")
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()
        await trio.aclose_forcefully(peer)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"x")
        await stream.aclose()


def test_whoever_reads_in_the_lane_asks_for_a_record_at_least() -> None:
    assert RECEIVE_BYTES_MIN >= RECORD_BYTES
