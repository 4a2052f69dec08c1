"""Serves the requests of consumer groups, for members of all dialects alike.

What a group does with each is looked up in `core.groups.group.TABLE`. A reply that tells of a
change waits until the change is durable, and so does one that only shows the current generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.core import calls
from dragoman.core.calls import (
    Assignor,
    GroupJoined,
    GroupLeft,
    HeartbeatAccepted,
)
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.groups.group import GENERATIONS, Effect, Event, Group, Member
from dragoman.core.groups.place import find, not_owner, rule
from dragoman.core.name import checked_name
from dragoman.core.offset import checked_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import (
        CommitOffset,
        Fetch,
        Follow,
        Heartbeat,
        JoinGroup,
        LeaveGroup,
        SyncGroup,
    )
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.groups.group import Rule
    from dragoman.core.groups.groups import Groups
    from dragoman.core.groups.place import Place
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Topic
    from dragoman.core.waiting import Waiting

MEMBER_CHARACTERS_MAX = 255
"""Longer than any client makes a member's id; each is held as long as its member."""
SESSION_TIMEOUT_MAX_US = 7 * 86_400_000_000
"""A member that is not heard of for a week is gone, whatever it asked for."""


class Turn(NamedTuple):
    """A poll of a bound member where it is assigned.

    Attributes:
        partition: Its next one; None where it owns none.
        generation: In which it owns it.
    """

    group: Group
    member: Member
    partition: int | None
    generation: int

    @property
    def holds(self) -> bool:
        """Whether the partition is still the member's, without a generation in between."""
        group = self.group
        return (
            group.generation == self.generation and group.members.get(self.member.id) is self.member
        )


