"""The vocabulary of what there is: namespaces, topics, partitions and their replicas.

These are part of `core.calls`, which lists them among all requests and replies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from dragoman.core.calls import Key


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


TopologyRequest = (
    CreateNamespace
    | RenameNamespace
    | DeleteNamespace
    | ListNamespaces
    | DescribeNamespace
    | CreateTopic
    | UpdateTopic
    | AddPartitions
    | RemovePartitions
    | DeleteTopic
    | DeleteRecords
    | SetRole
    | ReportReplica
    | ListTopics
    | DescribeTopic
)
"""What namespaces, topics and partitions may be asked."""
TopologyReply = (
    NamespaceCreated
    | NamespaceDeleted
    | NamespacesListed
    | NamespaceDescribed
    | TopicCreated
    | TopicDeleted
    | RecordsDeleted
    | RoleSet
    | ReplicaReported
    | TopicsListed
    | TopicDescribed
)
"""What namespaces, topics and partitions answer."""
