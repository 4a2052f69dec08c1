"""Core's vocabulary: every request beside its reply. Codecs translate into and out of it.

A topic is named by `namespace` and `topic`; each is a name, or the number by which a numbering
dialect knows it. Offsets are absolute; `next_offset`, `log_end_offset` and `high_watermark` are
exclusive. Partitions count from 0. Sizes are bytes, times microseconds unless the name says
otherwise.

A group is named by `group`, or where `group_number` is not 0 by the number by which a numbering
dialect knows it; a group of that number which does not exist yet is named by its digits.

A request that is refused is answered by `core.error.Failure` instead of its reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import event
from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.error import Failure

AppendEvent = event.AppendEvent
EventAppended = event.EventAppended
EventsRead = event.EventsRead
ReadEvents = event.ReadEvents
ReadSnapshot = event.ReadSnapshot
ReadVersion = event.ReadVersion
SaveSnapshot = event.SaveSnapshot
Snapshot = event.Snapshot
SnapshotRead = event.SnapshotRead
SnapshotSaved = event.SnapshotSaved
VersionRead = event.VersionRead

Key = str | int
"""A namespace or topic: its name, or its number."""

# ---------------------------------------------------------------- records


class Acks(Enum):
    """What must be true before a produce is answered."""

    NONE = 0
    """Answered at once."""
    LEADER = 1
    """The batch is durable as the durability mode has it."""
    ALL = -1
    """Durable, and the partition's in-sync rule holds."""


class ByHash(NamedTuple):
    """Route to partition `hash mod n`; the dialect's own rule computed the hash."""

    hash: int


class RoundRobin(NamedTuple):
    """Route to the topic's partitions in turn, a whole request to one."""


ROUND_ROBIN = RoundRobin()
Route = int | ByHash | RoundRobin
"""A partition that the client chose (always honoured), or how the engine chooses."""


@dataclass(slots=True)
class Produce:
    """Append one batch to one partition.

    Attributes:
        batch: Its columns and producer; the engine assigns offsets and timestamps.
        create_partitions: Where the topic is missing, create it with so many; 0 refuses.
        idempotent: Check the sequences of the batch's producers, whatever the topic says.
        dedupe: The topic's window of payloads applies, if it has one (`TopicConfig.dedupe_ms`), to
            a single record.
        digest: The payload's `core.dedupe.digest_of`, where the codec made it in a thread because
            the payload is large.
    """

    topic: Key
    batch: RecordBatch
    route: Route = ROUND_ROBIN
    namespace: Key = DEFAULT_NAMESPACE
    acks: Acks = Acks.LEADER
    create_partitions: int = 0
    idempotent: bool = False
    dedupe: bool = False
    digest: bytes = b""


@dataclass(slots=True)
class Produced:
    """Where the records went.

    Attributes:
        base_offset, count: The records have base_offset ... base_offset + count - 1; a client of a
            dialect that does not tell it reads -1, and one whose server stored only the first of
            its records the number of those. A duplicate has the offsets of the original, or
            -1 where these are no longer known.
        high_watermark: As it stands when the reply leaves (0 at first).
        last_offset: Of the last record where a part of them was known before, so that they need not
            follow each other; -1 where it is no longer known. None where it follows from the rest.
        leader: Where the partition is led, `host:port`, where a client was told; else empty.
    """

    partition: int
    base_offset: int
    count: int
    high_watermark: int = 0
    last_offset: int | None = None
    leader: str = field(default="", compare=False)


@dataclass(slots=True)
class ProduceMany:
    """Append records of one topic, each to the partition `hash mod n` of its own hash, at once.

    For dialects of one record a line: a pipelined run costs one request and one answer.

    Attributes:
        values, keys, hashes: One entry a record, in the order of the asker.
        origin: The dialect that wrote them (`Origin`).
        create_partitions: As in `Produce`.
    """

    topic: Key
    values: Sequence[bytes]
    keys: Sequence[bytes]
    hashes: Sequence[int]
    origin: int
    namespace: Key = DEFAULT_NAMESPACE
    acks: Acks = Acks.LEADER
    create_partitions: int = 0


