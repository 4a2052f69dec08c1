from __future__ import annotations

import itertools
import ssl
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dragoman.codecs.rendering import RenderingCache
from dragoman.gateway.config import ListenerConfig
from dragoman.gateway.listener import Listener
from dragoman.gateway.table import ConfigError
from support.house import House, ask, hear, hear_end, open_house
from support.toy import TOY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SUPPORT = Path(__file__).parent.parent / "support"
CERTIFICATE, KEY = SUPPORT / "localhost.cert.pem", SUPPORT / "localhost.key.pem"
"""For `localhost` and 127.0.0.1, signed by itself, for tests alone."""
CONFIG = ListenerConfig(
    dialect="toy", port=0, connections_max=3, idle_timeout_s=60.0, frame_bytes_max=1 << 20
)


def listener_of(house: House, **changes: Any) -> Listener:
    return Listener(
        replace(CONFIG, **changes),
        TOY,
        engine=house.engine,
        flusher=house.flusher,
        renderings=RenderingCache(),
        numbers=itertools.count(1),
        clock=house.clock,
    )


@asynccontextmanager
async def listening(**changes: Any) -> AsyncIterator[tuple[House, Listener]]:
    async with open_house() as house:
        listener = listener_of(house, **changes)
        house.nursery.start_soon(listener.run)
        yield house, listener


async def dial(listener: Listener) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", listener.port)


async def test_a_connection_is_accepted_and_served() -> None:
    async with listening() as (_, listener), await dial(listener) as peer:
        await ask(peer, b"p a\n", b"ok 0\n")
        assert listener.connections == 1


async def test_at_the_limit_accepting_pauses_and_goes_on_when_one_leaves() -> None:
    with capture_logs() as log:
        async with listening(connections_max=2) as (_, listener), await dial(listener) as stays:
            leaves, waits = await dial(listener), await dial(listener)
            await ask(stays, b"e x\n", b"x\n")
            await ask(leaves, b"e x\n", b"x\n")
            await waits.send_all(b"e y\n")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert listener.connections == 2
            assert len(log) == 1
            await leaves.aclose()
            assert await hear(waits, 2) == b"y\n"
            await waits.aclose()
    assert [entry["event"] for entry in log[:2]] == [
        "connection limit reached; accepting pauses",
        "accepting again",
    ]


async def test_a_closed_door_leaves_who_is_inside() -> None:
    async with listening() as (_, listener), await dial(listener) as peer:
        await ask(peer, b"e x\n", b"x\n")
        listener.stop_accepting()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match="all attempts to connect"):
            await dial(listener)
        await ask(peer, b"e y\n", b"y\n")


async def test_draining_empties_the_listener() -> None:
    async with listening() as (_, listener), await dial(listener) as peer:
        await ask(peer, b"p a\n", b"ok 0\n")
        listener.drain()
        assert await hear_end(peer) == b""
        await peer.aclose()
        with trio.fail_after(5):
            await listener.wait_empty()


async def test_a_taken_port_is_named() -> None:
    async with listening() as (house, listener):
        with pytest.raises(ConfigError, match=f"port {listener.port} of 127.0.0.1 is taken"):
            listener_of(house, port=listener.port)


async def test_a_codec_that_cannot_be_made_costs_its_connection_only() -> None:
    async with listening() as (_, listener):
        made = listener.dialect.codec

        def fail_once(facts: Any) -> Any:
            object.__setattr__(listener.dialect, "codec", made)
            raise RuntimeError("a bug")

        object.__setattr__(listener.dialect, "codec", fail_once)
        with capture_logs() as log:
            async with await dial(listener) as peer:
                assert await hear_end(peer) == b""
        assert [entry["event"] for entry in log] == ["fault"]
        async with await dial(listener) as peer:
            await ask(peer, b"e x\n", b"x\n")


async def test_tls_is_served_and_plain_text_is_turned_away() -> None:
    async with listening(tls_cert=CERTIFICATE, tls_key=KEY) as (_, listener):
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        stream = trio.SSLStream(await dial(listener), context, server_hostname="localhost")
        async with stream:
            await ask(stream, b"p a\n", b"ok 0\n")
            assert listener.connections == 1
        with capture_logs() as log:
            async with await dial(listener) as peer:
                await peer.send_all(b"p plain text\n")
                await hear_end(peer)
        assert [entry["event"] for entry in log] == ["handshake failed"]
        with trio.fail_after(5):
            await listener.wait_empty()


async def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nothing")
    async with open_house() as house:
        with pytest.raises(ConfigError, match="are not a certificate and its key"):
            listener_of(house, tls_cert=tmp_path / "x.pem", tls_key=tmp_path / "x.pem")


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("0.0.0.0", False)])
async def test_a_codec_is_told_who_can_reach_its_listener(host: str, expected: bool) -> None:
    told = []
    async with listening(host=host) as (_, listener):
        made = listener.dialect.codec
        listener.dialect = replace(
            listener.dialect, codec=lambda facts: (told.append(facts.loopback), made(facts))[1]
        )
        async with await dial(listener) as peer:
            await ask(peer, b"e x\n", b"x\n")
    assert told == [expected]
