"""Consumer groups with one member each: the newest to join owns every partition, in generation 1.

Membership is memory only; committed offsets are in the catalog. A group is known by (namespace,
topic, group) in names, so that it can form before its topic exists (`JoinGroup.assume_partitions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import GroupJoined, GroupLeft, HeartbeatAccepted
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.name import checked_name
from dragoman.core.offset import checked_group
from dragoman.core.outcome import Outcome

if TYPE_CHECKING:
    from dragoman.core.calls import (
        CommitOffset,
        Heartbeat,
        JoinGroup,
        Key,
        LeaveGroup,
        SyncGroup,
    )
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Topic

GroupKey = tuple[str, str, str]
"""Namespace, topic and group, by name."""

MEMBER_CHARACTERS_MAX = 1024
"""Longer than any client makes a member's id; each is held as long as its member."""
GENERATION = 1
"""With one member a group there is nothing to deal out anew, so no second generation."""

_EXPIRY_PERIOD_US = 1_000_000


class Group:
    """One group.

    Attributes:
        member: The id of its member; empty where it has none.
        client: The connection that a bound member lives by, else None.
        deadline_us: When the member is taken for gone unless it is heard of (`Now.mono_us`).
        assumed: Partitions to assign while the topic does not exist.
    """

    __slots__ = ("assumed", "client", "deadline_us", "key", "member", "timeout_us")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.member = ""
        self.client: Client | None = None
        self.timeout_us = 0
        self.deadline_us = 0
        self.assumed = 0


