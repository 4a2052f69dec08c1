"""`dragoman topic`: make, list, describe and delete topics over any dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App

from dragoman.cli.asking import HERE, At, show, talk
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.clients.sync import SyncClient
    from dragoman.core.calls import TopicDescription

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
        row["partitions"] = [
            {
                "partition": partition.partition,
                "log_start_offset": partition.log_start_offset,
                "high_watermark": partition.high_watermark,
                "size_bytes": partition.size_bytes,
            }
            for partition in topic.partitions
        ]
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


def _row(topic: TopicDescription) -> dict[str, Any]:
    return {
        "topic": flat_name(topic.namespace, topic.name),
        "partitions": len(topic.partitions),
    }
