"""`dragoman topic`: make, list, describe, trim and delete topics over any dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App

from dragoman.cli.asking import HERE, At, show, talk
from dragoman.clients.task import find_ends
from dragoman.core.calls import TopicConfig
from dragoman.core.describe import config_at_rest
from dragoman.core.name import flat_name
from dragoman.gateway.unit import parse_size, parse_time_us

if TYPE_CHECKING:
    from dragoman.clients.sync import SyncClient
    from dragoman.core.calls import PartitionDescription, TopicDescription

app = App(name="topic", help="Make, list, describe, trim, delete topics.")


@app.command
def create(
    name: str,
    /,
    *,
    partitions: int = 1,
    retention: str = "0",
    retention_bytes: str = "0",
    compact: bool = False,
    tombstone: str = "0",
    idempotent: bool = False,
    dedupe: str = "0",
    event_sourcing: bool = False,
    at: At = HERE,
) -> int:
    """Make a topic. Settings need a dialect that has words for them; Cursus has for all.

    Parameters
    ----------
    name
        The topic, as `topic` or `namespace/topic`.
    partitions
        How many partitions it gets.
    retention
        How long records are kept, such as 7d; 0 as the server says.
    retention_bytes
        How much a partition keeps, such as 10GiB; 0 as the server says.
    compact
        Keep the newest record of each key.
    tombstone
        How long a compacted topic tells that a key was deleted, such as 24h.
    idempotent
        Check the sequences of all producers.
    dedupe
        Of direct publishes with the same payload within so long, keep one, such as 30m.
    event_sourcing
        Hold streams of events; the number of partitions stays.
    """

    def action(client: SyncClient) -> None:
        config = TopicConfig(
            retention_ms=_milliseconds(retention),
            retention_bytes=parse_size(retention_bytes),
            idempotent=idempotent,
            compact=compact,
            tombstone_ms=_milliseconds(tombstone),
            dedupe_ms=_milliseconds(dedupe),
            event_sourcing=event_sourcing,
        )
        show(_row(client.create_topic(name, partitions, config)))

    return talk(at, action)


def _milliseconds(text: str) -> int:
    """A time as people write it; a bare number is one of milliseconds, and little is one of it."""
    time_us = parse_time_us(text, 1000)
    return -(-time_us // 1000)


@app.command
def ls(*, at: At = HERE) -> int:
    """List all topics."""

    def action(client: SyncClient) -> None:
        for topic in client.topics():
            show(_row(topic))

    return talk(at, action)


@app.command
def describe(name: str, /, *, at: At = HERE) -> int:
    """Describe a topic, as far as the dialect tells.

    Parameters
    ----------
    name
        The topic, as `topic` or `namespace/topic`.
    """

    def action(client: SyncClient) -> None:
        topic = client.describe(name)
        row = _row(topic)
        row["partitions"] = [_partition_row(client, name, p) for p in topic.partitions]
        show(row)

    return talk(at, action)


@app.command
def delete(name: str, /, *, at: At = HERE) -> int:
    """Delete a topic with its records.

    Parameters
    ----------
    name
        The topic, as `topic` or `namespace/topic`.
    """

    def action(client: SyncClient) -> None:
        client.delete_topic(name)
        show({"topic": name, "deleted": True})

    return talk(at, action)


@app.command
def trim(name: str, /, *, partition: int, before: str, at: At = HERE) -> int:
    """Delete the oldest records of a partition. Cursus has words for that.

    Parameters
    ----------
    name
        The topic, as `topic` or `namespace/topic`.
    partition
        Which of its partitions.
    before
        The first offset that stays, or `end` for all that is visible.
    """

    def action(client: SyncClient) -> None:
        if before != "end" and not before.isdecimal():
            raise ValueError(f"--before is an offset or `end`, not {before!r}")
        start = client.delete_records(name, partition, -1 if before == "end" else int(before))
        show({"topic": name, "partition": partition, "log_start_offset": start})

    return talk(at, action)


def _partition_row(
    client: SyncClient, name: str, partition: PartitionDescription
) -> dict[str, int]:
    """One partition; where the description is silent about its ends they are read."""
    start, end = partition.log_start_offset, partition.high_watermark
    if not end:
        start, end = client.run(find_ends(name, partition.partition))
    row = {"partition": partition.partition, "log_start_offset": start, "high_watermark": end}
    if partition.size_bytes:
        row["size_bytes"] = partition.size_bytes
    return row


def _row(topic: TopicDescription) -> dict[str, Any]:
    """A topic as JSON; settings at their defaults, or that the dialect does not tell, are left
    out."""
    return {
        "topic": flat_name(topic.namespace, topic.name),
        "partitions": len(topic.partitions),
        **config_at_rest(topic.config),
    }
