"""`dragoman group`: list, describe and delete consumer groups, as far as dialects tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App

from dragoman.cli.asking import HERE, At, show, talk
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.clients.sync import SyncClient
    from dragoman.core.calls import GroupDescription

app = App(name="group", help="List, describe, delete consumer groups.")


@app.command
def ls(topic: str | None = None, /, *, at: At = HERE) -> int:
    """List groups, as far as the dialect tells.

    Parameters
    ----------
    topic
        Of this topic alone, as `topic` or `namespace/topic`.
    """

    def action(client: SyncClient) -> None:
        for group in client.groups(topic):
            show({**_row(group), "members": len(group.members)})

    return talk(at, action)


@app.command
def describe(topic: str, group: str, /, *, at: At = HERE) -> int:
    """Describe a group: its members, and how far it has come in each partition.

    Parameters
    ----------
    topic
        The group's topic, as `topic` or `namespace/topic`.
    group
        The group.
    """

    def action(client: SyncClient) -> None:
        described = client.describe_group(topic, group)
        members = [
            {"member": member.member, "partitions": member.partitions}
            | ({"heard_us": member.heard_us} if member.heard_us else {})
            for member in described.members
        ]
        partitions = [
            {**each._asdict(), "member": each.member or None}
            for each in client.group_progress(topic, described)
        ]
        show({**_row(described), "members": members, "partitions": partitions})

    return talk(at, action)


@app.command
def delete(topic: str, group: str, /, *, at: At = HERE) -> int:
    """Delete a group with its members and committed offsets. Iggy has words for that.

    Parameters
    ----------
    topic
        The group's topic, as `topic` or `namespace/topic`.
    group
        The group.
    """

    def action(client: SyncClient) -> None:
        client.delete_group(topic, group)
        show({"group": group, "topic": topic, "deleted": True})

    return talk(at, action)


def _row(group: GroupDescription) -> dict[str, Any]:
    """A group as JSON; a generation that the dialect does not tell is left out."""
    row: dict[str, Any] = {"group": group.name, "topic": flat_name(group.namespace, group.topic)}
    if group.generation:
        row["generation"] = group.generation
    return row