class Coordinator:
    """Serves the group requests, guards fenced commits and deals polls their partitions."""

    def __init__(
        self, options: EngineOptions, directory: Directory, groups: Groups, waiting: Waiting
    ) -> None:
        self._options = options
        self._directory = directory
        self._groups = groups
        self._waiting = waiting

    @property
    def handlers(self) -> dict[type, Callable[[Any, Client, Now], Outcome]]:
        """What serves each of its requests."""
        return {
            calls.JoinGroup: self.join,
            calls.SyncGroup: self.sync,
            calls.Heartbeat: self.heartbeat,
            calls.LeaveGroup: self.leave,
        }

    # ---------------------------------------------------------------- members

    def join(self, request: JoinGroup, client: Client, now: Now) -> Outcome:
        """Makes a member of the asker, or tells a member what it owns."""
        groups = self._groups
        place = self._place(request, request.group_number)
        checked_group(place.name)
        member_id = _checked_member(request.member)
        count = self._count_to_deal(request, place)
        group = place.group
        if group is not None:
            groups.expire(group, now)
            if request.is_new:
                member_id = _untaken(member_id, group)
        assignor = Assignor.ROUND_ROBIN if group is None else group.assignor
        event = Event.JOIN_KNOWN if request.must_exist else Event.JOIN
        if request.assignor not in (None, assignor) and not (group is None and request.must_exist):
            event = Event.JOIN_REPLAN
        found = rule(place, member_id, event)
        timeout_us = min(max(request.session_timeout_us, 0), SESSION_TIMEOUT_MAX_US)
        bound = client if request.bound else None
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None:
            as_before = member.lives_as(client.dialect, timeout_us, bound)
            if found.effect is Effect.HEAR and as_before:
                groups.hear(group, member, now)
                return self._joined(group, member, client)
        elif group is not None and len(group.members) >= self._options.group_members_max:
            raise EngineError(ErrorCode.LIMIT_REACHED, "the group has too many members")
        self._directory.check_writable()
        if group is None:
            group = groups.make(place.namespace_number, place.topic, place.name, assignor, count)
        if request.assignor is not None:
            group.assignor = request.assignor
        if member is None:
            member = Member(member_id)
        groups.unbind(group, member)
        member.dialect = client.dialect
        member.timeout_us = timeout_us
        member.client = bound
        member.joined_by = client.number
        replaced = groups.enter(group, member)
        groups.hear(group, member, now)
        generations = GENERATIONS.get(found.effect, 0) or int(replaced)
        if generations:
            groups.deal(group, generations)
        else:
            groups.put(group)
        return self._joined(group, member, client)

    def sync(self, request: SyncGroup, client: Client, now: Now) -> Outcome:
        """Tells the member its partitions."""
        group, member = self._heard(request, now)
        return self._joined(group, member, client)

    def heartbeat(self, request: Heartbeat, client: Client, now: Now) -> Outcome:
        """Keeps the member alive."""
        group, member = self._heard(request, now)
        reply = HeartbeatAccepted(member.id, group.generation)
        return self._waiting.answer(client, reply, group.sequence)

    def leave(self, request: LeaveGroup, client: Client, now: Now) -> Outcome:
        """Gives up membership; the group and its offsets stay."""
        numbered = bool(request.group_number)
        place = self._place(request, request.group_number, lenient=not numbered)
        if numbered and place.home is None:
            # Where groups have numbers none forms before its topic, so that is what is missing.
            self._directory.topic(request.namespace, request.topic)
        name = request.member
        if request.is_stem and place.group is not None and name not in place.group.members:
            self._groups.expire(place.group, now)
            meant = place.group.made_of(name, client.number)
            name = name if meant is None else meant.id
        group, found = self._fenced(place, name, request.generation, Event.LEAVE, now)
        known = found.effect is Effect.DEAL
        if known:
            self._directory.check_writable()
            self._groups.remove(group, group.members[name])
            self._groups.deal(group)
        return self._waiting.answer(client, GroupLeft(name, known), group.sequence)

    # ---------------------------------------------------------------- offsets and polls

    def check_commit(self, request: CommitOffset, now: Now) -> int:
        """Refuses a fenced commit of someone who does not own what is committed; returns the
        sequence of the generation that it was fenced by.

        Raises:
            EngineError: UNKNOWN_GROUP, GROUP_TOPIC_MISMATCH, STALE_GENERATION, UNKNOWN_MEMBER,
                NOT_OWNER.
        """
        place = self._place(request, request.group_number, lenient=True)
        group = self._fenced(place, request.member, request.generation, Event.COMMIT, now)[0]
        own = group.members[request.member].partitions
        for partition, _ in request.offsets:
            if partition not in own:
                rule(place, request.member, Event.COMMIT_FOREIGN, partition)
        return group.sequence

    def is_active(self, topic: Topic, name: str, now: Now) -> bool:
        """Whether a group of this topic has a member."""
        home = self._groups.home(topic.namespace.number, topic.state.name)
        group = None if home is None else home.by_name.get(name)
        if group is None:
            return False
        self._groups.expire(group, now)
        return bool(group.members)

    def name_of(self, topic: Topic, number: int) -> str:
        """The name of the group with this number, or its digits where there is none."""
        home = self._groups.home(topic.namespace.number, topic.state.name)
        group = None if home is None else home.by_number.get(number)
        return str(number) if group is None else group.name

    def turn(self, topic: Topic, name: str, client: Client, now: Now) -> Turn:
        """Moves the connection's member of the group to its next partition.

        Raises:
            EngineError: UNKNOWN_GROUP, UNKNOWN_MEMBER, NO_PARTITIONS.
        """
        group, member = self._polling(topic, name, client, now)
        if not topic.partitions:
            self._directory.partition(topic, 0)
        return Turn(group, member, member.take_turn(), group.generation)

    def current(self, topic: Topic, name: str, client: Client, now: Now, *, to_commit: bool) -> int:
        """The partition of the last poll of the connection's member of the group.

        Args:
            to_commit: Refuse where it was given to another member since then.

        Raises:
            EngineError: UNKNOWN_GROUP, UNKNOWN_MEMBER, UNKNOWN_PARTITION, NOT_OWNER.
        """
        group, member = self._polling(topic, name, client, now)
        partition = member.current
        if partition is None:
            raise EngineError(
                ErrorCode.UNKNOWN_PARTITION, "the member polled no partition yet", group=group.name
            )
        if to_commit and member.is_lost:
            raise not_owner(group, partition)
        return partition

    def check_reader(self, request: Fetch | Follow, now: Now) -> Group:
        """Refuses a fenced read of someone who is no member, or not in this generation, any more.

        Raises:
            EngineError: UNKNOWN_GROUP, GROUP_TOPIC_MISMATCH, STALE_GENERATION, UNKNOWN_MEMBER.
        """
        place = self._place(request)
        return self._fenced(place, request.member, request.generation, Event.READ, now)[0]

    def member_of(self, request: Follow, client: Client, now: Now) -> tuple[Group, Member]:
        """The group, and the member of it that the connection is bound to.

        Raises:
            EngineError: UNKNOWN_TOPIC, UNKNOWN_GROUP, UNKNOWN_MEMBER.
        """
        topic = self._directory.topic(request.namespace, request.topic)
        return self._polling(topic, request.group, client, now)

    def revealed_by(self, topic: Topic, name: str) -> int:
        """The sequence of the newest change of the group."""
        home = self._groups.home(topic.namespace.number, topic.state.name)
        group = None if home is None else home.by_name.get(name)
        return 0 if group is None else group.sequence

    # ---------------------------------------------------------------- parts

    def _place(
        self,
        request: JoinGroup | SyncGroup | Heartbeat | LeaveGroup | CommitOffset | Fetch | Follow,
        number: int = 0,
        *,
        lenient: bool = False,
    ) -> Place:
        namespace, topic, group = request.namespace, request.topic, request.group
        return find(self._directory, self._groups, namespace, topic, group, number, lenient=lenient)

    def _heard(self, request: SyncGroup | Heartbeat, now: Now) -> tuple[Group, Member]:
        place = self._place(request, lenient=True)
        group = self._fenced(place, request.member, request.generation, Event.HEAR, now)[0]
        member = group.members[request.member]
        self._groups.hear(group, member, now)
        return group, member

    def _fenced(
        self, place: Place, member: str, generation: int | None, event: Event, now: Now
    ) -> tuple[Group, Rule]:
        """Looks the event up, or what became of it: who was silent is gone, and another generation
        comes before everything else that may be wrong."""
        group = place.group
        if group is not None:
            self._groups.expire(group, now)
            if generation is not None and generation != group.generation:
                event = Event.STALE
        found = rule(place, member, event, generation or 0)
        assert group is not None
        return group, found

    def _polling(self, topic: Topic, name: str, client: Client, now: Now) -> tuple[Group, Member]:
        """The group, and the member of it that the connection is.

        Raises:
            EngineError: UNKNOWN_GROUP, UNKNOWN_MEMBER.
        """
        place = find(self._directory, self._groups, topic.namespace.name, topic.state.name, name)
        group = place.group
        member = None
        if group is not None:
            self._groups.expire(group, now)
            member = self._groups.bound_member(client, group)
        rule(place, "" if member is None else member.id, Event.POLL)
        assert group is not None
        assert member is not None
        return group, member

    def _count_to_deal(self, request: JoinGroup, place: Place) -> int:
        """How many partitions a new group is dealt.

        Raises:
            EngineError: UNKNOWN_TOPIC, INVALID_NAME, NO_PARTITIONS.
        """
        namespace = self._directory.catalog.namespaces_by_number[place.namespace_number]
        topic = namespace.topics.get(place.topic)
        if topic is not None:
            if not topic.partitions and not request.bound:
                self._directory.partition(self._directory.topics[topic.topic_id], 0)
            return len(topic.partitions)
        if request.assume_partitions <= 0:
            self._directory.topic(request.namespace, request.topic)
        checked_name(place.topic, "topic")
        return min(request.assume_partitions, self._options.partitions_max)

    def _joined(self, group: Group, member: Member, client: Client) -> Outcome:
        reply = GroupJoined(member.id, group.generation, tuple(member.partitions))
        return self._waiting.answer(client, reply, group.sequence)


def _untaken(member: str, group: Group) -> str:
    """The id, or where the group has it, the first that it has not, by the digits at its end."""
    stem = member.rstrip("0123456789")
    width = len(member) - len(stem)
    number = int(member[len(stem) :] or 0)
    for _ in range(10**width):
        if member not in group.members:
            return member
        number = (number + 1) % 10**width
        member = f"{stem}{number:0{width}}"
    raise EngineError(ErrorCode.LIMIT_REACHED, "the group has too many members of this name")


def _checked_member(member: str) -> str:
    if not member:
        raise EngineError(ErrorCode.UNKNOWN_MEMBER, "a member has an id")
    if len(member) > MEMBER_CHARACTERS_MAX:
        raise EngineError(
            ErrorCode.INVALID_NAME, f"a member id has at most {MEMBER_CHARACTERS_MAX} characters"
        )
    if not member.isascii():
        try:
            member.encode()
        except UnicodeEncodeError:
            raise EngineError(ErrorCode.INVALID_NAME, "a member id is Unicode text") from None
    return member