@dataclass(slots=True)
class ProducedMany:
    """Reply of ProduceMany, when all parts are as durable as `acks` asked.

    Attributes:
        parts: What became of each partition's share, which kept its order.
        places: For each record the index of its part; it has the next offset of that part.
    """

    parts: list[Produced | Failure]
    places: list[int]


class Whence(Enum):
    """What `Fetch.offset` and `Follow.offset` mean."""

    OFFSET = auto()
    """An absolute offset. Below the log start: see `Fetch.strict`. Beyond the end: nothing to
    read."""
    TIMESTAMP = auto()
    """The first record with an append time at or after this many microseconds."""
    EARLIEST = auto()
    LATEST = auto()
    """The high watermark: only what comes after now."""
    LAST = auto()
    """The last n visible records; offset is n."""
    COMMITTED = auto()
    """The group's committed offset; where nothing is committed, `offset`."""
    COMMITTED_OR_LATEST = auto()
    """The group's committed offset; where nothing is committed, the high watermark."""
    MAX_COMMITTED = auto()
    """The larger of the committed offset and `offset`."""


ASSIGNED = -1
"""As the partition of a group's fetch: the next of those that the connection's bound member owns.
As that of an unfenced commit, and of `FetchOffset`: the one that this member fetched last."""


class OffsetKind(Enum):
    """Whose committed offset it is: two separate maps."""

    GROUP = "group"
    CONSUMER = "consumer"


@dataclass(slots=True)
class Fetch:
    """Read records of one partition up to the high watermark.

    Attributes:
        records_max: At most so many records.
        bytes_max: Stop before the record that would pass this sum of `record_overhead` + value (+
            key and headers at rest where `count_all`); the first record always comes, whatever its
            size.
        wait_us: Long poll: with nothing to read, answer when something is, or after this long.
        strict: An offset below the log start is OFFSET_OUT_OF_RANGE; otherwise reading begins
            there.
        partition: A number, or ASSIGNED.
        group: Whose committed offset COMMITTED and MAX_COMMITTED mean; also for `auto_commit`.
        auto_commit: Commit the offset after the last record returned, if any.
        create_partitions: As in `Produce`.
        member, generation: Given by clients who want to be told here that their group has moved on:
            UNKNOWN_MEMBER, STALE_GENERATION. Empty where the read is nobody's business.
    """

    topic: Key
    partition: int
    offset: int = 0
    namespace: Key = DEFAULT_NAMESPACE
    whence: Whence = Whence.OFFSET
    records_max: int = 1 << 31
    bytes_max: int = 1 << 20
    record_overhead: int = 0
    count_all: bool = False
    wait_us: int = 0
    strict: bool = False
    group: str = ""
    kind: OffsetKind = OffsetKind.GROUP
    auto_commit: bool = False
    create_partitions: int = 0
    group_number: int = 0
    member: str = ""
    generation: int | None = None


class BatchSlice(NamedTuple):
    """Records `first` to `last` (exclusive indices, not offsets) of a stored batch."""

    batch: RecordBatch
    first: int
    last: int

    @property
    def record_count(self) -> int:
        """Number of records."""
        return self.last - self.first


@dataclass(slots=True)
class Fetched:
    """The records read, as slices of stored batches in offset order.

    Attributes:
        start_offset: Where reading began, after `whence` was resolved.
        next_offset: Where to read next: after the last record returned, else `start_offset`.
        committed: The group's committed offset before this read, or None.
    """

    namespace: str
    topic: str
    partition: int
    slices: list[BatchSlice]
    start_offset: int
    next_offset: int
    high_watermark: int
    log_start_offset: int
    committed: int | None = None

    @property
    def count(self) -> int:
        """Number of records."""
        return sum([piece.last - piece.first for piece in self.slices])


