"""The published Python clients of Cursus (PyPI `cursus-client`) against the real server.

Each version runs in an environment of its own; its faces, modes and acknowledgements are tried with
ten thousand records, which the other dialects must then find, and the other way round.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from interop.published_client import (
    CONSUME,
    FACES,
    KEYS,
    MODES,
    RECORDS,
    asked_of_consumer,
    produce,
    records_in,
)
from interop.topic_reading import OTHERS, PARTITIONS, check_whole, read_all
from support.environment import drive
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cursus-client") / "data") as running:
        yield running
        assert running.stop() == 0


@pytest.mark.parametrize("keys", [0, KEYS], ids=["keyless", "keyed"])
@pytest.mark.parametrize("acks", ["0", "1", "-1"])
@pytest.mark.parametrize("face", FACES)
def test_what_the_client_sends_is_read_once_and_in_order_in_every_dialect(
    client: Path, server: Server, face: str, acks: str, keys: int
) -> None:
    topic = f"{client.parents[1].name}{face}{acks}{keys}"
    produce(client, server, topic, face=face, acks=acks, keys=keys)
    found = read_all(server, "cursus", topic)
    check_whole(found, "value-", RECORDS)
    for dialect in OTHERS:
        assert read_all(server, dialect, topic) == found


@pytest.mark.parametrize("face", FACES)
def test_an_idempotent_client_is_taken_at_its_word(client: Path, server: Server, face: str) -> None:
    topic = f"{client.parents[1].name}{face}-once"
    produce(client, server, topic, face=face, acks="-1", idempotent=True)
    check_whole(read_all(server, "rustlog", topic), "value-", RECORDS)


@pytest.mark.parametrize("face", FACES)
def test_batches_that_the_client_compresses_are_kept_as_any(
    client: Path, server: Server, face: str
) -> None:
    topic = f"{client.parents[1].name}{face}-gzip"
    produce(client, server, topic, face=face, compression="gzip", keys=KEYS)
    check_whole(read_all(server, "iggy", topic), "value-", RECORDS)


def test_the_clients_key_decides_the_partition(client: Path, server: Server) -> None:
    topic = f"{client.parents[1].name}-by-key"
    produce(client, server, topic, keys=KEYS)
    places = {
        f"key-{int(v.removeprefix('value-')) % KEYS}": p
        for p, _, v in read_all(server, "cursus", topic)
    }
    assert places == {f"key-{n}": fnv1a_32(b"key-%d" % n) % PARTITIONS for n in range(KEYS)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("face", FACES)
def test_the_client_reads_once_and_in_order_what_it_and_other_dialects_wrote(
    client: Path, server: Server, face: str, mode: str
) -> None:
    topic = f"{client.parents[1].name}{face}{mode}"
    produce(client, server, topic, face=face, keys=KEYS, prefix="own-")
    with connect("v1", port=server.ports["v1"]) as writer:
        keys = [b"v1-%d" % (n % KEYS) for n in range(RECORDS)]
        writer.produce(topic, [b"v1-%d" % n for n in range(RECORDS)], keys=[*keys])
    for dialect in ("iggy", "rustlog"):
        with connect(dialect, port=server.ports[dialect]) as writer:
            values = [b"%s-%d" % (dialect.encode(), n) for n in range(RECORDS)]
            writer.produce(topic, values, partition=1)
    total = 4 * RECORDS
    asked = asked_of_consumer(server, topic, total, face=face, mode=mode)
    heard = records_in(drive(client, CONSUME, **asked))
    truth = {
        value: (partition, offset)
        for partition, offset, value in read_all(server, "rustlog", topic)
    }
    assert len(truth) == len(heard) == total
    parts: dict[int, list[int]] = defaultdict(list)
    for step in heard:
        writer_name, _, number = step["value"].partition("-")
        kind = {"own": "key-", "v1": "v1-"}.get(writer_name)
        assert step["key"] == (f"{kind}{int(number) % KEYS}" if kind else "")
        partition, offset = truth[step["value"]]
        assert step["offset"] == offset
        parts[partition].append(offset)
    for offsets in parts.values():
        assert offsets == [*range(len(offsets))]


def fnv1a_32(data: bytes) -> int:
    """The client's own choice, which differs from the server's."""
    found = 0x811C9DC5
    for byte in data:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
