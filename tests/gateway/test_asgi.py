from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dragoman.gateway import asgi
from dragoman.gateway.asgi import HEAD_BYTES_MAX, HttpConnection
from support.house import hear_end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

GET = b"GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\nX-Name: v\r\n\r\n"
CLOSE = b"Connection: close\r\n\r\n"


async def answer(send: Send, body: bytes = b"hello", status: int = 200) -> None:
    length = str(len(body)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-length", length)],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def greet(scope: Any, receive: Receive, send: Send) -> None:
    await answer(send)


async def echo(scope: Any, receive: Receive, send: Send) -> None:
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    await answer(send, body)


async def talk(application: Any, *pieces: bytes) -> bytes:
    """Sends pieces and the end of the stream; returns everything that comes back."""
    ours, theirs = trio.testing.memory_stream_pair()
    connection = HttpConnection(ours, application, peer=("p", 1), local=("l", 2))
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await connection.run()
            await ours.aclose()

        nursery.start_soon(run)
        for piece in pieces:
            await theirs.send_all(piece)
        await theirs.send_eof()
        return await hear_end(theirs)


def status_of(said: bytes) -> int:
    return int(said.split()[1])


async def test_the_application_is_told_what_was_asked() -> None:
    scopes = []

    async def note(scope: Any, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await answer(send)

    said = await talk(note, GET)
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said.endswith(b"\r\n\r\nhello")
    (scope,) = scopes
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("GET", "/a b", b"/a%20b")
    assert (scope["query_string"], scope["http_version"]) == (b"c=d", "1.1")
    assert (b"x-name", b"v") in scope["headers"]
    assert (scope["client"], scope["server"]) == (("p", 1), ("l", 2))


async def test_a_connection_serves_one_request_after_the_other() -> None:
    assert (await talk(greet, GET + GET, GET)).count(b"hello") == 3


async def test_a_request_may_come_byte_by_byte() -> None:
    assert b"hello" in await talk(greet, *(bytes([byte]) for byte in GET))


async def test_connection_close_is_obeyed() -> None:
    assert (await talk(greet, GET[:-2] + CLOSE + GET)).count(b"hello") == 1


async def test_head_is_answered_without_a_body() -> None:
    said = await talk(greet, GET.replace(b"GET", b"HEAD"))
    assert b"content-length: 5\r\n" in said
    assert said.endswith(b"\r\n\r\n")


async def test_an_answer_of_unknown_length_is_sent_in_chunks() -> None:
    async def stream(scope: Any, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        for piece in (b"a", b"b"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    assert (await talk(stream, GET)).endswith(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")


async def test_a_body_is_received() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"
    assert (await talk(echo, head, b"abc", b"def" + GET)).count(b"abcdef") == 1


async def test_a_body_that_waits_for_leave_is_given_it() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    said = await talk(echo, head, b"abc")
    assert said.startswith(b"HTTP/1.1 100 ")
    assert said.endswith(b"abc")


async def test_a_body_that_nobody_wants_ends_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"
    assert (await talk(greet, head + b"abc")).count(b"hello") == 1


async def test_a_body_that_nobody_wants_is_passed_over_where_it_is_there() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\n"
    plain = head + b"Content-Length: 3\r\n\r\nabc"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    assert (await talk(greet, plain + chunked + GET)).count(b"hello") == 3


async def test_a_chunked_body_that_is_broken_ends_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await talk(greet, head + b"zz\r\n" + GET)).count(b"hello") == 1


async def test_http_1_0_gets_one_answer() -> None:
    said = await talk(greet, b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2)
    assert said.count(b"hello") == 1
    assert b"Connection: close\r\n" in said


@pytest.mark.parametrize("target", [b"http://x/a?b", b"HTTPS://x:1/a?b", b"/a?b"])
async def test_a_target_may_name_the_whole_address(target: bytes) -> None:
    scopes = []

    async def note(scope: Any, receive: Receive, send: Send) -> None:
        scopes.append((scope["path"], scope["query_string"]))
        await answer(send)

    await talk(note, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert scopes == [("/a", b"b")]


async def test_a_peer_that_breaks_off_amid_its_body_is_no_fault_of_ours() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc")

    async def break_off(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        await ours.aclose()
        await receive()

    with capture_logs() as log:
        await HttpConnection(ours, break_off, peer=("p", 1), local=("l", 2)).run()
    assert log == []


async def test_what_a_peer_said_is_not_said_back() -> None:
    assert b"<script>" not in await talk(greet, b"GET <script> HTTP/1.1 x\r\n\r\n")


TWO_LENGTHS = (
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * HEAD_BYTES_MAX + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000, 431),
        (b"GET /" + b"a" * HEAD_BYTES_MAX + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (TWO_LENGTHS + b"0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ],
)
async def test_what_is_no_request_is_a_problem(sent: bytes, status: int) -> None:
    said = await talk(greet, sent)
    assert status_of(said) == status
    assert b"content-type: application/problem+json\r\n" in said
    assert json.loads(said.partition(b"\r\n\r\n")[2])["status"] == status


async def test_a_fault_of_ours_is_a_500_and_a_line_in_the_log() -> None:
    async def fail(scope: Any, receive: Receive, send: Send) -> None:
        raise RuntimeError("a bug")

    with capture_logs() as log:
        said = await talk(fail, GET + GET)
    assert said.count(b"HTTP/1.1") == 1
    assert status_of(said) == 500
    assert b"a bug" not in said
    assert [entry["event"] for entry in log] == ["fault"]


async def test_a_fault_amid_an_answer_cuts_it_off() -> None:
    async def fail(scope: Any, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("a bug")

    with capture_logs():
        said = await talk(fail, GET)
    assert said.endswith(b"4\r\nhalf\r\n")


async def test_who_sends_no_whole_request_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(GET[:20])
    await HttpConnection(ours, greet, peer=("p", 1), local=("l", 2)).run()
    assert trio.current_time() == asgi.HEAD_SECONDS_MAX


async def test_who_sends_no_whole_body_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc")
    await HttpConnection(ours, echo, peer=("p", 1), local=("l", 2)).run()
    assert trio.current_time() == asgi.BODY_SECONDS_MAX


async def test_who_takes_nothing_of_an_answer_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(theirs.send_all, GET)
        await HttpConnection(ours, greet, peer=("p", 1), local=("l", 2)).run()
    assert trio.current_time() == asgi.SEND_SECONDS_MAX


async def test_a_connection_whose_peer_takes_nothing_can_be_cancelled() -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(theirs.send_all, GET)
        nursery.start_soon(HttpConnection(ours, greet, peer=("p", 1), local=("l", 2)).run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