@dataclass(slots=True)
class FetchMatching:
    """Read one partition of every topic of a namespace whose name a pattern means, each from the
    same place; those that lack the partition are passed over.

    Attributes:
        pattern: A name with `*` for any characters and `?` for one.
        records_max: Of each topic.
        bytes_max: Of all topics together; the rest is as in `Fetch`.
    """

    pattern: str
    partition: int
    offset: int = 0
    namespace: Key = DEFAULT_NAMESPACE
    whence: Whence = Whence.OFFSET
    records_max: int = 1 << 31
    bytes_max: int = 1 << 20
    record_overhead: int = 0
    count_all: bool = False
    group: str = ""
    kind: OffsetKind = OffsetKind.GROUP


@dataclass(slots=True)
class FetchedMatching:
    """Reply of FetchMatching: what was read of each topic, in the order of their names."""

    partition: int
    parts: list[Fetched]


@dataclass(slots=True)
class Follow:
    """Subscribe to one partition: its records are pushed as they become visible.

    Attributes:
        partition: A number, or ASSIGNED: those that the connection's bound member of `group` owns,
            each push from one of them. What the group's subscribers were pushed before is gone on
            from where a partition changes hands; otherwise, and at first, `whence` says where.
        records_max, bytes_max: Of one push.
        commit_us: Commit for `group`, this often, what was pushed an interval before; 0 never. It
            ends once the group commits by itself.
        idle_us: With nothing to push for so long, the dialect's keep-alive is sent; 0 never.
        replaces: An earlier Follow of the same connection on the same partition ends.
        member, generation: As in `Fetch`; the Follow ends with that failure as soon as it is so.
    """

    topic: Key
    partition: int
    offset: int = 0
    namespace: Key = DEFAULT_NAMESPACE
    whence: Whence = Whence.OFFSET
    records_max: int = 8192
    bytes_max: int = 1 << 20
    group: str = ""
    kind: OffsetKind = OffsetKind.GROUP
    commit_us: int = 0
    idle_us: int = 0
    replaces: bool = False
    member: str = ""
    generation: int | None = None


@dataclass(slots=True)
class Followed:
    """One push of a Follow; the same fields as `Fetched`, and never without records."""

    namespace: str
    topic: str
    partition: int
    slices: list[BatchSlice]
    start_offset: int
    next_offset: int
    high_watermark: int
    log_start_offset: int


# ---------------------------------------------------------------- namespaces and topics


class Role(Enum):
    """Whether this server takes records for a partition."""

    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(slots=True)
class TopicConfig:
    """Settings of one topic; 0 means the server's default (for retention: keep for ever).

    Attributes:
        idempotent: Sequences of all producers are checked, whether a batch asks for it or not.
        event_sourcing: It holds streams of events (`core.event`); its partitions cannot be more.
        compact: Of records with the same key only the newest is kept for long.
        tombstone_ms: So long a record that deletes its key outlives the compaction of its key.
        dedupe_ms: Of direct publishes with the same payload within so long, one is kept; 0 for all.
    """

    retention_ms: int = 0
    retention_bytes: int = 0
    idempotent: bool = False
    compact: bool = False
    tombstone_ms: int = 0
    dedupe_ms: int = 0
    event_sourcing: bool = False


@dataclass(slots=True)
class CreateNamespace:
    """Make a namespace. `number` 0 takes the next free one."""

    name: str
    number: int = 0


@dataclass(slots=True)
class RenameNamespace:
    """Give a namespace another name; topics, numbers and offsets stay."""

    namespace: Key
    name: str


@dataclass(slots=True)
class DeleteNamespace:
    """Delete a namespace and all its topics."""

    namespace: Key


@dataclass(slots=True)
class ListNamespaces:
    """All namespaces; the default one only once it holds a topic."""


@dataclass(slots=True)
class DescribeNamespace:
    """One namespace with its topics."""

    namespace: Key


