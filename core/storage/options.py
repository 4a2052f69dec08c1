"""Every limit of the storage floor: its name, unit, default and where the default comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

MIB = 1024 * 1024


class Durability(Enum):
    """What must have happened before an append may be revealed."""

    FSYNC = "fsync"
    """The journal group is synced: acknowledged records survive a power cut."""
    INTERVAL = "interval"
    """The group is written; it is synced every `flush_records` or `flush_ms`, whichever is
    first."""
    OS = "os"
    """The group is written; the operating system decides when it reaches the disk."""


def _limit(default: Any, unit: str, source: str) -> Any:
    return field(default=default, metadata={"unit": unit, "source": source})


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """The settings of one data directory; each field's metadata holds its unit and source.

    Attributes:
        segment_bytes: A segment is closed before it would grow past this.
        journal_file_bytes: The size that a journal file grows to.
        journal_files_max: How many journal files there may be; beyond them producers wait.
        journal_first_bytes: What is written ahead of the first group; files double from there.
        group_bytes_max: A flush takes about so much; the rest waits for the next one.
        tail_bytes_max: Recent batches of all partitions that are kept in memory.
        cold_bytes_max: Batches read back from segments that are kept in memory.
        pending_bytes_max: What may wait for a flush.
        open_files_max: Segment files held open.
        durability: When an append may be revealed.
        flush_records, flush_ms: The window of `Durability.INTERVAL`.
        checkpoint_interval_s: At most so long between a change and a checkpoint that holds it.
        segment_linger_ms: Durable groups wait so long, or until they are a mebibyte, before
            a thread writes their segments; 0 writes at once.
        reserve_bytes: A file that is given up when the disk is full, so that checkpoints still fit.
        retry_ms: How long to wait before a write is tried again that met a full disk.
        scrub_bytes_per_s: How fast segments are read again in search of damage; 0 for never.
        compact_bytes_per_s: How fast a pass of compaction goes, reading and writing together.
        compact_keys_max: A pass remembers so many keys; where there are more, it ends there.
    """

    segment_bytes: int = _limit(64 * MIB, "bytes", "STORAGE: segments of 64 MiB")
    journal_file_bytes: int = _limit(64 * MIB, "bytes", "STORAGE: journal files of 64 MiB")
    journal_files_max: int = _limit(16, "files", "STORAGE: at most 16 journal files")
    journal_first_bytes: int = _limit(4 * MIB, "bytes", "writes in about 10 ms at start")
    group_bytes_max: int = _limit(8 * MIB, "bytes", "about 10 ms of a disk that takes 0.7 GB/s")
    tail_bytes_max: int = _limit(256 * MIB, "bytes", "the memory table: 1 GiB in all")
    cold_bytes_max: int = _limit(64 * MIB, "bytes", "the memory table: 1 GiB in all")
    pending_bytes_max: int = _limit(96 * MIB, "bytes", "three of the largest batches")
    open_files_max: int = _limit(1024, "files", "half of a usual RLIMIT_NOFILE is left to sockets")
    durability: Durability = field(
        default=Durability.FSYNC,
        metadata={"unit": "", "source": "an acknowledgement is a promise"},
    )
    flush_records: int = _limit(500, "records", "the Cursus document's flush batch")
    flush_ms: int = _limit(100, "ms", "the Cursus document's flush interval")
    checkpoint_interval_s: float = _limit(30.0, "s", "bounds what a restart replays")
    segment_linger_ms: int = _limit(10, "ms", "waking a thread a group cost 100 us a request")
    reserve_bytes: int = _limit(16 * MIB, "bytes", "a catalog of 100,000 partitions fits")
    retry_ms: int = _limit(1000, "ms", "space seldom comes back faster")

    scrub_bytes_per_s: int = _limit(4 * MIB, "bytes/s", "under 1 % of a disk; 2.5 TB a week")
    compact_bytes_per_s: int = _limit(16 * MIB, "bytes/s", "under a third of one core")
    compact_keys_max: int = _limit(250_000, "keys", "the memory table: 32 MiB while a pass runs")

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in ("segment_linger_ms", "scrub_bytes_per_s"):
                if value < 0:
                    raise ValueError(f"{option.name} must not be below 0, as {value} is")
            elif option.name != "durability" and value <= 0:
                raise ValueError(f"{option.name} must be above 0, not {value}")
        if self.journal_files_max < 4:
            raise ValueError("journal_files_max must be at least 4: two checkpoints' worth and two")
