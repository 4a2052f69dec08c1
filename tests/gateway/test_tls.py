from __future__ import annotations

import itertools
import ssl
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dragoman.codecs.registry import dialect
from dragoman.codecs.rendering import RenderingCache
from dragoman.gateway import listener as listeners
from dragoman.gateway.config import ListenerConfig
from dragoman.gateway.listener import Listener
from dragoman.gateway.table import ConfigError
from dragoman.gateway.tls import Tls, shake_hands
from support.authority import Authority
from support.house import House, ask, hear, hear_end, open_house
from support.toy import TOY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from dragoman.codecs.base import Dialect, Facts

CONFIG = ListenerConfig(
    dialect="toy", port=0, connections_max=3, idle_timeout_s=60.0, frame_bytes_max=1 << 20
)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def log() -> Iterator[list[Any]]:
    with capture_logs() as entries:
        yield entries


class Place:
    """A listener and its clients, which are closed in the end."""

    def __init__(self, house: House, listener: Listener) -> None:
        self._house = house
        self.listener = listener

    async def dial(self) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.listener.port)
        self._house.peers.append(stream)
        return stream

    async def dial_tls(self, context: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
        stream = trio.SSLStream(await self.dial(), context, server_hostname="localhost")
        with trio.fail_after(5):
            await stream.do_handshake()
        return stream

    async def wait_left(self) -> None:
        with trio.fail_after(5):
            await self.listener.wait_empty()


@asynccontextmanager
async def listening(spoken: Dialect = TOY, **settings: Any) -> AsyncIterator[Place]:
    async with open_house() as house:
        listener = Listener(
            replace(CONFIG, options=spoken.options({}), **settings),
            spoken,
            engine=house.engine,
            flusher=house.flusher,
            renderings=RenderingCache(),
            numbers=itertools.count(1),
            clock=house.clock,
        )
        house.nursery.start_soon(listener.run)
        yield Place(house, listener)


def failures(log: list[Any]) -> list[Any]:
    return [entry for entry in log if entry["event"] == "handshake failed"]


def serial_of(stream: trio.SSLStream[trio.SocketStream]) -> str:
    return str(stream.getpeercert()["serialNumber"])


async def test_published_bytes_go_through_tls(authority: Authority) -> None:
    files = authority.write()
    async with listening(dialect("cursus"), **files.settings()) as place:
        stream = await place.dial_tls(authority.trusting())
        listing = bytes.fromhex("00000006") + bytes.fromhex("00004c495354")
        await stream.send_all(listing)
        size = int.from_bytes(await hear(stream, 4), "big")
        assert (await hear(stream, size)).startswith(b"OK count=0")
        await trio.aclose_forcefully(stream)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions_from_1_2_on_are_served(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    context = authority.trusting()
    context.minimum_version = context.maximum_version = version
    async with listening(**authority.write().settings()) as place:
        stream = await place.dial_tls(context)
        await ask(stream, b"e x\n", b"x\n")
        await trio.aclose_forcefully(stream)


async def test_an_older_version_is_told_so_and_refused(
    authority: Authority, log: list[Any]
) -> None:
    context = authority.trusting()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with listening(**authority.write().settings()) as place:
        with pytest.raises(trio.BrokenResourceError) as refused:
            await place.dial_tls(context)
        assert "ALERT_PROTOCOL_VERSION" in str(refused.value.__cause__)
        await place.wait_left()
        assert place.listener.handshakes_refused == 1
    assert [entry["reason"] for entry in failures(log)] == ["the client's TLS is older than 1.2"]


@pytest.mark.parametrize(
    ("first", "looks_like"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"SSH-2.0-x\r\n", "an SSH banner"),
        (b"V1|1|PRODUCE|t k:v\n", "a V1 line"),
        (bytes.fromhex("0000000600004c495354"), "big-endian"),
        (b"x", "neither TLS nor a known protocol"),
    ],
)
async def test_a_client_without_tls_is_closed_and_the_log_says_what_it_speaks(
    authority: Authority, log: list[Any], first: bytes, looks_like: str
) -> None:
    async with listening(**authority.write().settings()) as place:
        async with await place.dial() as peer:
            await peer.send_all(first)
            assert await hear_end(peer) == b""
        await place.wait_left()
    (entry,) = failures(log)
    assert entry["reason"] == "the peer does not speak TLS"
    assert looks_like in entry["looks_like"]


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
async def test_a_slow_handshake_is_closed(
    authority: Authority, log: list[Any], sent: bytes
) -> None:
    settings = authority.write().settings()
    async with listening(**settings, handshake_timeout_s=0.05) as place:
        async with await place.dial() as peer:
            await peer.send_all(sent)
            assert await hear_end(peer) == b""
        await place.wait_left()
    assert [entry["reason"] for entry in failures(log)] == ["not done within 0.05 s"]


async def test_a_peer_that_leaves_is_told_of_as_such(authority: Authority, log: list[Any]) -> None:
    async with listening(**authority.write().settings()) as place:
        for sent in (b"", b"\x16\x03\x01"):
            async with await place.dial() as peer:
                await peer.send_all(sent)
                await peer.send_eof()
                await hear_end(peer)
            await place.wait_left()
    reasons = [entry["reason"] for entry in failures(log)]
    assert reasons == ["the peer left", "the peer left during the handshake"]


async def test_a_client_of_the_named_authority_is_served_and_its_subject_known(
    authority: Authority, log: list[Any]
) -> None:
    told: list[str] = []

    def make(facts: Facts) -> Any:
        told.append(facts.tls_subject)
        return TOY.codec(facts)

    toy = replace(TOY, codec=make)
    settings = authority.write().settings()
    client = authority.write("client", "someone@example.org", subject="the-producer")
    async with listening(toy, **settings, tls_client_ca=authority.file) as place:
        stream = await place.dial_tls(authority.trusting(client))
        await ask(stream, b"e x\n", b"x\n")
        await trio.aclose_forcefully(stream)
        await place.wait_left()
    (subject,) = told
    assert subject.endswith("CN=the-producer")
    assert subject in [entry.get("subject") for entry in log]


async def test_a_client_without_a_certificate_is_refused_where_one_is_asked_for(
    authority: Authority, log: list[Any]
) -> None:
    settings = authority.write().settings()
    async with listening(**settings, tls_client_ca=authority.file) as place:
        stream = await place.dial_tls(authority.trusting())
        with pytest.raises(trio.BrokenResourceError) as refused:
            await stream.receive_some(1)
        assert "CERTIFICATE_REQUIRED" in str(refused.value.__cause__)
        await place.wait_left()
    assert [entry["reason"] for entry in failures(log)] == ["the client shows no certificate"]


async def test_a_client_that_asks_at_once_hears_why_it_is_refused(authority: Authority) -> None:
    settings = authority.write().settings()
    async with listening(**settings, tls_client_ca=authority.file) as place:
        stream = await place.dial_tls(authority.trusting())
        await stream.send_all(b"e x\n" * 10_000)
        with pytest.raises(trio.BrokenResourceError) as refused:
            await stream.receive_some(1)
        assert "CERTIFICATE_REQUIRED" in str(refused.value.__cause__)
        await trio.aclose_forcefully(stream)
        await place.wait_left()


async def test_a_client_of_another_authority_is_refused(
    authority: Authority, log: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").write("stranger")
    settings = authority.write().settings()
    async with listening(**settings, tls_client_ca=authority.file) as place:
        stream = await place.dial_tls(authority.trusting(stranger))
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some(1)
        await place.wait_left()
    (entry,) = failures(log)
    assert entry["reason"].startswith("the client's certificate was refused: ")


async def test_a_reload_shows_new_clients_the_new_chain_and_keeps_the_old_ones(
    authority: Authority,
) -> None:
    settings = authority.write().settings()
    async with listening(**settings) as place:
        old = await place.dial_tls(authority.trusting())
        await ask(old, b"e x\n", b"x\n")
        authority.write()
        assert place.listener.tls is not None
        place.listener.tls.reload()
        new = await place.dial_tls(authority.trusting())
        assert serial_of(new) != serial_of(old)
        await ask(new, b"e y\n", b"y\n")
        await ask(old, b"e z\n", b"z\n")
        await trio.aclose_forcefully(new)
        await trio.aclose_forcefully(old)


def test_a_missing_file_is_said_without_numbers(tmp_path: Path) -> None:
    config = replace(CONFIG, tls_cert=tmp_path / "no", tls_key=tmp_path / "no")
    with pytest.raises(ConfigError, match=r"its key: No such file or directory$"):
        Tls(config, "here")


async def test_a_broken_new_file_keeps_the_old_certificate(authority: Authority) -> None:
    files = authority.write()
    async with listening(**files.settings()) as place:
        files.cert.write_text("half of it")
        assert place.listener.tls is not None
        with pytest.raises(ConfigError, match=r"^listeners\.toy: .* are not a certificate"):
            place.listener.tls.reload()
        stream = await place.dial_tls(authority.trusting())
        await ask(stream, b"e x\n", b"x\n")
        await trio.aclose_forcefully(stream)


async def test_a_file_without_authorities_is_refused(authority: Authority, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    config = replace(CONFIG, **authority.write().settings(), tls_client_ca=empty)
    with pytest.raises(ConfigError, match="holds no certificates of authorities"):
        Tls(config, "here")


async def test_an_encrypted_key_wants_its_password_and_nobody_is_asked_for_it(
    authority: Authority,
) -> None:
    from cryptography.hazmat.primitives import serialization

    files = authority.write()
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    config = replace(CONFIG, **files.settings())
    with pytest.raises(ConfigError, match="are not a certificate and its key"):
        Tls(config, "here")
    with pytest.raises(ConfigError, match="password cannot be longer"):
        Tls(replace(config, tls_key_password="x" * 2000), "here")
    config = replace(config, tls_key_password="secret")
    Tls(config, "here")
    assert "secret" not in repr(config)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
async def test_a_drain_does_not_wait_for_handshakes(
    authority: Authority, log: list[Any], sent: bytes
) -> None:
    async with listening(**authority.write().settings()) as place:
        async with await place.dial() as peer:
            await peer.send_all(sent)
            while not place.listener.connections:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            place.listener.stop_accepting()
            place.listener.drain()
            assert await hear_end(peer) == b""
        await place.wait_left()
    assert [entry["reason"] for entry in failures(log)] == ["the server stops"]


async def test_a_handshake_that_ends_as_the_drain_begins_is_not_waited_for(
    authority: Authority, log: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(**authority.write().settings()) as place:

        async def shake_and_drain(*given: Any) -> Any:
            secure = await shake_hands(*given)
            place.listener.stop_accepting()
            place.listener.drain()
            return secure

        monkeypatch.setattr(listeners, "shake_hands", shake_and_drain)
        stream = await place.dial_tls(authority.trusting())
        assert await hear_end(stream) == b""
        await trio.aclose_forcefully(stream)
        await place.wait_left()
    assert [entry["reason"] for entry in failures(log)] == ["the server stops"]
