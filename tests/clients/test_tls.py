"""Clients and commands against a real server that speaks TLS and asks for certificates."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pytest

from dragoman.cli.asking import Where
from dragoman.cli.consume import consume
from dragoman.cli.produce import produce
from dragoman.cli.topic import create, ls
from dragoman.clients.connection import open_client
from dragoman.clients.consumer import open_consumer
from dragoman.clients.error import ConnectionLost, Unreachable
from dragoman.clients.producer import connect_producer
from dragoman.clients.sync import connect
from dragoman.clients.tls import client_context, ending
from support.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD = r"closed the connection: certificate required$"


class Secured(NamedTuple):
    """A server whose Cursus port wants certificates, and what its clients have."""

    port: int
    plain_port: int
    ca: str
    cert: str
    key: str

    def at(self, **changed: Any) -> Where:
        files = {"tls_ca": self.ca, "tls_cert": self.cert, "tls_key": self.key}
        return Where("cursus", "localhost", self.port, **{**files, **changed})


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority(directory)
    server, anna = authority.write(), authority.write("anna", subject="anna")
    keys = {"tls_cert": server.cert, "tls_key": server.key, "tls_client_ca": authority.file}
    process = subprocess.Popen(
        [
            *(str(Path(sys.executable).parent / "dragoman"), "serve", "--ephemeral"),
            *("--data", str(directory / "data"), "--print-ports", "--log-level", "error"),
            *(f"--set=listeners.cursus.{key}={path}" for key, path in keys.items()),
        ],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process, process.stdout:
        try:
            ports = orjson.loads(process.stdout.readline())
            yield Secured(
                ports["cursus"], ports["v1"], str(authority.file), str(anna.cert), str(anna.key)
            )
        finally:
            process.terminate()


def test_commands_speak_tls(secured: Secured, capfd: pytest.CaptureFixture[str]) -> None:
    at = secured.at()
    assert create("told", partitions=1, at=at) == 0
    assert produce("told", "one", at=at) == 0
    assert consume("told", at=at) == 0
    assert consume("told", group="g", at=at) == 0
    printed = capfd.readouterr().out.splitlines()
    assert [orjson.loads(line).get("value") for line in printed[2:]] == ["one", "one"]


async def test_both_faces_speak_tls(secured: Secured) -> None:
    context = client_context(secured.ca, secured.cert, secured.key)
    where = ("cursus", "localhost", secured.port)
    with connect(*where, tls=context) as client:
        client.create_topic("faces", 1)
    with connect_producer(*where, tls=context) as producer:
        producer.produce("faces", [bytes(1 << 20)])
    async with open_client(*where, tls=context) as other:
        assert len(await other.fetch("faces")) == 1
    async with open_consumer("faces", "g", *where, tls=context) as consumer:
        (delivered,) = await consumer.poll()
        assert len(delivered.records[0].value or b"") == 1 << 20


async def test_who_shows_no_certificate_has_its_connection_closed(secured: Secured) -> None:
    where, context = ("cursus", "localhost", secured.port), client_context(secured.ca)
    with (
        pytest.raises(ConnectionLost, match=TOLD),
        connect(*where, tls=context) as client,
    ):
        client.topics()
    async with open_client(*where, tls=context) as other:
        with pytest.raises(ConnectionLost, match=TOLD):
            await other.topics()


async def test_a_server_that_is_not_believed_is_not_spoken_to(secured: Secured) -> None:
    where = ("cursus", "localhost", secured.port)
    with (
        pytest.raises(Unreachable, match="its certificate is not believed: "),
        connect(*where, tls=client_context()),
    ):
        pass
    with pytest.raises(Unreachable, match="its certificate is not believed: "):
        async with open_client(*where, tls=client_context()):
            pass


async def test_a_server_without_tls_is_named_so(secured: Secured) -> None:
    where, context = ("v1", "localhost", secured.plain_port), client_context(secured.ca)
    with pytest.raises(Unreachable, match="no TLS: "), connect(*where, tls=context):
        pass
    with pytest.raises(Unreachable, match="no TLS: "):
        async with open_client(*where, tls=context):
            pass


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tls_ca": "/absent"}, "/absent holds no certificates of authorities: No such file"),
        ({"tls_cert": "/absent"}, "are no certificate and its key: No such file"),
        ({"tls_key": None}, "is no certificate with its key"),
        ({"tls_cert": None}, "a key belongs to a certificate"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    secured: Secured, changed: dict[str, Any], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ls(at=secured.at(**changed)) == 2
    assert sentence in capfd.readouterr().err


def test_the_systems_authorities_are_believed_where_none_is_named(
    secured: Secured, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ls(at=Where("cursus", "localhost", secured.port, tls=True)) == 1
    assert "its certificate is not believed" in capfd.readouterr().err


def test_an_alert_is_told_and_another_end_is_not_explained() -> None:
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    assert ending(alert) == "closed the connection: certificate required"
    assert ending(ConnectionResetError()) == "closed the connection"
