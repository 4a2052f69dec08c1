"""The published Python clients of Cursus (PyPI `cursus-client`) against the real server.

Each version runs in an environment of its own; its faces, modes and acknowledgements are tried with
a thousand records, which the other dialects must then find, and the other way round.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.clients.sync import connect
from support.environment import Driver, drive, python_with
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

DRIVERS = Path(__file__).parent / "drivers"
PRODUCE = DRIVERS / "cursus_produce.py"
CONSUME = DRIVERS / "cursus_consume.py"
VERSIONS = ["0.1.0", "0.1.1"]
FACES = ["sync", "async"]
RECORDS = 1000
PARTITIONS = 3
KEYS = 10

Row = tuple[int, int, str]
"""Partition, offset, value."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cursus-client") / "data") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(params=VERSIONS)
def client(request: pytest.FixtureRequest) -> Path:
    """The interpreter that has one version of the client."""
    version: str = request.param
    return python_with(f"cursus-client=={version}")


def produce(client: Path, server: Server, topic: str, **asked: Any) -> None:
    """Has the client send its thousand records, all of which must be acknowledged."""
    usual = {"acks": "1", "keys": 0, "face": "sync", "prefix": "value-", "count": RECORDS}
    asked = {**usual, "idempotent": False, **asked}
    steps = drive(
        client,
        PRODUCE,
        port=server.ports["cursus"],
        topic=topic,
        partitions=PARTITIONS,
        **asked,
    )
    told = {step["step"]: step.get("count") for step in steps}
    assert told["acknowledged"] == asked["count"]


def asked_of_consumer(server: Server, topic: str, count: int, **asked: Any) -> dict[str, Any]:
    return {
        "port": server.ports["cursus"],
        "topic": topic,
        "group": f"readers-of-{topic}",
        "mode": "polling",
        "face": "sync",
        "count": count,
        "patience_s": 20,
        "linger_s": 0.6,
        **asked,
    }


def records_in(steps: list[dict[str, Any]], *, failing: bool = False) -> list[dict[str, Any]]:
    failed = [step for step in steps if step["step"] == "again"]
    assert failing or not failed, failed
    return [step for step in steps if step["step"] == "record"]


def read_all(server: Server, dialect: str, topic: str) -> list[Row]:
    """Every record of the topic by one of our own clients."""
    rows: list[Row] = []
    with connect(dialect, port=server.ports[dialect]) as reader:
        for partition in range(PARTITIONS):
            at = 0
            while records := reader.fetch(topic, partition, at):
                rows += [(partition, r.offset, (r.value or b"").decode()) for r in records]
                at = records[-1].offset + 1
    return rows


def ends_of(rows: list[Row]) -> dict[int, int]:
    return {partition: offset + 1 for partition, offset, _ in rows}


def committed(server: Server, dialect: str, topic: str, group: str) -> dict[int, int | None]:
    """What the group is to read next, as another dialect is told."""
    with connect(dialect, port=server.ports[dialect]) as other:
        return {p: other.committed(topic, group, p) for p in range(PARTITIONS)}


def check_whole(rows: list[Row], prefix: str = "value-", count: int = RECORDS) -> None:
    """Each of the client's records once, offsets without a gap, each partition in its order."""
    assert len(rows) == count
    assert {value for _, _, value in rows} == {f"{prefix}{n}" for n in range(count)}
    parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for partition, offset, value in rows:
        parts[partition].append((offset, int(value.removeprefix(prefix))))
    for part in parts.values():
        assert [offset for offset, _ in part] == [*range(len(part))]
        assert part == sorted(part, key=lambda pair: pair[1])


@pytest.mark.parametrize("keys", [0, KEYS], ids=["keyless", "keyed"])
@pytest.mark.parametrize("acks", ["0", "1", "-1"])
@pytest.mark.parametrize("face", FACES)
def test_what_the_client_sends_is_read_once_and_in_order_in_every_dialect(
    client: Path, server: Server, face: str, acks: str, keys: int
) -> None:
    topic = f"{client.parents[1].name}{face}{acks}{keys}"
    produce(client, server, topic, face=face, acks=acks, keys=keys)
    found = read_all(server, "cursus", topic)
    check_whole(found)
    for dialect in ("v1", "iggy", "rustlog"):
        assert read_all(server, dialect, topic) == found


@pytest.mark.parametrize("face", FACES)
def test_an_idempotent_client_is_taken_at_its_word(client: Path, server: Server, face: str) -> None:
    topic = f"{client.parents[1].name}{face}-once"
    produce(client, server, topic, face=face, acks="-1", idempotent=True)
    check_whole(read_all(server, "cursus", topic))


