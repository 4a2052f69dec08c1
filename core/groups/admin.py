"""Groups made, deleted and shown by request, without being a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import calls
from dragoman.core.calls import (
    Assignor,
    GroupCreated,
    GroupDeleted,
    GroupDescribed,
    GroupDescription,
    GroupsListed,
)
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.groups.group import Event
from dragoman.core.groups.groups import GROUP_NUMBER_MAX
from dragoman.core.groups.place import find, rule
from dragoman.core.offset import checked_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import CreateGroup, DeleteGroup, DescribeGroup, Key, ListGroups
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.groups.group import Group
    from dragoman.core.groups.groups import Groups
    from dragoman.core.groups.place import Place
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.waiting import Waiting


class GroupAdmin:
    """Serves the requests that administer groups."""

    def __init__(self, directory: Directory, groups: Groups, waiting: Waiting) -> None:
        self._directory = directory
        self._groups = groups
        self._waiting = waiting

    @property
    def handlers(self) -> dict[type, Callable[[Any, Client, Now], Outcome]]:
        """What serves each of its requests."""
        return {
            calls.CreateGroup: self.create,
            calls.DeleteGroup: self.delete,
            calls.DescribeGroup: self.describe,
            calls.ListGroups: self.list_groups,
        }

    def create(self, request: CreateGroup, client: Client, now: Now) -> Outcome:
        """Makes a group without members."""
        topic = self._directory.topic(request.namespace, request.topic)
        number = request.number
        if not 0 <= number <= GROUP_NUMBER_MAX:
            raise EngineError(
                ErrorCode.INVALID_NUMBER, f"a group number is 1 to {GROUP_NUMBER_MAX}"
            )
        name = checked_group(request.group or str(number or ""))
        place = self._find(topic.namespace.name, topic.state.name, name)
        rule(place, "", Event.CREATE)
        if number and place.home is not None and number in place.home.by_number:
            raise EngineError(
                ErrorCode.GROUP_EXISTS, "a group of the topic has this number", number=number
            )
        self._directory.check_writable()
        group = self._groups.make(
            place.namespace_number,
            place.topic,
            name,
            Assignor.ROUND_ROBIN,
            len(topic.partitions),
            number,
        )
        self._groups.put(group)
        return self._waiting.answer(client, GroupCreated(self._described(group)), group.sequence)

    def delete(self, request: DeleteGroup, client: Client, now: Now) -> Outcome:
        """Deletes a group with its members and committed offsets."""
        place = self._find(request.namespace, request.topic, request.group, request.group_number)
        rule(place, "", Event.DELETE)
        assert place.group is not None
        self._directory.check_writable()
        sequence = self._groups.delete(place.group)
        return self._waiting.answer(client, GroupDeleted(place.name), sequence)

    def describe(self, request: DescribeGroup, client: Client, now: Now) -> Outcome:
        """One group with its members."""
        topic = request.topic
        if topic == "":
            number = self._directory.namespace(request.namespace).number
            namesake = self._groups.namesake(number, request.group)
            topic = "" if namesake is None else namesake.topic
        if topic == "":
            raise EngineError(
                ErrorCode.UNKNOWN_GROUP, "there is no such group", group=request.group
            )
        place = self._find(request.namespace, topic, request.group, request.group_number)
        if place.group is not None:
            self._groups.expire(place.group, now)
        rule(place, "", Event.DESCRIBE)
        assert place.group is not None
        reply = GroupDescribed(self._described(place.group))
        return self._waiting.answer(client, reply, place.group.sequence)

    def list_groups(self, request: ListGroups, client: Client, now: Now) -> Outcome:
        """The groups of one topic, or of all topics of the namespace."""
        directory = self._directory
        if request.topic is None:
            homes = self._groups.homes(directory.namespace(request.namespace).number)
        else:
            home = self._find(request.namespace, request.topic, "").home
            homes = [] if home is None else [home]
        found = [home.by_number[number] for home in homes for number in sorted(home.by_number)]
        if request.names_only:
            listed = [self._named(group) for group in found]
        else:
            for group in found:
                self._groups.expire(group, now)
            listed = [self._described(group) for group in found]
        reply = GroupsListed(listed)
        return self._waiting.answer(client, reply, max(directory.sequence, self._groups.sequence))

    def _find(self, namespace: Key, topic: Key, name: str, number: int = 0) -> Place:
        """The group's place; its topic exists, or groups wait for it.

        Raises:
            EngineError: UNKNOWN_NAMESPACE, UNKNOWN_TOPIC.
        """
        place = find(self._directory, self._groups, namespace, topic, name, number)
        if place.home is None:
            self._directory.topic(namespace, topic)
        return place

    def _described(self, group: Group) -> GroupDescription:
        description = self._named(group)
        description.members = group.described()
        return description

    def _named(self, group: Group) -> GroupDescription:
        """The group without its members."""
        home = self._groups.home_of(group)
        return GroupDescription(
            self._directory.catalog.namespaces_by_number[home.namespace_number].name,
            home.topic,
            group.name,
            group.number,
            group.generation,
            group.assignor,
            self._groups.partition_count(home, group),
            [],
            group.dealt_us,
        )
