"""The Trio face of the client, over streams in memory and against a wired server."""

from __future__ import annotations

import socket
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from dragoman.clients.connection import Client, open_client
from dragoman.clients.error import (
    ConnectionLost,
    NoAnswer,
    PartlySent,
    RequestRefused,
    Unreachable,
)
from dragoman.codecs.base import ProtocolError, Told, Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Request


class EchoSpeaker:
    """A dialect of one byte a word: `p` ping, `x` a refusal, `!` broken; nothing else."""

    def ask(self, request: Request) -> Sequence[Buffer]:
        if isinstance(request, calls.Ping):
            return [b"p"]
        if isinstance(request, calls.ListTopics):
            return [b"x"]
        raise Unsayable(type(request).__name__)

    def receive(self, data: Buffer) -> list[Told]:
        told = []
        for byte in bytes(data):
            if byte == ord("!"):
                raise ProtocolError("an exclamation mark")
            refused = byte == ord("x")
            told.append(
                Told(Failure(ErrorCode.UNSUPPORTED, "no lists") if refused else calls.Ponged())
            )
        return told


@pytest.fixture
def pair() -> tuple[Client, trio.StapledStream]:
    """A client and the server's end of its stream."""
    ours, theirs = trio.testing.memory_stream_pair()
    return Client(ours, EchoSpeaker(), address="the echo", read_timeout_s=5), theirs


async def echo(stream: trio.abc.Stream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def test_requests_of_several_tasks_keep_their_own_replies(
    pair: tuple[Client, trio.StapledStream],
) -> None:
    client, server = pair
    heard = []

    async def ping() -> None:
        heard.append(await client.ask_many([calls.Ping(), calls.ListTopics(), calls.Ping()]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo, server)
        async with trio.open_nursery() as askers:
            for _ in range(5):
                askers.start_soon(ping)
        nursery.cancel_scope.cancel()
    assert [[type(reply) for reply in replies] for replies in heard] == [
        [calls.Ponged, Failure, calls.Ponged]
    ] * 5


async def test_a_refusal_is_raised_with_its_reason(
    pair: tuple[Client, trio.StapledStream],
) -> None:
    client, server = pair
    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo, server)
        with pytest.raises(RequestRefused, match="unsupported: no lists") as refused:
            await client.ask(calls.ListTopics())
        assert refused.value.code is ErrorCode.UNSUPPORTED
        nursery.cancel_scope.cancel()


async def test_what_cannot_be_said_first_sends_nothing(
    pair: tuple[Client, trio.StapledStream],
) -> None:
    client, _ = pair
    with pytest.raises(Unsayable):
        await client.ask(calls.ListNamespaces())


async def test_what_cannot_be_said_later_tells_what_was_served(
    pair: tuple[Client, trio.StapledStream],
) -> None:
    client, server = pair
    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo, server)
        with pytest.raises(PartlySent) as partly:
            await client.ask_many([calls.Ping(), calls.ListNamespaces()])
        assert [type(reply) for reply in partly.value.replies] == [calls.Ponged]
        nursery.cancel_scope.cancel()


async def test_a_silent_server_is_given_up(
    pair: tuple[Client, trio.StapledStream], autojump_clock: trio.testing.MockClock
) -> None:
    client, _ = pair
    with pytest.raises(NoAnswer, match="the echo did not answer within 5 s"):
        await client.ask(calls.Ping())
    assert trio.current_time() >= 5


@pytest.mark.parametrize(("said", "message"), [(b"", "closed"), (b"!", "broke the protocol")])
async def test_a_lost_connection_is_named(
    pair: tuple[Client, trio.StapledStream], said: bytes, message: str
) -> None:
    client, server = pair
    await server.send_all(said)
    await server.send_eof()
    with pytest.raises(ConnectionLost, match=f"the echo {message}"):
        await client.ask(calls.Ping())


async def test_a_cancelled_request_closes_so_that_nobody_gets_its_reply(
    pair: tuple[Client, trio.StapledStream], autojump_clock: trio.testing.MockClock
) -> None:
    client, _ = pair
    with trio.move_on_after(1) as scope:
        await client.ask(calls.Ping())
    assert scope.cancelled_caught
    with pytest.raises(ConnectionLost):
        await client.ask(calls.Ping())


async def test_an_unreachable_server_is_named_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unreachable, match=f"iggy server 127.0.0.1:{port}"):
        async with open_client("iggy", port=port):
            pass


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "iggy", "rustlog") as server:
        yield server


async def test_records_go_there_and_back(wired: WiredServer) -> None:
    async with open_client("rustlog", port=wired.ports["rustlog"]) as client:
        await client.create_topic("trio", 1)
        (produced,) = await client.produce("trio", [b"a", b"b"])
        assert (produced.base_offset, produced.count) == (0, 2)
        records = await client.fetch("trio", 0, 1)
        assert [(record.offset, record.value) for record in records] == [(1, b"b")]
        await client.commit("trio", "group", 0, 2)
        assert await client.committed("trio", "group", 0) == 2
        assert "trio" in [topic.name for topic in await client.topics()]
        assert len((await client.describe("trio")).partitions) == 1


@pytest.mark.parametrize("name", ["cursus", "iggy", "rustlog"])
@pytest.mark.parametrize("offset", ["earliest", "latest"])
async def test_a_follow_yields_what_is_there_and_what_comes(
    wired: WiredServer, name: str, offset: str
) -> None:
    topic = f"followed-{name}-{offset}"
    async with (
        open_client(name, port=wired.ports[name]) as reader,
        open_client(name, port=wired.ports[name]) as writer,
    ):
        await writer.create_topic(topic, 1)
        await writer.produce(topic, [b"old-1", b"old-2"], partition=0)
        seen: list[bytes | None] = []

        async def write(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            task_status.started()
            for number in range(200):
                await writer.produce(topic, [b"new-%d" % number], partition=0)
                if b"new" in b" ".join(value or b"" for value in seen):
                    return

        async with (
            trio.open_nursery() as nursery,
            aclosing(reader.follow(topic, 0, offset)) as pushes,
        ):
            nursery.start_soon(write)
            async for followed in pushes:
                for piece in followed.slices:
                    seen += [r.value for r in piece.batch.records(piece.first, piece.last)]
                if any(value and value.startswith(b"new") for value in seen):
                    break
        if offset == "earliest":
            assert seen[:2] == [b"old-1", b"old-2"]
        else:
            assert b"old-1" not in seen


async def test_the_options_of_a_dialect_reach_its_speaker() -> None:
    with WiredServer("cursus") as server:
        port = server.ports["cursus"]
        async with open_client("cursus", port=port, compression="zstd") as client:
            await client.create_topic("packed", 1)
            await client.produce("packed", [b"a" * 100_000], partition=0)
            assert [record.value for record in await client.fetch("packed")] == [b"a" * 100_000]


async def test_an_option_that_a_dialect_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="v1: unknown option 'compression'"):
        async with open_client("v1", port=1, compression="gzip"):
            pass
