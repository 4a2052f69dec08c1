"""`dragoman topic`: make, list, describe and delete topics over any dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App

from dragoman.cli.asking import HERE, At, show, talk
from dragoman.clients.task import find_ends
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.clients.sync import SyncClient
    from dragoman.core.calls import PartitionDescription, TopicDescription

app = App(name="topic", help="Make, list, describe, delete topics.")


@app.command
def create(name: str, /, *, partitions: int = 1, at: At = HERE) -> int:
    """Make a topic.

    Parameters
    ----------
    name
        The topic, as `topic` or `namespace/topic`.
    partitions
        How many partitions it gets.
    """

    def action(client: SyncClient) -> None:
        show(_row(client.create_topic(name, partitions)))

    return talk(at, action)


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
    return {
        "topic": flat_name(topic.namespace, topic.name),
        "partitions": len(topic.partitions),
    }
