from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.gateway import server as server_module
from dragoman.gateway.config import Config, load_config
from dragoman.gateway.server import Server
from dragoman.gateway.table import ConfigError
from support.authority import Authority
from support.house import ask, hear_end
from support.toy import TOY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path


def config_of(**flags: Any) -> Config:
    return load_config(None, {}, {"drain_timeout": "500ms", **flags}, ephemeral=True)


@asynccontextmanager
async def serving(
    store: MemoryStore | None = None, config: Config | None = None
) -> AsyncIterator[tuple[Server, trio.Event]]:
    """A running server in memory, and an event that says it has ended."""
    server = Server(config or config_of(), Engine(store or MemoryStore()))
    started, ended = trio.Event(), trio.Event()

    def say_started(ports: Mapping[str, int]) -> None:
        started.set()

    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await server.run(say_started)
            ended.set()

        nursery.start_soon(run)
        with trio.fail_after(30):
            await started.wait()
            yield server, ended
            server.stop()
            await ended.wait()


async def dial(server: Server, dialect: str) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", server.ports[dialect])


async def test_every_dialect_and_the_admin_port_listen_on_their_own() -> None:
    async with serving() as (server, _):
        assert sorted(server.ports) == ["admin", "cursus", "iggy", "rustlog", "v1"]
        assert len(set(server.ports.values())) == 5
        for name in server.ports:
            await (await dial(server, name)).aclose()


async def test_a_stop_ends_idle_connections_and_the_server() -> None:
    async with serving() as (server, ended):
        peer = await dial(server, "v1")
        await trio.testing.wait_all_tasks_blocked(0.01)
        server.stop()
        assert await hear_end(peer) == b""
        await peer.aclose()
        with trio.fail_after(5):
            await ended.wait()


async def test_a_stop_does_not_wait_for_ever_for_what_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "dialect", lambda name: TOY)
    with capture_logs() as log:
        async with serving() as (server, ended):
            peer = await trio.open_tcp_stream("127.0.0.1", server.ports["toy"])
            await ask(peer, b"p a\n", b"ok 0\n")
            await peer.send_all(b"w 1 60000\n")
            await trio.testing.wait_all_tasks_blocked(0.01)
            server.stop()
            with trio.fail_after(5):
                await ended.wait()
            await peer.aclose()
    assert "connections were still owed replies" in [entry["event"] for entry in log]


async def test_what_was_asked_before_the_stop_is_durable_after_it() -> None:
    store = MemoryStore()
    async with serving(store) as (server, ended):
        peer = await dial(server, "v1")
        await peer.send_all(b"V1|1|PRODUCE|t k:hello\n")
        assert await peer.receive_some(100)
        await peer.aclose()
        server.stop()
        await ended.wait()
    catalog = store.restarted().catalog
    topic = next(iter(catalog.topics.values()))
    assert sum(partition.next_offset for partition in topic.partitions) == 1


async def test_signals_stop_the_server() -> None:
    server = Server(config_of(), Engine(MemoryStore()))

    def stop(ports: Mapping[str, int]) -> None:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)

    with capture_logs() as log, trio.fail_after(10):
        await server.run_until_signalled(stop)
    events = [entry["event"] for entry in log]
    assert "stopping" in events
    assert events[-1] == "stopped"
    assert any(event.startswith("SIGHUP") for event in events)


@pytest.mark.parametrize("insecure", [False, True])
async def test_the_start_says_what_speaks_tls_and_where_nobody_is_asked_who(
    tmp_path: Path, insecure: bool
) -> None:
    authority = Authority(tmp_path)
    keys = authority.write().settings()
    secured = {f"listeners.v1.{name}": str(path) for name, path in keys.items()}
    config = config_of(**secured)
    if insecure:
        doors = (replace(one, host="0.0.0.0") for one in config.listeners if one.dialect != "iggy")
        config = replace(config, listeners=tuple(doors))
    with capture_logs() as log:
        async with serving(config=config):
            pass
    (said,) = (entry for entry in log if entry["event"] == "serving")
    assert said["tls"] == "v1"
    warned = [entry for entry in log if entry["event"].startswith("whoever reaches")]
    assert len(warned) == insecure
    if insecure:
        assert {"cursus", "v1", "rustlog"} == {*warned[0]} - {"event", "log_level"}


async def test_a_taken_port_gives_the_others_back() -> None:
    async with serving() as (server, _):
        taken = server.ports["v1"]
        free = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = free[0].socket.getsockname()[1]
        await free[0].aclose()
        flags = {"listeners.cursus.port": port, "listeners.v1.port": taken}
        with pytest.raises(ConfigError, match=f"listeners.v1: port {taken} of 127.0.0.1 is taken"):
            Server(load_config(None, {}, flags), Engine(MemoryStore()))
        await (await trio.open_tcp_listeners(port, host="127.0.0.1"))[0].aclose()


async def test_a_stop_answers_what_is_on_its_way_to_the_disk() -> None:
    async with serving() as (server, _):
        peer = await dial(server, "v1")
        await peer.send_all(b"V1|1|PRODUCE|t k:hello\n")
        await trio.testing.wait_all_tasks_blocked(0.01)
        server.stop()
        assert (await hear_end(peer)).count(b"\n") == 1
        await peer.aclose()