def test_the_clients_key_decides_the_partition(client: Path, server: Server) -> None:
    topic = f"{client.parents[1].name}-by-key"
    produce(client, server, topic, keys=KEYS)
    places = {
        f"key-{int(v.removeprefix('value-')) % KEYS}": p
        for p, _, v in read_all(server, "cursus", topic)
    }
    assert places == {f"key-{n}": fnv1a_32(b"key-%d" % n) % PARTITIONS for n in range(KEYS)}


@pytest.mark.parametrize("mode", ["polling", "streaming"])
@pytest.mark.parametrize("face", FACES)
def test_the_client_reads_what_it_and_v1_wrote(
    client: Path, server: Server, face: str, mode: str
) -> None:
    topic = f"{client.parents[1].name}{face}{mode}"
    produce(client, server, topic, face=face, keys=KEYS, prefix="own-")
    keys = [b"v1-%d" % (n % KEYS) for n in range(RECORDS)]
    with connect("v1", port=server.ports["v1"]) as writer:
        writer.produce(topic, [b"v1-%d" % n for n in range(RECORDS)], keys=[*keys])
    steps = drive(
        client, CONSUME, **asked_of_consumer(server, topic, 2 * RECORDS, face=face, mode=mode)
    )
    heard = records_in(steps)
    truth = {
        value: (partition, offset)
        for partition, offset, value in read_all(server, "rustlog", topic)
    }
    assert len(heard) == 2 * RECORDS
    assert {step["value"] for step in heard} == truth.keys()
    parts: dict[int, list[int]] = defaultdict(list)
    for step in heard:
        writer_name, _, number = step["value"].partition("-")
        kind = "key" if writer_name == "own" else "v1"
        assert step["key"] == f"{kind}-{int(number) % KEYS}"
        partition, offset = truth[step["value"]]
        assert step["offset"] == offset
        parts[partition].append(offset)
    for offsets in parts.values():
        assert offsets == [*range(len(offsets))]


def test_the_next_consumer_of_a_group_goes_on_where_the_last_committed(server: Server) -> None:
    client = python_with("cursus-client==0.1.1")
    topic = "committed"
    produce(client, server, topic, keys=KEYS)
    asked = asked_of_consumer(server, topic, RECORDS)
    assert len(records_in(drive(client, CONSUME, **asked))) == RECORDS
    ends = ends_of(read_all(server, "rustlog", topic))
    for dialect in ("rustlog", "v1"):
        assert committed(server, dialect, topic, asked["group"]) == ends
    produce(client, server, topic, keys=KEYS, prefix="later-")
    heard = records_in(drive(client, CONSUME, **asked))
    assert {step["value"] for step in heard} == {f"later-{n}" for n in range(RECORDS)}
    assert len(heard) == RECORDS


def test_what_a_consumer_died_with_is_read_by_the_next_of_its_group(
    client: Path, server: Server
) -> None:
    topic = f"{client.parents[1].name}-died"
    produce(client, server, topic)
    asked = asked_of_consumer(server, topic, RECORDS, mode="streaming", pause_s=0.002)
    with Driver(client, CONSUME, **asked) as first:
        heard = [first.step() for _ in range(1 + RECORDS // 4)]
        first.kill()
    known = {step["value"] for step in records_in(heard)}
    # The dead member keeps its partitions until its session ends. 0.1.1 then hears that it should
    # join again; 0.1.0 listens to no heartbeat's reply, so that the next one after it has them.
    for _ in range(2):
        if len(known) < RECORDS:
            asked |= {"known": [*known], "pause_s": 0, "patience_s": 13}
            known |= {step["value"] for step in records_in(drive(client, CONSUME, **asked))}
    assert known == {f"value-{n}" for n in range(RECORDS)}


@pytest.mark.parametrize("face", FACES)
def test_a_streaming_consumer_lives_on_when_the_server_is_killed_and_started_again(
    client: Path, tmp_path: Path, face: str
) -> None:
    with Server(tmp_path / "data") as server:
        produce(client, server, "lived", face=face)
        asked = asked_of_consumer(
            server, "lived", 2 * RECORDS, face=face, mode="streaming", heartbeat_ms=500
        )
        with Driver(client, CONSUME, **asked) as consumer:
            heard = [consumer.step() for _ in range(1 + RECORDS)]
            server.kill()
            server.start(same_ports=True)
            produce(client, server, "lived", face=face, prefix="later-")
            heard += consumer.until("closed")
        values = {step["value"] for step in records_in(heard, failing=True)}
        kept = [value for _, _, value in read_all(server, "iggy", "lived")]
    sent = {f"{prefix}{n}" for prefix in ("value-", "later-") for n in range(RECORDS)}
    assert (len(kept), set(kept)) == (len(sent), sent)
    assert values == sent


def fnv1a_32(data: bytes) -> int:
    """The client's own choice, which differs from the server's."""
    found = 0x811C9DC5
    for byte in data:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
