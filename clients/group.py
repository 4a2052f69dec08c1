"""Groups as an operator looks at them: tasks that list, describe and delete, and that tell how far
behind a group is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.clients.error import RequestRefused
from dragoman.clients.task import find_ends, list_topics, one
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.name import flat_name, split_flat

if TYPE_CHECKING:
    from dragoman.clients.task import Task
    from dragoman.core.calls import GroupDescription


class Progress(NamedTuple):
    """How far a group has come in one partition.

    Attributes:
        member: Whose share it is, or "".
        committed: The next offset that the group is to read; None where nothing was committed, or
            the dialect does not tell.
        lag: Visible records that the group has not committed, or None.
    """

    partition: int
    member: str
    committed: int | None
    high_watermark: int
    lag: int | None


def list_groups(name: str | None = None) -> Task[list[GroupDescription]]:
    """The groups of one topic, or of all; those that a list only names are described one by one."""
    if name is not None:
        return (yield from _of_topic(name))
    found: list[GroupDescription] = []
    for topic in (yield from list_topics()):
        try:
            found += yield from _of_topic(flat_name(topic.namespace, topic.name))
        except RequestRefused:
            continue  # the topic may be gone by now
    return found


def _of_topic(name: str) -> Task[list[GroupDescription]]:
    namespace, topic = split_flat(name)
    groups: list[GroupDescription] = (yield from one(calls.ListGroups(topic, namespace))).groups
    for index, group in enumerate(groups):
        request = calls.DescribeGroup(topic, group.name, namespace, group.number)
        try:
            groups[index] = (yield from one(request)).group
        except (Unsayable, RequestRefused):
            continue  # the list has its name, and it may be gone by now
    return groups


def describe_group(name: str, group: str) -> Task[GroupDescription]:
    """One group of a topic, as far as the dialect tells."""
    namespace, topic = split_flat(name)
    described = yield from one(calls.DescribeGroup(topic, group, namespace))
    answer: GroupDescription = described.group
    return answer


def delete_group(name: str, group: str) -> Task[None]:
    """Deletes a group with its members and committed offsets."""
    namespace, topic = split_flat(name)
    yield from one(calls.DeleteGroup(topic, group, namespace))


def progress(name: str, group: GroupDescription) -> Task[list[Progress]]:
    """How far a described group has come in each partition of its topic."""
    owners = {partition: each.member for each in group.members for partition in each.partitions}
    found: list[Progress] = []
    for partition in range(group.partition_count):
        start, end = yield from find_ends(name, partition)
        committed = yield from _committed(name, group.name, partition)
        lag = None if committed is None else max(end - max(committed, start), 0)
        found.append(Progress(partition, owners.get(partition, ""), committed, end, lag))
    return found


def _committed(name: str, group: str, partition: int) -> Task[int | None]:
    namespace, topic = split_flat(name)
    try:
        fetched = yield from one(calls.FetchOffset(topic, group, partition, namespace))
    except Unsayable:
        return None
    answer: int | None = fetched.offset
    return answer
