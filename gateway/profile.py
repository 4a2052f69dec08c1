"""Profiles: named sets of configuration keys, between the built-in defaults and the file.

A profile is data: what a document or a customary setup says in figures, each with the place that
says it. It sets nothing that a configuration file could not.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Setting(NamedTuple):
    """One key of a profile.

    Attributes:
        key: With dots, as a flag writes it.
        value: As a configuration file would have it.
        source: What says so.
    """

    key: str
    value: int | str
    source: str


_FLOW = "the message-flow document"
PROFILES: Final[Mapping[str, tuple[Setting, ...]]] = {
    "cursus-document": (
        Setting("storage.durability", "interval", f"{_FLOW}: a publish is answered when enqueued"),
        Setting("storage.flush_records", 500, f"{_FLOW}: DiskFlushBatchSize"),
        Setting("storage.flush_ms", 100, f"{_FLOW}: LingerMS"),
        Setting("storage.segment_bytes", "1MiB", f"{_FLOW}: SegmentSize"),
        Setting("engine.partition_buffer_records", 10_000, f"{_FLOW}: PartitionChannelBufSize"),
        Setting("engine.dedupe_ms", "30m", f"{_FLOW}: the expiry window of the dedupMap"),
        Setting("engine.dedupe_check_us", "60s", f"{_FLOW}: CleanupInterval"),
        Setting("engine.retention_check_us", "60s", f"{_FLOW}: CleanupInterval"),
        Setting("listeners.cursus.port", 9000, f"{_FLOW}: BrokerPort"),
        Setting("listeners.cursus.connections_max", 1000, f"{_FLOW}: maxWorkers"),
        Setting("listeners.cursus.idle_timeout_s", "5m", f"{_FLOW}: readDeadline"),
        Setting("listeners.cursus.consume_style", "frames", f"{_FLOW}: WriteWithLength a message"),
        Setting("listeners.cursus.push_records", 1000, f"{_FLOW}: ConsumerChannelBufSize"),
    ),
}
"""By name; `docs/CURSUS.md` says what becomes of every other figure of that document."""


def profile_tables(name: str) -> dict[str, Any]:
    """The keys of a profile as nested tables.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in PROFILES:
        near = difflib.get_close_matches(name, PROFILES, 1, 0.4)
        hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(PROFILES)}"
        raise ConfigError(f'unknown profile "{name}"; {hint}')
    tables: dict[str, Any] = {}
    for key, value, _ in PROFILES[name]:
        *sections, last = key.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[last] = value
    return tables
