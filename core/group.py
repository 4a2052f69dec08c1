"""The vocabulary of groups and of committed offsets.

A group is named by `group`, or where `group_number` is not 0 by the number by which a numbering
dialect knows it; a group of that number which does not exist yet is named by its digits.

These are part of `core.calls`, which lists them among all requests and replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from dragoman.core.calls import Key


class OffsetKind(Enum):
    """Whose committed offset it is: two separate maps."""

    GROUP = "group"
    CONSUMER = "consumer"


@dataclass(slots=True)
class CommitOffset:
    """Store the next offset to read of one or more partitions, all or none.

    Attributes:
        offsets: (partition, next offset) pairs.
        member, generation: Given by dialects whose commits are fenced; empty and None where they
            are not.
        monotonic: A commit below the committed offset is OFFSET_REGRESSION.
        within_log: An offset above the high watermark is INVALID_OFFSET.
    """

    topic: Key
    group: str
    offsets: tuple[tuple[int, int], ...]
    namespace: Key = DEFAULT_NAMESPACE
    kind: OffsetKind = OffsetKind.GROUP
    member: str = ""
    generation: int | None = None
    monotonic: bool = False
    within_log: bool = False
    group_number: int = 0


@dataclass(slots=True)
class OffsetCommitted:
    """Reply of CommitOffset: how many partitions were stored."""

    count: int


@dataclass(slots=True)
class FetchOffset:
    """Read a committed offset."""

    topic: Key
    group: str
    partition: int
    namespace: Key = DEFAULT_NAMESPACE
    kind: OffsetKind = OffsetKind.GROUP
    group_number: int = 0


@dataclass(slots=True)
class OffsetFetched:
    """The next offset to read, or None where nothing was ever committed."""

    partition: int
    offset: int | None
    high_watermark: int


class Assignor(Enum):
    """How a group's partitions are dealt to its members."""

    ROUND_ROBIN = "round_robin"
    RANGE = "range"


@dataclass(slots=True)
class JoinGroup:
    """Become a member of a group on one topic.

    Attributes:
        member: The id that the dialect gave it; joining again with a known id does not rebalance.
        assume_partitions: Where the topic is missing, assign over so many; 0 refuses.
        bound: The member lives as long as its connection instead of by heartbeats.
        must_exist: A group that was never made or joined is UNKNOWN_GROUP instead of made now.
        is_new: The id was made for a member that joins for the first time: where the group has one
            of this id, the digits at its end go on to one that it has not.
    """

    topic: Key
    group: str
    member: str
    namespace: Key = DEFAULT_NAMESPACE
    assignor: Assignor | None = None
    session_timeout_us: int = 10_000_000
    assume_partitions: int = 0
    bound: bool = False
    must_exist: bool = False
    group_number: int = 0
    is_new: bool = False


@dataclass(slots=True)
class GroupJoined:
    """Reply of JoinGroup and SyncGroup; generations count from 1."""

    member: str
    generation: int
    partitions: tuple[int, ...]


@dataclass(slots=True)
class SyncGroup:
    """Ask for the member's assignment in a generation (None: whichever is current)."""

    topic: Key
    group: str
    member: str
    generation: int | None = None
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class Heartbeat:
    """Keep a member alive; STALE_GENERATION tells it to join again."""

    topic: Key
    group: str
    member: str
    generation: int | None = None
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class HeartbeatAccepted:
    """Reply of Heartbeat."""

    member: str
    generation: int


@dataclass(slots=True)
class LeaveGroup:
    """Give up membership. `generation` None is unfenced.

    Attributes:
        is_stem: `member` may also be the name of which the dialect made the ids of its members, by
            `-` and digits: where no member has that id, the one leaves that this connection joined
            as, else the one that joined last.
    """

    topic: Key
    group: str
    member: str
    generation: int | None = None
    namespace: Key = DEFAULT_NAMESPACE
    group_number: int = 0
    is_stem: bool = False


@dataclass(slots=True)
class GroupLeft:
    """Reply of LeaveGroup; `known` is False where there was no such member."""

    member: str
    known: bool


@dataclass(slots=True)
class CreateGroup:
    """Make a group without members. `number` 0 takes the next free one of its topic."""

    topic: Key
    group: str
    number: int = 0
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class DeleteGroup:
    """Delete a group with its members and committed offsets."""

    topic: Key
    group: str
    namespace: Key = DEFAULT_NAMESPACE
    group_number: int = 0


@dataclass(slots=True)
class DescribeGroup:
    """One group with its members. Where the topic is empty, it is the one of this name that was
    made last in the namespace."""

    topic: Key
    group: str
    namespace: Key = DEFAULT_NAMESPACE
    group_number: int = 0


@dataclass(slots=True)
class ListGroups:
    """The groups of one topic, or of all topics where it is None; `names_only` without members."""

    topic: Key | None = None
    namespace: Key = DEFAULT_NAMESPACE
    names_only: bool = False


@dataclass(slots=True)
class MemberDescription:
    """One member as it stands.

    Attributes:
        bound: It lives as long as its connection.
        heard_us: When it was last heard of, by the wall clock; 0 where that is not known (since a
            restart).
    """

    member: str
    dialect: str
    partitions: tuple[int, ...]
    bound: bool
    heard_us: int = 0


@dataclass(slots=True)
class GroupDescription:
    """One group as it stands.

    Attributes:
        partition_count: Of its topic, or as its first member assumed.
        members: By member id.
        dealt_us: When its generation began, by the wall clock; 0 where that is not known.
    """

    namespace: str
    topic: str
    name: str
    number: int
    generation: int
    assignor: Assignor
    partition_count: int
    members: list[MemberDescription]
    dealt_us: int = 0


@dataclass(slots=True)
class GroupCreated:
    """Reply of CreateGroup."""

    group: GroupDescription


@dataclass(slots=True)
class GroupDeleted:
    """Reply of DeleteGroup."""

    name: str


@dataclass(slots=True)
class GroupDescribed:
    """Reply of DescribeGroup."""

    group: GroupDescription


@dataclass(slots=True)
class GroupsListed:
    """Reply of ListGroups, by number."""

    groups: list[GroupDescription]


GroupRequest = (
    CommitOffset
    | FetchOffset
    | JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CreateGroup
    | DeleteGroup
    | DescribeGroup
    | ListGroups
)
"""What groups and committed offsets may be asked."""
GroupReply = (
    OffsetCommitted
    | OffsetFetched
    | GroupJoined
    | HeartbeatAccepted
    | GroupLeft
    | GroupCreated
    | GroupDeleted
    | GroupDescribed
    | GroupsListed
)
"""What groups and committed offsets answer."""