@dataclass(slots=True)
class PartitionDescription:
    """One partition as it stands.

    Attributes:
        role: Whether this server leads it.
        in_sync: The replicas in sync, this server as 0 first.
        under_replicated: They are fewer than the server wants.
        leader: Where it is led, `host:port`, as clients are told; else empty.
    """

    partition: int
    created_us: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    size_bytes: int
    segments: int
    role: Role = Role.LEADER
    in_sync: tuple[int, ...] = (0,)
    under_replicated: bool = False
    leader: str = ""


@dataclass(slots=True)
class TopicDescription:
    """One topic as it stands; `size_bytes` and `records` sum over its partitions."""

    namespace: str
    name: str
    number: int
    created_us: int
    config: TopicConfig
    partitions: list[PartitionDescription]

    @property
    def size_bytes(self) -> int:
        """Bytes of all partitions at rest."""
        return sum([partition.size_bytes for partition in self.partitions])

    @property
    def records(self) -> int:
        """Visible records that are still kept."""
        return sum([p.high_watermark - p.log_start_offset for p in self.partitions])


@dataclass(slots=True)
class NamespaceDescription:
    """One namespace as it stands."""

    name: str
    number: int
    created_us: int
    topics: list[TopicDescription] = field(default_factory=list)


@dataclass(slots=True)
class NamespaceCreated:
    """Reply of CreateNamespace and RenameNamespace."""

    namespace: NamespaceDescription


@dataclass(slots=True)
class NamespaceDeleted:
    """Reply of DeleteNamespace."""

    name: str


@dataclass(slots=True)
class NamespacesListed:
    """Reply of ListNamespaces, by number."""

    namespaces: list[NamespaceDescription]


@dataclass(slots=True)
class NamespaceDescribed:
    """Reply of DescribeNamespace."""

    namespace: NamespaceDescription


class IfExists(Enum):
    """What CreateTopic does where the topic is already there."""

    REFUSE = auto()
    """TOPIC_EXISTS."""
    GROW = auto()
    """Add partitions up to the count; fewer is PARTITIONS_CANNOT_SHRINK."""
    KEEP = auto()
    """Answer as if created."""


@dataclass(slots=True)
class CreateTopic:
    """Make a topic. `number` 0 takes the next free one of its namespace."""

    topic: str
    partitions: int
    namespace: Key = DEFAULT_NAMESPACE
    number: int = 0
    config: TopicConfig = field(default_factory=TopicConfig)
    if_exists: IfExists = IfExists.REFUSE


@dataclass(slots=True)
class TopicCreated:
    """Reply of CreateTopic, UpdateTopic, AddPartitions and RemovePartitions."""

    topic: TopicDescription


@dataclass(slots=True)
class UpdateTopic:
    """Rename a topic or change its settings; None leaves as is.

    Attributes:
        retention_ms: Changes this setting alone, for dialects that know no other.
    """

    topic: Key
    namespace: Key = DEFAULT_NAMESPACE
    name: str | None = None
    config: TopicConfig | None = None
    retention_ms: int | None = None


@dataclass(slots=True)
class AddPartitions:
    """Append `count` partitions."""

    topic: Key
    count: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class RemovePartitions:
    """Remove the `count` highest partitions, at most all of them, with their records."""

    topic: Key
    count: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class DeleteTopic:
    """Delete a topic, its records and its committed offsets."""

    topic: Key
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class TopicDeleted:
    """Reply of DeleteTopic."""

    namespace: str
    name: str


@dataclass(slots=True)
class DeleteRecords:
    """Delete the records of one partition below an offset; at most all that are visible.

    Attributes:
        before: The first offset that stays; -1 for the high watermark.
    """

    topic: Key
    partition: int
    before: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class RecordsDeleted:
    """Reply of DeleteRecords."""

    partition: int
    log_start_offset: int


@dataclass(slots=True)
class SetRole:
    """Make this server a partition's leader or follower.

    Attributes:
        create_partitions: As in `Produce`.
    """

    topic: Key
    partition: int
    role: Role
    namespace: Key = DEFAULT_NAMESPACE
    create_partitions: int = 0


@dataclass(slots=True)
class RoleSet:
    """Reply of SetRole."""

    namespace: str
    topic: str
    partition: int
    role: Role
    high_watermark: int


