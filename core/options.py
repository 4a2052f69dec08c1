"""What an operator may choose about the engine itself; the store has options of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Limits and habits of one engine.

    Attributes:
        partitions_max: Partitions of one topic; the Iggy document's own limit.
        partitions_total_max: Partitions of all topics together; each costs about 0.5 KiB of memory.
        namespaces_max, topics_max: Things that a peer can make without end otherwise.
        groups_max: Consumer groups held in memory, where groups without a member make room first;
            and groups and consumers with committed offsets, of all topics together.
        retention_ms, retention_bytes: For topics that name none themselves; 0 keeps for ever.
        retention_check_us: How often every partition is asked for what has expired.
        long_poll_max_us: The longest that a fetch may wait, whatever it asks for.
    """

    partitions_max: int = 100_000
    partitions_total_max: int = 200_000
    namespaces_max: int = 10_000
    topics_max: int = 100_000
    groups_max: int = 100_000
    retention_ms: int = 0
    retention_bytes: int = 0
    retention_check_us: int = 5_000_000
    long_poll_max_us: int = 300_000_000
