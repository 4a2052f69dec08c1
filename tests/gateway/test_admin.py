from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.gateway.asgi import HEAD_SECONDS_MAX
from dragoman.gateway.config import load_config
from dragoman.gateway.server import Server
from dragoman.gateway.table import ConfigError
from support.admin import ask, get, serving
from support.authority import Authority
from support.house import hear_end

if TYPE_CHECKING:
    from pathlib import Path


async def test_too_large_a_head_is_a_problem() -> None:
    async with serving() as server:
        head, _ = await get(server, "/health", head=f"X: {'a' * 100_000}\r\n")
        assert head.startswith("HTTP/1.1 431 ")


async def test_at_the_limit_connections_wait_for_each_other() -> None:
    async with serving(connections_max=1) as server:
        first = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
        second = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
        async with first, second:
            await trio.testing.wait_all_tasks_blocked(0.01)
            answers: list[str] = []

            async def ask_second() -> None:
                answers.append((await ask(second, "/live"))[1])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask_second)
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert answers == []
                assert (await ask(first, "/live"))[1] == "OK"
                await first.aclose()
            assert answers == ["OK"]


async def test_at_the_limit_connections_that_rest_make_room_for_others() -> None:
    async with serving(connections_max=2) as server:
        resting = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
        slow = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
        async with resting, slow:
            await slow.send_all(b"GET /hea")
            for _ in range(3):
                with trio.fail_after(HEAD_SECONDS_MAX / 4):
                    assert (await get(server, "/health"))[1] == "OK"
            assert await hear_end(resting) == b""


async def test_the_admin_port_tells_of_a_drain_until_its_end() -> None:
    async with serving() as server:
        busy = await trio.open_tcp_stream("127.0.0.1", server.ports["iggy"])
        client = await trio.open_tcp_stream("127.0.0.1", server.ports["v1"])
        async with busy, client:
            await client.send_all(b"V1|1|CONSUME|nothing 0 0\n")
            server.stop()
            stream = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
            async with stream:
                await stream.send_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                said = await stream.receive_some(10_000)
    assert said.endswith(b"Broker not ready: Shutting down")


async def test_a_reader_that_takes_nothing_does_not_hold_up_a_stop() -> None:
    async with serving() as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        await trio.testing.wait_all_tasks_blocked(0.01)
    await stream.aclose()


async def test_a_disabled_admin_port_is_not_there() -> None:
    async with serving(enabled=False) as server:
        assert "admin" not in server.ports


async def test_a_taken_port_is_refused_and_gives_the_others_back() -> None:
    async with serving() as server:
        flags = {f"listeners.{name}.port": 0 for name in ("cursus", "v1", "iggy", "rustlog")}
        flags["admin.port"] = server.ports["admin"]
        with pytest.raises(ConfigError, match=r"^admin: port \d+ of 127\.0\.0\.1 is taken"):
            Server(load_config(None, {}, flags), Engine(MemoryStore()))


async def test_the_admin_port_speaks_tls_and_asks_for_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = {**authority.write().settings(), "tls_client_ca": authority.file}
    client = authority.write("client", subject="prober")
    async with serving(**files) as server:
        with capture_logs() as log:
            transport = await trio.open_tcp_stream("127.0.0.1", server.ports["admin"])
            context = authority.trusting(client)
            stream = trio.SSLStream(
                transport, context, server_hostname="localhost", https_compatible=True
            )
            async with stream:
                assert (await ask(stream, "/health"))[1] == "OK"
            async with await trio.open_tcp_stream("127.0.0.1", server.ports["admin"]) as plain:
                await plain.send_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert await hear_end(plain) == b""
        assert any("prober" in entry.get("subject", "") for entry in log)
        assert "handshake failed" in [entry["event"] for entry in log]


async def test_a_reload_reads_every_certificate_again_and_names_what_it_could_not(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    good, bad = authority.write("good"), authority.write("bad")
    flags = {
        "admin.tls_cert": good.cert,
        "admin.tls_key": good.key,
        "listeners.v1.tls_cert": bad.cert,
        "listeners.v1.tls_key": bad.key,
    }
    server = Server(load_config(None, {}, flags, ephemeral=True), Engine(MemoryStore()))
    bad.key.write_text("")
    with capture_logs() as log:
        server.reload()
    error, told = log
    assert error["log_level"] == "error"
    assert error["error"].startswith(f"listeners.v1: {bad.cert} and {bad.key} are not")
    assert told["certificates"] == "admin"
    assert "read at start only" in told["event"]
    server.stop()
    await server.run()
