"""Core's vocabulary: every request beside its reply. Codecs translate into and out of it.

Here stands what reads and writes records; `core.topology`, `core.group` and `core.event` are the
rest, under the same names here.

A topic is named by `namespace` and `topic`; each is a name, or the number by which a numbering
dialect knows it. Offsets are absolute; `next_offset`, `log_end_offset` and `high_watermark` are
exclusive. Partitions count from 0. Sizes are bytes, times microseconds unless the name says
otherwise.

A request that is refused is answered by `core.error.Failure` instead of its reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core import event, group, topology
from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.core.batch import RecordBatch
    from dragoman.core.error import Failure

AddPartitions = topology.AddPartitions
CreateNamespace = topology.CreateNamespace
CreateTopic = topology.CreateTopic
DeleteNamespace = topology.DeleteNamespace
DeleteRecords = topology.DeleteRecords
DeleteTopic = topology.DeleteTopic
DescribeNamespace = topology.DescribeNamespace
DescribeTopic = topology.DescribeTopic
IfExists = topology.IfExists
ListNamespaces = topology.ListNamespaces
ListTopics = topology.ListTopics
NamespaceCreated = topology.NamespaceCreated
NamespaceDeleted = topology.NamespaceDeleted
NamespaceDescribed = topology.NamespaceDescribed
NamespaceDescription = topology.NamespaceDescription
NamespacesListed = topology.NamespacesListed
PartitionDescription = topology.PartitionDescription
RecordsDeleted = topology.RecordsDeleted
RemovePartitions = topology.RemovePartitions
RenameNamespace = topology.RenameNamespace
ReplicaReported = topology.ReplicaReported
ReportReplica = topology.ReportReplica
Role = topology.Role
RoleSet = topology.RoleSet
SetRole = topology.SetRole
TopicConfig = topology.TopicConfig
TopicCreated = topology.TopicCreated
TopicDeleted = topology.TopicDeleted
TopicDescribed = topology.TopicDescribed
TopicDescription = topology.TopicDescription
TopicsListed = topology.TopicsListed
UpdateTopic = topology.UpdateTopic

Assignor = group.Assignor
CommitOffset = group.CommitOffset
CreateGroup = group.CreateGroup
DeleteGroup = group.DeleteGroup
DescribeGroup = group.DescribeGroup
FetchOffset = group.FetchOffset
GroupCreated = group.GroupCreated
GroupDeleted = group.GroupDeleted
GroupDescribed = group.GroupDescribed
GroupDescription = group.GroupDescription
GroupJoined = group.GroupJoined
GroupLeft = group.GroupLeft
GroupsListed = group.GroupsListed
Heartbeat = group.Heartbeat
HeartbeatAccepted = group.HeartbeatAccepted
JoinGroup = group.JoinGroup
LeaveGroup = group.LeaveGroup
ListGroups = group.ListGroups
MemberDescription = group.MemberDescription
OffsetCommitted = group.OffsetCommitted
OffsetFetched = group.OffsetFetched
OffsetKind = group.OffsetKind
SyncGroup = group.SyncGroup

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


# ---------------------------------------------------------------- the engine, and all together


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
    | Ping
    | ReadStatistics
    | Answer
    | topology.TopologyRequest
    | group.GroupRequest
    | event.EventRequest
)
Reply = (
    Produced
    | ProducedMany
    | Fetched
    | FetchedMatching
    | Followed
    | Ponged
    | StatisticsRead
    | Answered
    | topology.TopologyReply
    | group.GroupReply
    | event.EventReply
)
