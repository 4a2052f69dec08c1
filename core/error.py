"""What can go wrong, as one table.

Every dialect maps every `ErrorCode` to its own tongue (its `ERRORS` table; a test demands that it
is total). `EngineError` is the only exception that core raises on purpose; `Engine.handle` catches
it in one place and turns it into a `Failure` reply. What a peer got wrong is data (`Failure`), what
we got wrong is an exception.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class ErrorCode(Enum):
    """The reasons for which a request is refused, each named once for all dialects."""

    # What the peer sent.
    MALFORMED = auto()
    """The frame is whole but its body is not what the dialect allows."""
    FRAME_TOO_LARGE = auto()
    """A declared or received length is above the listener's limit; position in the stream is
    lost."""
    UNKNOWN_COMMAND = auto()
    UNSUPPORTED = auto()
    """Understood, but not served by this server; the detail says why."""
    WRONG_PROTOCOL = auto()
    """The first bytes belong to another protocol (HTTP, TLS, SSH, another dialect)."""

    # Names and places.
    INVALID_NAME = auto()
    INVALID_NUMBER = auto()
    """A numeric id of a namespace or topic is not legal."""
    UNKNOWN_NAMESPACE = auto()
    NAMESPACE_EXISTS = auto()
    NAMESPACE_NUMBER_EXISTS = auto()
    NAMESPACE_PROTECTED = auto()
    """The default namespace cannot be deleted or renamed."""
    UNKNOWN_TOPIC = auto()
    TOPIC_EXISTS = auto()
    TOPIC_NUMBER_EXISTS = auto()
    INVALID_PARTITION_COUNT = auto()
    PARTITIONS_CANNOT_SHRINK = auto()
    """A create named fewer partitions than the topic has; facts: current, requested."""
    UNKNOWN_PARTITION = auto()
    NO_PARTITIONS = auto()
    """The topic exists and has no partition to write to or read from."""

    # Records and offsets.
    EMPTY_BATCH = auto()
    RECORD_TOO_LARGE = auto()
    """facts: size, limit (bytes), and offset where a stored record cannot fit a reply."""
    BATCH_TOO_LARGE = auto()
    OFFSET_OUT_OF_RANGE = auto()
    """facts: requested, earliest, latest (latest is exclusive)."""
    INVALID_OFFSET = auto()
    """An offset that can never be committed or read (negative, or beyond the end where that
    counts)."""
    OFFSET_REGRESSION = auto()
    """A commit below the committed offset in a dialect whose commits only rise; facts: current,
    requested."""
    OUT_OF_ORDER_SEQUENCE = auto()
    """An idempotent producer skipped a sequence; facts: expected, got."""
    STALE_PRODUCER_EPOCH = auto()
    """facts: current, requested."""

    # Events.
    NOT_EVENT_SOURCED = auto()
    """The topic holds no streams of events."""
    VERSION_CONFLICT = auto()
    """An event's version is not the next of its stream; facts: current, requested."""
    SNAPSHOT_TOO_NEW = auto()
    """A snapshot of a version that its stream has not reached; facts: current, requested."""

    # Groups.
    UNKNOWN_GROUP = auto()
    GROUP_EXISTS = auto()
    GROUP_TOPIC_MISMATCH = auto()
    """The group reads another topic; facts: expected, actual."""
    UNKNOWN_MEMBER = auto()
    STALE_GENERATION = auto()
    """facts: current, requested."""
    NOT_OWNER = auto()
    """The member does not own the partition that it commits; facts: partition, generation."""

    # Roles and replication.
    NOT_LEADER = auto()
    REPLICATION_TIMEOUT = auto()

    # The server's own state.
    STORAGE_FULL = auto()
    """The disk has no room for more records."""
    STORAGE_FAILED = auto()
    """A sync or a checkpoint failed: the engine is fenced until restart."""
    DAMAGED = auto()
    """The records asked for are damaged on disk; facts: first, last (offsets, inclusive)."""
    OVERLOADED = auto()
    """Too much waits for the disk; a little later there is room again."""
    LIMIT_REACHED = auto()
    """A configured limit on things (streams, groups, topics) is reached; the detail names it."""
    SHUTTING_DOWN = auto()
    INTERNAL = auto()


@dataclass(slots=True)
class Failure:
    """The reply of a request that was refused.

    Attributes:
        code: The reason.
        detail: One sentence for people, without the peer's payload; never needed to act on.
        facts: The figures and names that a dialect prints in its own words.
    """

    code: ErrorCode
    detail: str = ""
    facts: dict[str, int | str] = field(default_factory=dict)


class EngineError(Exception):
    """Raised inside core when a request cannot be served; caught by `Engine.handle` alone."""

    def __init__(self, code: ErrorCode, detail: str = "", **facts: int | str) -> None:
        super().__init__(detail or code.name)
        self.code = code
        self.detail = detail
        self.facts = facts

    def failure(self) -> Failure:
        """Returns the reply that tells the peer of this error."""
        return Failure(self.code, self.detail, self.facts)
