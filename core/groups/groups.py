"""All groups: found by topic and by name or number, and kept in step with topics and the catalog.

A group belongs to a topic by name, not to the topic itself, because it may form before its topic
exists. Only here do groups change in the journal and the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.change import GroupDropped, NamespaceDropped, TopicDropped, TopicPut
from dragoman.core.due import Due
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.groups.group import NEVER_US, Group, Member

if TYPE_CHECKING:
    from dragoman.core.calls import Assignor
    from dragoman.core.change import Change
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome

GROUP_NUMBER_MAX = (1 << 32) - 1

_EXPIRED_PER_TICK = 512
"""How many groups and members one tick looks at, so that no tick takes long."""


class Home:
    """A topic as its groups know it.

    Attributes:
        topic_id: 0 while there is no such topic.
        by_name, by_number: The same groups under both keys.
    """

    __slots__ = ("_free", "by_name", "by_number", "namespace_number", "topic", "topic_id")

    def __init__(self, namespace_number: int, topic: str) -> None:
        self.namespace_number = namespace_number
        self.topic = topic
        self.topic_id = 0
        self.by_name: dict[str, Group] = {}
        self.by_number: dict[int, Group] = {}
        self._free = 1

    def number_for(self, name: str) -> int:
        """The number of a new group: the one that is its name, where it is free, else the next."""
        taken = self.by_number
        if name.isdecimal() and len(name) <= 10:
            number = int(name)
            if str(number) == name and 0 < number <= GROUP_NUMBER_MAX and number not in taken:
                return number
        while self._free in taken:
            self._free += 1
        return self._free

    def add(self, group: Group) -> None:
        """Takes a group in."""
        self.by_name[group.name] = group
        self.by_number[group.number] = group

    def remove(self, group: Group) -> None:
        """Lets a group go; its number is free again."""
        del self.by_name[group.name]
        del self.by_number[group.number]
        self._free = min(self._free, group.number)


class Groups:
    """The live groups over the catalog.

    Attributes:
        count, member_count: As they stand.
        sequence: Of the newest change of any group.
        dealt: Generations begun since the start.
        expired: Members that were silent for too long, since the start.
        watchers: The follows that depend on who owns what in a group.
        stirred: Watched groups that were dealt anew, or are gone, since the follows last looked.
    """

    def __init__(self, options: EngineOptions, directory: Directory) -> None:
        self._options = options
        self._directory = directory
        self._homes: dict[tuple[int, str], Home] = {}
        self._homes_by_topic: dict[int, Home] = {}
        self._namesakes: dict[tuple[int, str], dict[Home, None]] = {}
        self._bound: dict[Client, dict[Group, Member]] = {}
        self._home_of: dict[Group, Home] = {}
        self._due: Due[Group] = Due()
        self.count = 0
        self.member_count = 0
        self.sequence = 0
        self.dealt = 0
        self.expired = 0
        self.watchers: dict[Group, dict[Outcome, None]] = {}
        self.stirred: dict[Group, None] = {}
        self._wall_us = 0
        self._recover()
        directory.on_admin = self._administered

    # ---------------------------------------------------------------- finding

    def home(self, namespace_number: int, topic: str) -> Home | None:
        """The topic, if it ever had a group."""
        return self._homes.get((namespace_number, topic))

    def homes(self, namespace_number: int) -> list[Home]:
        """The topics of a namespace that ever had a group, by name."""
        found = [home for key, home in self._homes.items() if key[0] == namespace_number]
        return sorted(found, key=lambda home: home.topic)

    def namesake(self, namespace_number: int, name: str) -> Home | None:
        """The topic of the namespace that has had a group of this name for the shortest time."""
        homes = self._namesakes.get((namespace_number, name))
        return None if not homes else next(reversed(homes))

    def home_of(self, group: Group) -> Home:
        """The group's topic."""
        return self._home_of[group]

    def is_alive(self, group: Group) -> bool:
        """Whether the group is not gone."""
        return group in self._home_of

    def bound_member(self, client: Client, group: Group) -> Member | None:
        """The connection's own member of the group."""
        bound = self._bound.get(client)
        return None if bound is None else bound.get(group)

    def partition_count(self, home: Home, group: Group) -> int:
        """How many partitions there are to deal."""
        topic = self._directory.catalog.topics.get(home.topic_id)
        return group.partition_count if topic is None else len(topic.partitions)

    # ---------------------------------------------------------------- changing

    def make(
        self,
        namespace_number: int,
        topic: str,
        name: str,
        assignor: Assignor,
        partition_count: int,
        number: int = 0,
    ) -> Group:
        """A new group, which is not in the journal before it is dealt or put.

        Raises:
            EngineError: LIMIT_REACHED.
        """
        if self.count >= self._options.groups_max:
            raise EngineError(ErrorCode.LIMIT_REACHED, "there are too many groups")
        home = self._homes.get((namespace_number, topic))
        if home is None:
            home = Home(namespace_number, topic)
            self._settle(home)
        group = Group(name, number or home.number_for(name), assignor, partition_count)
        self._add(home, group)
        return group

    def put(self, group: Group) -> None:
        """Journals the group as it stands."""
        home = self._home_of[group]
        change = group.at_rest(home.namespace_number, home.topic)
        group.sequence = self.sequence = self._directory.apply(change)

    def deal(self, group: Group, generations: int = 1) -> None:
        """Begins a new generation."""
        group.deal(self.partition_count(self._home_of[group], group), generations)
        group.dealt_us = self._wall_us
        if group in self.watchers:
            self.stirred[group] = None
        self.dealt += generations
        self.put(group)

    def enter(self, group: Group, member: Member) -> bool:
        """Makes it a member; whoever calls this deals or puts.

        A connection has one member of a group. Returns whether one that it had before is gone.
        """
        replaced = False
        if member.client is not None:
            bound = self._bound.setdefault(member.client, {})
            before = bound.get(group)
            if before is not None:
                self.remove(group, before)
                bound = self._bound.setdefault(member.client, {})
                replaced = True
            bound[group] = member
        if group.members.get(member.id) is not member:
            self.member_count += 1
            group.members[member.id] = member
        return replaced

    def remove(self, group: Group, member: Member) -> None:
        """Ends a membership; whoever calls this deals."""
        del group.members[member.id]
        self.member_count -= 1
        self.unbind(group, member)

    def unbind(self, group: Group, member: Member) -> None:
        """The member does not live by its connection any more."""
        client = member.client
        if client is not None:
            member.client = None
            bound = self._bound[client]
            del bound[group]
            if not bound:
                del self._bound[client]

    def hear(self, group: Group, member: Member, now: Now) -> None:
        """The member's time begins anew."""
        member.heard_us = self._wall_us = now.wall_us
        if member.client is None:
            deadline_us = member.deadline_us = now.mono_us + member.timeout_us
            if deadline_us < group.due_us:
                group.due_us = deadline_us
                self._due.put(group, deadline_us + 1)

    def delete(self, group: Group) -> int:
        """Deletes the group with its committed offsets; returns the sequence of that."""
        directory = self._directory
        home = self._home_of[group]
        topic = directory.topics.get(home.topic_id)
        had_offsets = topic is not None and ("group", group.name) in topic.state.offsets
        change = GroupDropped(home.namespace_number, home.topic, group.name)
        self.sequence = directory.apply(change)
        if topic is not None and had_offsets:
            # Who reads what was committed learns of the deletion.
            topic.sequence = self.sequence
            topic.offset_sequences.pop(("group", group.name), None)
            directory.offset_groups -= 1
        self._forget(home, group)
        if not home.by_name:
            self._unsettle(home)
        return self.sequence

    def watch(self, group: Group, follow: Outcome) -> None:
        """The Follow depends on who owns what in the group."""
        self.watchers.setdefault(group, {})[follow] = None

    def unwatch(self, group: Group, follow: Outcome) -> None:
        """It does not any more."""
        watchers = self.watchers.get(group)
        if watchers is not None:
            watchers.pop(follow, None)
            if not watchers:
                del self.watchers[group]
                self.stirred.pop(group, None)

    # ---------------------------------------------------------------- time and connections

    def expire(self, group: Group, now: Now) -> None:
        """Drops the members that were silent for too long, all with one generation.

        Raises:
            EngineError: STORAGE_FAILED, SHUTTING_DOWN, where there are some and none can go.
        """
        self._wall_us = now.wall_us
        if now.mono_us <= group.due_us:
            return
        silent, due_us = group.silent(now.mono_us)
        if silent:
            self._directory.check_writable()
        group.due_us = due_us
        if due_us < NEVER_US:
            self._due.put(group, due_us + 1)
        else:
            self._due.forget(group)
        if silent:
            for member in silent:
                self.remove(group, member)
            self.expired += len(silent)
            self.deal(group)

    def tick(self, now: Now) -> None:
        """Drops silent members of the groups that nobody asks."""
        self._wall_us = now.wall_us
        if self._directory.is_writable:
            left = _EXPIRED_PER_TICK
            while left > 0 and (due := self._due.take_due(now.mono_us, 1)):
                left -= 1 + len(due[0].members)
                self.expire(due[0], now)

    def disconnected(self, client: Client) -> None:
        """Members bound to the connection leave."""
        if self._directory.is_writable:
            for group, member in list(self._bound.get(client, {}).items()):
                self.remove(group, member)
                self.deal(group)

    # ---------------------------------------------------------------- keeping in step

    def _administered(self, change: Change) -> None:
        """A namespace or topic was changed: its groups follow."""
        match change:
            case TopicPut(topic_id, namespace_number, _, name):
                home = self._homes_by_topic.get(topic_id)
                if home is not None and home.topic != name:
                    self._rename(home, name)
                home = self._homes.get((namespace_number, name))
                if home is not None:
                    home.topic_id = topic_id
                    self._homes_by_topic[topic_id] = home
                    count = len(change.partition_created_us)
                    for group in home.by_name.values():
                        if group.members and group.partition_count != count:
                            self.deal(group)
            case TopicDropped(topic_id):
                home = self._homes_by_topic.get(topic_id)
                if home is not None:
                    self._drop(home)
            case NamespaceDropped(number):
                for home in self.homes(number):
                    self._drop(home)

    def _rename(self, home: Home, topic: str) -> None:
        """The groups of the topic go with it; groups that waited for a topic of its new name are
        gone, as in the catalog."""
        waiting = self._homes.get((home.namespace_number, topic))
        if waiting is not None:
            self._drop(waiting)
        del self._homes[home.namespace_number, home.topic]
        home.topic = topic
        self._homes[home.namespace_number, topic] = home

    def _drop(self, home: Home) -> None:
        for group in list(home.by_name.values()):
            self._forget(home, group)
        self._unsettle(home)

    def _settle(self, home: Home) -> None:
        self._homes[home.namespace_number, home.topic] = home
        namespace = self._directory.catalog.namespaces_by_number[home.namespace_number]
        topic = namespace.topics.get(home.topic)
        if topic is not None:
            home.topic_id = topic.topic_id
            self._homes_by_topic[topic.topic_id] = home

    def _unsettle(self, home: Home) -> None:
        del self._homes[home.namespace_number, home.topic]
        self._homes_by_topic.pop(home.topic_id, None)

    def _add(self, home: Home, group: Group) -> None:
        home.add(group)
        self._home_of[group] = home
        self._namesakes.setdefault((home.namespace_number, group.name), {})[home] = None
        self.count += 1

    def _forget(self, home: Home, group: Group) -> None:
        for member in list(group.members.values()):
            self.remove(group, member)
        self._due.forget(group)
        if group in self.watchers:
            self.stirred[group] = None
        home.remove(group)
        del self._home_of[group]
        key = (home.namespace_number, group.name)
        del self._namesakes[key][home]
        if not self._namesakes[key]:
            del self._namesakes[key]
        self.count -= 1

    def _recover(self) -> None:
        for (namespace_number, topic), states in list(self._directory.catalog.groups.items()):
            home = Home(namespace_number, topic)
            self._settle(home)
            for name, state in list(states.items()):
                group = Group.recovered(name, state)
                self._add(home, group)
                self.member_count += len(group.members)
                if group.members:
                    self._due.put(group, 0)
                resized = group.partition_count != self.partition_count(home, group)
                if len(group.members) < len(state.members) or (group.members and resized):
                    self.deal(group)
