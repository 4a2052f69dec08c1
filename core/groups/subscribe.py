"""Follows of what a group's member is assigned: several partitions as one, through rebalances.

A **subscription** is a Follow for each partition that the connection's bound member owns; its
pushes come from them in turn. The subscriptions of one group are a **circle**, which knows how far
each partition was pushed, or where it stood when the circle began: a partition that changes hands
is gone on with there, so that between two subscribers no record is missing and none comes twice.
Nothing is committed, and the circle is forgotten with its last subscription.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import Whence
from dragoman.core.error import EngineError, ErrorCode, Failure
from dragoman.core.outcome import Outcome

if TYPE_CHECKING:
    from dragoman.core.calls import Follow, Followed
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.follow import Following
    from dragoman.core.groups.coordinator import Coordinator
    from dragoman.core.groups.group import Group, Member
    from dragoman.core.groups.groups import Groups
    from dragoman.core.offset import Offsets
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.reader import Reader
    from dragoman.core.waiting import Waiting


class Circle:
    """The subscribers of one group.

    Attributes:
        subscriptions: Their outcomes.
        places: Of the partitions that no subscription has now: the offset to go on at.
    """

    __slots__ = ("places", "subscriptions")

    def __init__(self) -> None:
        self.subscriptions: dict[Outcome, Subscription] = {}
        self.places: dict[Partition, int] = {}


class Subscription:
    """The `state` of a subscription's outcome.

    Attributes:
        member: Whose partitions it follows; of `group` as long as that has it.
        parts: The Follow of each of its partitions.
        due: The parts that may have something to push, in turn.
        announced: The session was told, and has not pulled in vain since then.
        since: What made its member, until the first pull after that is revealed. Where the log has
            failed by then nothing is ever pushed: who joined may have been told that it failed,
            although it did not.
        failure, failure_sequence: As those of a `core.follow.Follower`.
        whole: None: it is no part of another.
    """

    __slots__ = (
        "announced",
        "client",
        "due",
        "failure",
        "failure_sequence",
        "group",
        "member",
        "outcome",
        "parts",
        "request",
        "since",
        "topic",
        "whole",
    )

    def __init__(
        self,
        request: Follow,
        client: Client,
        outcome: Outcome,
        topic: Topic,
        group: Group,
        member: Member,
    ) -> None:
        self.request = request
        self.client = client
        self.outcome = outcome
        self.topic = topic
        self.group = group
        self.member = member
        self.parts: dict[Partition, Outcome] = {}
        self.due: dict[Outcome, None] = {}
        self.announced = False
        self.since = group.sequence
        self.failure: Failure | None = None
        self.failure_sequence = 0
        self.whole = None

    def owned(self) -> list[Partition]:
        """What its member owns, as far as it is there."""
        partitions = self.topic.partitions
        count = len(partitions)
        return [partitions[number] for number in self.member.partitions if number < count]


class Subscribing:
    """Serves Follows of ASSIGNED; part of `core.follow.Following`, which serves their parts."""

    def __init__(
        self,
        directory: Directory,
        reader: Reader,
        offsets: Offsets,
        waiting: Waiting,
        coordinator: Coordinator,
        groups: Groups,
        following: Following,
    ) -> None:
        self._directory = directory
        self._reader = reader
        self._offsets = offsets
        self._waiting = waiting
        self._coordinator = coordinator
        self._groups = groups
        self._following = following
        self._circles: dict[Group, Circle] = {}

    def subscribe(self, request: Follow, client: Client, now: Now) -> Outcome:
        """Begins to push what the connection's member of the group owns.

        Raises:
            EngineError: UNKNOWN_TOPIC, UNKNOWN_GROUP, UNKNOWN_MEMBER, INVALID_OFFSET.
        """
        if request.whence is Whence.OFFSET and request.offset < 0:
            raise EngineError(ErrorCode.INVALID_OFFSET, "an offset is 0 or more")
        group, member = self._coordinator.member_of(request, client, now)
        if self._groups.stirred:
            self._following.settle(now)
        topic = self._directory.topic(request.namespace, request.topic)
        outcome = Outcome(None, ready=False, follows=True)
        subscription = Subscription(request, client, outcome, topic, group, member)
        circle = self._circles.setdefault(group, Circle())
        earlier = [each for each in circle.subscriptions.values() if each.member is member]
        outcome.state = subscription
        circle.subscriptions[outcome] = subscription
        for each in earlier:
            # It asks again: the newer one goes on where the older was.
            self.forget(each.outcome, each)
        self._groups.watch(group, outcome)
        self._waiting.keep(client, outcome)
        if not self._following.may_tell(subscription.since):
            self._following.hold(outcome, subscription.since)
        self._gain(circle, subscription)
        self._cover(circle, subscription)
        return outcome

    def pull(
        self, outcome: Outcome, subscription: Subscription, now: Now
    ) -> Followed | Failure | None:
        """The next push of whichever partition has the turn."""
        failure = subscription.failure
        if failure is not None or subscription.since:
            if not self._following.may_tell(max(subscription.failure_sequence, subscription.since)):
                return None
            if subscription.since:
                failure = self._following.fenced() or failure
            if failure is not None:
                self.forget(outcome, subscription)
                return failure
            subscription.since = 0
        due = subscription.due
        while due:
            part = next(iter(due))
            del due[part]
            pushed = self._following.pull(part, now)
            if pushed is None:
                continue
            if type(pushed) is Failure:
                self.forget(outcome, subscription)
            else:
                due[part] = None
            return pushed
        subscription.announced = False
        return None

    def stir(self, subscription: Subscription, part: Outcome) -> None:
        """A part may have something to push."""
        subscription.due[part] = None
        if not subscription.announced:
            subscription.announced = True
            self._waiting.announce(subscription.outcome)

    def settle(self, group: Group) -> None:
        """The group was dealt anew, or is gone: who lost partitions leaves them, and then who was
        given them goes on."""
        circle = self._circles.get(group)
        if circle is None:
            return
        circle.places = {each: at for each, at in circle.places.items() if not each.dropped}
        for subscription in circle.subscriptions.values():
            if subscription.failure is None:
                gone = self._ended(subscription)
                owned = set() if gone is not None else set(subscription.owned())
                for partition in [each for each in subscription.parts if each not in owned]:
                    self._leave(circle, subscription, partition)
                if gone is not None:
                    self._following.end(subscription.outcome, *gone)
        going_on = [each for each in circle.subscriptions.values() if each.failure is None]
        for subscription in going_on:
            self._gain(circle, subscription)
        for subscription in going_on[:1]:
            self._cover(circle, subscription)

    def forget(self, outcome: Outcome, subscription: Subscription) -> None:
        """Ends a subscription; another one of the group may go on where it was."""
        group = subscription.group
        circle = self._circles[group]
        self._leave_all(circle, subscription)
        del circle.subscriptions[outcome]
        if not circle.subscriptions:
            del self._circles[group]
        self._groups.unwatch(group, outcome)
        self._waiting.let_go(subscription.client, outcome)
        outcome.state = None

    def end_all(self, failure: Failure) -> None:
        """Ends every subscription because the server stops."""
        for circle in self._circles.values():
            for outcome, subscription in circle.subscriptions.items():
                if subscription.failure is None:
                    self._leave_all(circle, subscription)
                    self._following.end(outcome, failure, 0)

    def _gain(self, circle: Circle, subscription: Subscription) -> None:
        request = subscription.request
        for partition in subscription.owned():
            if partition not in subscription.parts:
                start, since_us = self._place(circle, partition, request)
                subscription.parts[partition] = self._following.begin(
                    partition, request, subscription.client, start, since_us, subscription
                )

    def _cover(self, circle: Circle, subscription: Subscription) -> None:
        """Notes where the partitions stand that nobody follows: their owner may have joined and not
        asked for them yet, or be of another kind, and what comes meanwhile is the circle's."""
        partitions = subscription.topic.partitions
        parts = [each.parts for each in circle.subscriptions.values()]
        if len(circle.places) + sum(map(len, parts)) >= len(partitions):
            return
        known = circle.places.keys() | set().union(*parts)
        for partition in partitions:
            if partition not in known:
                start, since_us = self._reader.start(partition, subscription.request, False)
                if not since_us:
                    circle.places[partition] = start

    def _place(self, circle: Circle, partition: Partition, request: Follow) -> tuple[int, int]:
        """Where a partition is gone on with: where the circle was, or behind what members of
        another kind have committed meanwhile; where it never was, as the request says."""
        kept = circle.places.pop(partition, None)
        if kept is None:
            return self._reader.start(partition, request, False)
        committed = self._offsets.committed(partition, request.kind, request.group)
        return (kept if committed is None else max(kept, committed)), 0

    def _leave(self, circle: Circle, subscription: Subscription, partition: Partition) -> None:
        part = subscription.parts.pop(partition)
        subscription.due.pop(part, None)
        follower = part.state
        if follower is not None:
            if not partition.dropped:
                circle.places[partition] = follower.read.start
            self._following.cancel(part)

    def _leave_all(self, circle: Circle, subscription: Subscription) -> None:
        for partition in list(subscription.parts):
            self._leave(circle, subscription, partition)

    def _ended(self, subscription: Subscription) -> tuple[Failure, int] | None:
        """Why it ends, and what that reveals; None where it goes on."""
        group, topic = subscription.group, subscription.topic
        name = group.name
        if group.members.get(subscription.member.id) is subscription.member:
            return None
        if topic.dropped:
            facts: dict[str, int | str] = {"topic": topic.state.name}
            return Failure(ErrorCode.UNKNOWN_TOPIC, "the topic was deleted", facts), topic.sequence
        if not self._groups.is_alive(group):
            gone = EngineError(ErrorCode.UNKNOWN_GROUP, "the group was deleted", group=name)
            return gone.failure(), self._groups.sequence
        left = EngineError(
            ErrorCode.UNKNOWN_MEMBER, "the member left", member=subscription.member.id, group=name
        )
        return left.failure(), group.sequence
