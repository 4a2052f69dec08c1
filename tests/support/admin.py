"""A running server in memory, and questions to its admin port."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.gateway.config import load_config
from dragoman.gateway.server import Server
from support.house import hear_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Server]:
    """A running server in memory; the settings are those of the admin port."""
    flags = {"drain_timeout": "1s", **{f"admin.{key}": value for key, value in settings.items()}}
    server = Server(load_config(None, {}, flags, ephemeral=True), Engine(MemoryStore()))
    started = trio.Event()

    def say_started(ports: Mapping[str, int]) -> None:
        started.set()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, say_started)
            await started.wait()
            yield server
            server.stop()


async def get(server: Server, path: str, *, method: str = "GET", head: str = "") -> tuple[str, str]:
    """Asks once; returns the head of the answer and its body."""
    async with await trio.open_tcp_stream("127.0.0.1", server.ports["admin"]) as stream:
        return await ask(stream, path, method=method, head=head)


async def ask(
    stream: trio.abc.Stream, path: str, *, method: str = "GET", head: str = ""
) -> tuple[str, str]:
    """Asks once on a connection."""
    request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}\r\n"
    await stream.send_all(request.encode())
    answered, _, body = (await hear_end(stream)).decode().partition("\r\n\r\n")
    return answered, body
