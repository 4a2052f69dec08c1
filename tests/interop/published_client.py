"""The published Python client of Cursus at work: it sends, and what it reads is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.clients.sync import connect
from interop.topic_reading import PARTITIONS
from support.environment import drive

if TYPE_CHECKING:
    from support.server import Server

DRIVERS = Path(__file__).parent / "drivers"
PRODUCE = DRIVERS / "cursus_produce.py"
CONSUME = DRIVERS / "cursus_consume.py"
FACES = ["sync", "async"]
MODES = ["polling", "streaming"]
RECORDS = 10_000
KEYS = 10


def produce(client: Path, server: Server, topic: str, **asked: Any) -> None:
    """Has the client send its records, all of which must be acknowledged."""
    usual = {"acks": "1", "keys": 0, "face": "sync", "prefix": "value-", "count": RECORDS}
    asked = {**usual, "idempotent": False, "compression": "none", **asked}
    port = server.ports["cursus"]
    steps = drive(client, PRODUCE, port=port, topic=topic, partitions=PARTITIONS, **asked)
    told = {step["step"]: step.get("count") for step in steps}
    assert told["acknowledged"] == asked["count"]


def asked_of_consumer(server: Server, topic: str, count: int, **asked: Any) -> dict[str, Any]:
    """What the consuming driver is given."""
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
    """Those steps that are records; of the others none may be a failure unless they may."""
    failed = [step for step in steps if step["step"] == "again"]
    assert failing or not failed, failed
    return [step for step in steps if step["step"] == "record"]


def committed(server: Server, dialect: str, topic: str, group: str) -> dict[int, int | None]:
    """What the group is to read next, as another dialect is told."""
    with connect(dialect, port=server.ports[dialect]) as other:
        return {p: other.committed(topic, group, p) for p in range(PARTITIONS)}