class Coordinator:
    """Serves the group requests and guards fenced commits."""

    def __init__(self, options: EngineOptions, directory: Directory) -> None:
        self._options = options
        self._directory = directory
        self._groups: dict[GroupKey, Group] = {}
        self._latest: dict[tuple[str, str], Group] = {}
        self._bound: dict[Client, dict[Group, None]] = {}
        self._next_expiry_us = 0
        self.expired = 0

    def join(self, request: JoinGroup, client: Client, now: Now) -> Outcome:
        """Makes the member the group's owner; whoever owned it before is unknown from here on."""
        key = self._key(request.namespace, request.topic, request.group)
        checked_group(request.group)
        if not request.member:
            raise EngineError(ErrorCode.UNKNOWN_MEMBER, "a member has an id")
        if len(request.member) > MEMBER_CHARACTERS_MAX:
            raise EngineError(
                ErrorCode.INVALID_NAME,
                f"a member id has at most {MEMBER_CHARACTERS_MAX} characters",
            )
        if self._topic(key) is None:
            if request.assume_partitions <= 0:
                self._directory.topic(request.namespace, request.topic)
            checked_name(key[1], "topic")
        group = self._groups.get(key)
        if group is None:
            group = self._new_group(key, now)
        self._unbind(group)
        group.member = request.member
        group.timeout_us = max(request.session_timeout_us, 0)
        group.deadline_us = now.mono_us + group.timeout_us
        group.assumed = min(max(request.assume_partitions, 0), self._options.partitions_max)
        if request.bound:
            group.client = client
            self._bound.setdefault(client, {})[group] = None
        self._latest[key[0], key[2]] = group
        return Outcome(GroupJoined(group.member, GENERATION, self._assignment(group)))

    def sync(self, request: SyncGroup, client: Client, now: Now) -> Outcome:
        """Tells the member its partitions."""
        group = self._member(request, now)
        return Outcome(GroupJoined(group.member, GENERATION, self._assignment(group)))

    def heartbeat(self, request: Heartbeat, client: Client, now: Now) -> Outcome:
        """Keeps the member alive."""
        group = self._member(request, now)
        return Outcome(HeartbeatAccepted(group.member, GENERATION))

    def leave(self, request: LeaveGroup, client: Client, now: Now) -> Outcome:
        """Gives up membership; the group and its offsets stay."""
        group = self._group(request.namespace, request.topic, request.group, now)
        _check_generation(request.generation)
        known = bool(group.member) and group.member == request.member
        if known:
            self._empty(group)
        return Outcome(GroupLeft(request.member, known))

    def check_commit(self, request: CommitOffset, now: Now) -> None:
        """Refuses a fenced commit of someone who does not own what is committed.

        Raises:
            EngineError: UNKNOWN_GROUP, GROUP_TOPIC_MISMATCH, STALE_GENERATION, UNKNOWN_MEMBER,
                NOT_OWNER.
        """
        group = self._group(request.namespace, request.topic, request.group, now)
        _check_generation(request.generation)
        _check_member(group, request.member)
        count = self._partition_count(group)
        for partition, _ in request.offsets:
            if not 0 <= partition < count:
                raise EngineError(
                    ErrorCode.NOT_OWNER,
                    "the member does not own the partition",
                    partition=partition,
                    generation=GENERATION,
                )

    def is_active(self, topic: Topic, group: str) -> bool:
        """Whether a group of this topic has a member."""
        found = self._groups.get((topic.namespace.name, topic.state.name, group))
        return found is not None and bool(found.member)

    def disconnected(self, client: Client) -> None:
        """Members bound to the connection leave."""
        for group in list(self._bound.get(client, ())):
            self._empty(group)

    def expire(self, now: Now) -> None:
        """Takes members that were silent too long for gone; looks once a second."""
        if now.mono_us < self._next_expiry_us:
            return
        self._next_expiry_us = now.mono_us + _EXPIRY_PERIOD_US
        for group in self._groups.values():
            self._expire(group, now)

    @property
    def group_count(self) -> int:
        """Groups in memory, with or without a member."""
        return len(self._groups)

    @property
    def member_count(self) -> int:
        """Groups that have a member."""
        return sum([1 for group in self._groups.values() if group.member])

    def _member(self, request: SyncGroup | Heartbeat, now: Now) -> Group:
        group = self._group(request.namespace, request.topic, request.group, now)
        _check_generation(request.generation)
        _check_member(group, request.member)
        group.deadline_us = now.mono_us + group.timeout_us
        return group

    def _group(self, namespace: Key, topic: Key, name: str, now: Now) -> Group:
        key = self._key(namespace, topic, name)
        group = self._groups.get(key)
        if group is None:
            other = self._latest.get((key[0], name))
            if other is not None:
                raise EngineError(
                    ErrorCode.GROUP_TOPIC_MISMATCH,
                    "the group reads another topic",
                    group=name,
                    expected=other.key[1],
                    actual=key[1],
                )
            raise EngineError(ErrorCode.UNKNOWN_GROUP, "there is no such group", group=name)
        self._expire(group, now)
        return group

    def _key(self, namespace: Key, topic: Key, group: str) -> GroupKey:
        if isinstance(namespace, str) and isinstance(topic, str):
            return namespace, topic, group
        if isinstance(topic, str):
            return self._directory.namespace(namespace).name, topic, group
        found = self._directory.topic(namespace, topic)
        return found.namespace.name, found.state.name, group

    def _topic(self, key: GroupKey) -> Topic | None:
        try:
            return self._directory.topic(key[0], key[1])
        except EngineError:
            return None

    def _partition_count(self, group: Group) -> int:
        topic = self._topic(group.key)
        return group.assumed if topic is None else len(topic.partitions)

    def _assignment(self, group: Group) -> tuple[int, ...]:
        return tuple(range(self._partition_count(group)))

    def _new_group(self, key: GroupKey, now: Now) -> Group:
        if len(self._groups) >= self._options.groups_max:
            for group in list(self._groups.values()):
                self._expire(group, now)
                if not group.member:
                    self._forget(group)
            if len(self._groups) >= self._options.groups_max:
                raise EngineError(ErrorCode.LIMIT_REACHED, "there are too many groups")
        group = self._groups[key] = Group(key)
        return group

    def _forget(self, group: Group) -> None:
        namespace, _, name = group.key
        del self._groups[group.key]
        if self._latest.get((namespace, name)) is group:
            del self._latest[namespace, name]

    def _expire(self, group: Group, now: Now) -> None:
        if group.member and group.client is None and now.mono_us > group.deadline_us:
            self._empty(group)
            self.expired += 1

    def _empty(self, group: Group) -> None:
        self._unbind(group)
        group.member = ""

    def _unbind(self, group: Group) -> None:
        client = group.client
        if client is not None:
            group.client = None
            bound = self._bound[client]
            del bound[group]
            if not bound:
                del self._bound[client]


def _check_generation(requested: int | None) -> None:
    if requested is not None and requested != GENERATION:
        raise EngineError(
            ErrorCode.STALE_GENERATION,
            f"the group is in generation {GENERATION}",
            current=GENERATION,
            requested=requested,
        )


def _check_member(group: Group, member: str) -> None:
    if not group.member or group.member != member:
        raise EngineError(
            ErrorCode.UNKNOWN_MEMBER,
            "the group has no such member",
            member=member,
            group=group.key[2],
        )
