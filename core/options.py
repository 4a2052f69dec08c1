"""What an operator may choose about the engine itself; the store has options of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields

RECORD_BYTES_MAX = 60 * 1024 * 1024
"""What `record_bytes_max` can be: the largest frames are 64 MiB, and a record that fits in none
could be written but not read."""

_MAY_BE_ZERO = frozenset(
    (
        *("dedupe_ms", "dedupe_entries_max", "partition_buffer_records"),
        *("replica_lag_max", "retention_ms", "retention_bytes"),
        *("tombstone_ms", "long_poll_max_us"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Limits and habits of one engine.

    Attributes:
        partitions_max: Partitions of one topic; the Iggy document's own limit.
        partitions_total_max: Partitions of all topics together; each costs about 0.5 KiB of memory.
        namespaces_max, topics_max: Things that a peer can make without end otherwise.
        groups_max: Consumer groups of all topics together, with and without members; and as many
            groups and consumers with committed offsets.
        group_members_max: Members of one group; each new generation is journaled with all of them.
        record_bytes_max: The largest record: value, key and headers together.
        request_bytes_max: The largest sum of what one request appends, at rest; each V1 line is a
            request of its own.
        producer_idle_us: An idempotent producer that appended nothing for so long is forgotten.
        producers_max: Idempotent producers of all partitions together; the idlest make room.
        partition_buffer_records: Once so many records of one partition are appended and not
            durable, connections that produce are not read until they are; 0 for no limit.
        dedupe_ms: The window of payloads of topics that name none themselves; 0 for none.
        dedupe_entries_max: Payloads remembered for all topics together; the oldest make room.
        dedupe_check_us: How often payloads that have left their window are forgotten.
        replication_factor: Replicas of each partition as the V1 document counts them, this server
            among them.
        in_sync_min: Replicas that must be in sync for acks=all; 1 is this server alone.
        replica_lag_max: A replica is in sync while it lacks at most so many records.
        replica_lag_timeout_us: A replica that reported nothing for so long is not in sync.
        acks_all_timeout_us: So long a produce with acks=all waits for replicas.
        retention_ms, retention_bytes: For topics that name none themselves; 0 keeps for ever.
        retention_check_us: How often every partition is asked for what has expired.
        tombstone_ms: For compacted topics that name no grace period themselves.
        event_index_bytes_max: The indexes of event-sourcing partitions together, and as much again
            while some are being built: about 250 bytes and the key a stream, and 10 bytes an event.
            Those unused longest make room; a partition whose own is larger serves no events.
        long_poll_max_us: The longest that a fetch may wait, whatever it asks for.
    """

    partitions_max: int = 100_000
    partitions_total_max: int = 200_000
    namespaces_max: int = 10_000
    topics_max: int = 100_000
    groups_max: int = 100_000
    group_members_max: int = 1000
    record_bytes_max: int = 32 * 1024 * 1024
    request_bytes_max: int = 64 * 1024 * 1024
    producer_idle_us: int = 1_800_000_000
    producers_max: int = 100_000
    partition_buffer_records: int = 0
    dedupe_ms: int = 0
    dedupe_entries_max: int = 1_000_000
    dedupe_check_us: int = 60_000_000
    replication_factor: int = 3
    in_sync_min: int = 1
    replica_lag_max: int = 0
    replica_lag_timeout_us: int = 10_000_000
    acks_all_timeout_us: int = 2_000_000
    retention_ms: int = 0
    retention_bytes: int = 0
    retention_check_us: int = 5_000_000
    tombstone_ms: int = 86_400_000
    event_index_bytes_max: int = 256 * 1024 * 1024
    long_poll_max_us: int = 300_000_000

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value < 0:
                raise ValueError(f"{option.name} must not be below 0, as {value} is")
            if not value and option.name not in _MAY_BE_ZERO:
                raise ValueError(f"{option.name} must be above 0")
        if self.record_bytes_max > RECORD_BYTES_MAX:
            raise ValueError(
                f"record_bytes_max must be at most {RECORD_BYTES_MAX}, not "
                f"{self.record_bytes_max}: a larger record fits in no reply"
            )
        if self.in_sync_min > self.replication_factor:
            raise ValueError(
                f"in_sync_min must be at most replication_factor, {self.replication_factor}, not "
                f"{self.in_sync_min}: acks=all would wait in vain for ever"
            )