@dataclass(slots=True)
class ReportReplica:
    """A replica says how far it has copied a partition.

    Attributes:
        replica: 1 to the replication factor - 1; this server is 0.
        offset: The last offset that it has; it counts at most as the log's end, and never falls.
    """

    topic: Key
    partition: int
    replica: int
    offset: int
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class ReplicaReported:
    """Reply of ReportReplica.

    Attributes:
        offset: As it was reported, whatever of it counts.
        in_sync: The replicas in sync, in order, this server as 0 first.
        under_replicated: They are fewer than the server wants.
    """

    partition: int
    replica: int
    offset: int
    high_watermark: int
    in_sync: tuple[int, ...]
    under_replicated: bool


@dataclass(slots=True)
class ListTopics:
    """The topics of one namespace, or of all where it is None; `names_only` without partitions."""

    namespace: Key | None = None
    names_only: bool = False


@dataclass(slots=True)
class TopicsListed:
    """Reply of ListTopics, by namespace number, then topic number."""

    topics: list[TopicDescription]


@dataclass(slots=True)
class DescribeTopic:
    """One topic with its partitions: log start, log end, high watermark, size."""

    topic: Key
    namespace: Key = DEFAULT_NAMESPACE


@dataclass(slots=True)
class TopicDescribed:
    """Reply of DescribeTopic."""

    topic: TopicDescription


# ---------------------------------------------------------------- offsets and groups


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
    """The groups of one topic, or of all topics where it is None."""

    topic: Key | None = None
    namespace: Key = DEFAULT_NAMESPACE


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


@dataclass(slots=True)
class Ping:
    """Nothing to do; answered in order with the rest."""


@dataclass(slots=True)
class Ponged:
    """Reply of Ping."""


@dataclass(slots=True)
class ReadStatistics:
    """Ask for the engine's counters and gauges, for dialects whose wire has a metrics command."""


@dataclass(slots=True)
class StatisticsRead:
    """Reply of ReadStatistics: what `LogEngine.statistics` returns."""

    values: Mapping[str, int | float | str]


@dataclass(slots=True)
class Answered:
    """A reply that the codec already knows; it passes through so that replies keep their order."""

    payload: object = None


@dataclass(slots=True)
class Answer:
    """Ask for `Answered(payload)`: a command that needs no engine (help, coordinator address)."""

    payload: object = None


Request = (
    Produce
    | ProduceMany
    | Fetch
    | FetchMatching
    | Follow
    | CommitOffset
    | FetchOffset
    | JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CreateGroup
    | DeleteGroup
    | DescribeGroup
    | ListGroups
    | CreateTopic
    | UpdateTopic
    | AddPartitions
    | RemovePartitions
    | DeleteTopic
    | ListTopics
    | DescribeTopic
    | DeleteRecords
    | SetRole
    | ReportReplica
    | CreateNamespace
    | RenameNamespace
    | DeleteNamespace
    | ListNamespaces
    | DescribeNamespace
    | AppendEvent
    | ReadEvents
    | ReadVersion
    | SaveSnapshot
    | ReadSnapshot
    | Ping
    | ReadStatistics
    | Answer
)
Reply = (
    Produced
    | ProducedMany
    | Fetched
    | FetchedMatching
    | Followed
    | OffsetCommitted
    | OffsetFetched
    | GroupJoined
    | HeartbeatAccepted
    | GroupLeft
    | GroupCreated
    | GroupDeleted
    | GroupDescribed
    | GroupsListed
    | TopicCreated
    | TopicDeleted
    | TopicsListed
    | TopicDescribed
    | RecordsDeleted
    | RoleSet
    | ReplicaReported
    | NamespaceCreated
    | NamespaceDeleted
    | NamespacesListed
    | NamespaceDescribed
    | EventAppended
    | EventsRead
    | VersionRead
    | SnapshotSaved
    | SnapshotRead
    | Ponged
    | StatisticsRead
    | Answered
)
