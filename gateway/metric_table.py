"""Every metric by name: its kind, its labels and what it means; docs/METRICS.md is made of it.

Names end in their unit, counters in `_total`. Labels are of bounded sets: dialects, error codes,
names of checks; the one label set that grows with what clients make is capped.

    python -m dragoman.gateway.metric_table > docs/METRICS.md
"""

from __future__ import annotations

from typing import NamedTuple

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Metric(NamedTuple):
    """One metric.

    Attributes:
        kind: COUNTER, GAUGE or HISTOGRAM.
        help: One sentence.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


DOCUMENT = {
    "processed": Metric(
        "messages_processed_total",
        COUNTER,
        "Records accepted, of every dialect and every way to publish.",
    ),
    "latency": Metric(
        "message_latency_seconds",
        HISTOGRAM,
        "From a publish request being heard to its reply being released, of accepted requests.",
    ),
    "cleanups": Metric(
        "cleanup_count_total",
        COUNTER,
        "Clean-ups that removed something expired: payloads past their window, records past "
        "retention.",
    ),
}
"""The names of the message-flow document."""

BROKER = {
    "processed": Metric(
        "broker_messages_processed_total", COUNTER, "The same as messages_processed_total."
    ),
    "latency": Metric(
        "broker_message_latency_seconds", HISTOGRAM, "The same as message_latency_seconds."
    ),
    "cleanups": Metric("broker_cleanup_count_total", COUNTER, "The same as cleanup_count_total."),
    "rate": Metric(
        "broker_messages_per_second", GAUGE, "Records accepted a second, over the last 10 seconds."
    ),
    "queue": Metric(
        "broker_queue_size", GAUGE, "Requests that wait for the disk, a replica or records."
    ),
    "gaps": Metric(
        "broker_seqnum_gap_total",
        COUNTER,
        "Batches of idempotent producers refused because sequences before them are missing.",
    ),
    "duplicates": Metric(
        "broker_seqnum_duplicate_total",
        COUNTER,
        "Records of idempotent producers that were there already.",
    ),
    "lag": Metric(
        "broker_consumer_lag",
        GAUGE,
        "Visible records at or past a group's committed offset, up to lag_series_max series.",
        ("topic", "partition", "group"),
    ),
}
"""The names of the broker that grew out of it, for dashboards that are there."""

OWN = {
    "build": Metric(
        "dragoman_build_info", GAUGE, "Always 1; the labels tell the build.", ("version", "python")
    ),
    "ready": Metric(
        "dragoman_ready", GAUGE, "1 where a check of /ready holds, else 0.", ("check",)
    ),
    "store": Metric(
        "dragoman_store_info",
        GAUGE,
        "Always 1; the labels tell where the log is kept and when a record is acknowledged.",
        ("store", "durability"),
    ),
    "connections": Metric("dragoman_connections", GAUGE, "Open connections.", ("dialect",)),
    "connections_max": Metric(
        "dragoman_connections_max", GAUGE, "At so many accepting pauses.", ("dialect",)
    ),
    "accepted": Metric(
        "dragoman_connections_total", COUNTER, "Connections accepted.", ("dialect",)
    ),
    "handshakes_refused": Metric(
        "dragoman_handshakes_refused_total", COUNTER, "TLS handshakes refused.", ("dialect",)
    ),
    "dialect_requests": Metric(
        "dragoman_dialect_requests_total",
        COUNTER,
        "Requests heard; those of a dialect that runs several as one count once.",
        ("dialect",),
    ),
    "received": Metric(
        "dragoman_received_bytes_total", COUNTER, "Bytes of peers, without TLS.", ("dialect",)
    ),
    "sent": Metric(
        "dragoman_sent_bytes_total", COUNTER, "Bytes to peers, without TLS.", ("dialect",)
    ),
    "refusals": Metric(
        "dragoman_refusals_total",
        COUNTER,
        "Failures told to peers, by the core's code.",
        ("dialect", "code"),
    ),
    "produce_latency": Metric(
        "dragoman_produce_latency_seconds",
        HISTOGRAM,
        "As message_latency_seconds, by dialect.",
        ("dialect",),
    ),
    "flush_latency": Metric(
        "dragoman_flush_latency_seconds",
        HISTOGRAM,
        "From a group's flush being handed to its thread to the event loop hearing its end.",
    ),
    "overloaded": Metric(
        "dragoman_overloaded", GAUGE, "1 while connections that produce are not read, else 0."
    ),
    "inexact": Metric(
        "dragoman_inexact_records_total",
        COUNTER,
        "Records rendered otherwise than exactly, because a dialect cannot say them.",
        ("rendering",),
    ),
    "rendering_bytes": Metric(
        "dragoman_rendering_bytes", GAUGE, "Batches kept as rendered in a dialect."
    ),
    "inflow_bytes": Metric(
        "dragoman_inflow_bytes", GAUGE, "Arrived of all connections together and not served yet."
    ),
    "sheds": Metric(
        "dragoman_sheds_total",
        COUNTER,
        "Connections closed because half a frame made no progress while memory was short.",
    ),
    "lag_left_out": Metric(
        "dragoman_consumer_lag_left_out",
        GAUGE,
        "Pairs of group and partition that broker_consumer_lag has no room for.",
    ),
    "admin_connections": Metric(
        "dragoman_admin_connections", GAUGE, "Open connections of the admin port."
    ),
}
"""What the gateway itself counts."""


def _counter(name: str, help_: str) -> Metric:
    return Metric(f"dragoman_{name}_total", COUNTER, help_)


def _gauge(name: str, help_: str) -> Metric:
    return Metric(f"dragoman_{name}", GAUGE, help_)


STATISTICS: dict[str, Metric] = {
    "requests": _counter("requests", "Requests that reached the engine, of all dialects."),
    "produced_records": _counter("produced_records", "Records appended."),
    "produced_bytes": _counter("produced_bytes", "Bytes appended, at rest."),
    "idempotent_producers": _gauge("idempotent_producers", "Idempotent producers remembered."),
    "duplicates": _counter("duplicates", "Records that producers sent again."),
    "sequence_gaps": _counter("sequence_gaps", "Batches refused for missing sequences."),
    "stale_producer_epochs": _counter("stale_producer_epochs", "Batches of an older epoch."),
    "dedupe_entries": _gauge("dedupe_entries", "Payloads remembered."),
    "dedupe_hits": _counter("dedupe_hits", "Publishes whose payload was there within its window."),
    "dedupe_evicted": _counter("dedupe_evicted", "Payloads that made room before their time."),
    "cleanups": _counter("cleanups", "Clean-ups that removed something expired."),
    "buffers_filled": _counter("buffers_filled", "Times that a partition's buffer was full."),
    "events_appended": _counter("events_appended", "Events appended to streams."),
    "event_conflicts": _counter("event_conflicts", "Events refused for their version."),
    "event_indexes": _gauge("event_indexes", "Indexes of streams held in memory."),
    "event_index_bytes": _gauge("event_index_bytes", "Memory of the indexes of streams."),
    "event_indexes_built": _counter("event_indexes_built", "Indexes of streams built."),
    "event_indexes_evicted": _counter("event_indexes_evicted", "Indexes that made room."),
    "event_index_records_read": _counter(
        "event_index_records_read", "Records read to build indexes of streams."
    ),
    "fetched_records": _counter("fetched_records", "Records that fetches returned."),
    "followed_records": _counter("followed_records", "Records pushed to followers."),
    "commits": _counter("commits", "Offsets committed."),
    "unfenced_commits": _counter(
        "unfenced_commits", "Commits for an active group by who is no member of it."
    ),
    "cold_reads": _counter("cold_reads", "Reads that had to go to segments."),
    "retention_trims": _counter("retention_trims", "Log starts moved by retention."),
    "clock_jumps": _counter("clock_jumps", "Times that the wall clock went back by over a second."),
    "clients": _gauge("clients", "Connections that the engine knows."),
    "namespaces": _gauge("namespaces", "Namespaces."),
    "topics": _gauge("topics", "Topics."),
    "partitions": _gauge("partitions", "Partitions of all topics."),
    "groups": _gauge("groups", "Groups that have, or had, members."),
    "members": _gauge("members", "Members of all groups."),
    "members_expired": _counter("members_expired", "Members that were silent for too long."),
    "group_generations": _counter("group_generations", "Times that partitions were dealt anew."),
    "waiting": _gauge("waiting", "Outcomes that wait for the disk, a replica or records."),
    "long_polls": _gauge("long_polls", "Fetches that wait for records."),
    "reading": _gauge("reading", "Reads on their way from segments."),
    "followers": _gauge("followers", "Subscriptions that records are pushed to."),
    "replica_waits": _gauge("replica_waits", "Produces that wait for replicas."),
    "replication_timeouts": _counter("replication_timeouts", "Produces whose replicas were late."),
    "follower_partitions": _gauge("follower_partitions", "Partitions that another server leads."),
    "under_replicated_partitions": _gauge(
        "under_replicated_partitions", "Partitions with fewer replicas in sync than they have."
    ),
    "revealed_sequence": _gauge("revealed_sequence", "The newest journal entry readers may see."),
    "failure": _gauge("log_fenced", "1 where the log takes nothing more until a restart, else 0."),
    "store_flushes": _counter("store_flushes", "Groups made durable."),
    "store_records": _counter("store_records", "Records made durable."),
    "store_batches": _counter("store_batches", "Batches made durable."),
    "store_journal_bytes": _counter("store_journal_bytes", "Bytes written to the journal."),
    "store_reads": _counter("store_reads", "Reads asked of the store."),
    "store_sequence": _gauge("store_sequence", "The newest journal entry."),
    "store_revealed_sequence": _gauge("store_revealed_sequence", "The newest durable entry."),
    "store_written_sequence": _gauge("store_written_sequence", "The newest entry in segments."),
    "store_checkpoint_sequence": _gauge(
        "store_checkpoint_sequence", "The newest entry that a checkpoint holds."
    ),
    "store_checkpoints": _counter("store_checkpoints", "Checkpoints made."),
    "store_pending": _gauge("store_pending", "Entries that wait for a flush (log in memory)."),
    "store_bytes": _gauge("store_bytes", "Size of the log (log in memory)."),
    "store_pending_bytes": _gauge("store_pending_bytes", "Bytes that wait for a flush."),
    "store_unwritten_bytes": _gauge("store_unwritten_bytes", "Durable bytes not in segments yet."),
    "store_tail_bytes": _gauge("store_tail_bytes", "Recent batches held in memory."),
    "store_cold_bytes": _gauge("store_cold_bytes", "Batches read back and held in memory."),
    "store_cold_reads": _counter("store_cold_reads", "Batches read back from segments."),
    "store_open_files": _gauge("store_open_files", "Segment files open."),
    "store_journal_files": _gauge("store_journal_files", "Files of the journal."),
    "store_journal_used": _gauge("store_journal_used_ratio", "How full the journal is, 0 to 1."),
    "store_replayed_groups": _gauge("store_replayed_groups", "Groups that the start replayed."),
    "store_damaged": _gauge("store_damaged", "Damages that the start found."),
    "store_scrubbed_bytes": _counter("store_scrubbed_bytes", "Bytes of segments read again."),
    "store_damaged_batches": _counter("store_damaged_batches", "Damaged batches found so."),
    "store_compactions": _counter("store_compactions", "Passes of compaction."),
    "store_compactions_given_up": _counter("store_compactions_given_up", "Passes given up."),
    "store_compacted_records": _counter("store_compacted_records", "Records compacted away."),
    "store_compacted_bytes": _counter("store_compacted_bytes", "Bytes compacted away."),
    "store_full": _gauge("store_full", "1 while the disk has no room, else 0."),
    "store_failed": _gauge("store_failed", "1 where a write to the disk failed, else 0."),
}
"""The engine's statistics by their own names."""

WORDS = frozenset({"store", "store_durability"})
"""Statistics that are words: labels of dragoman_store_info."""

_HEAD = """# Metrics

`GET /metrics` of the admin port answers Prometheus text. Counters begin at 0 with every start.
Each figure is taken when it is asked for; serving requests costs an addition or two.
This page is made of the table in `gateway/metric_table.py`.

Beside these stand `process_*`, `python_gc_*` and `python_info` as Prometheus' own library has them.
"""
_SECTIONS = (
    ("The message-flow document's names", DOCUMENT.values()),
    ("The broker's names", BROKER.values()),
    ("The gateway", OWN.values()),
    ("The log engine's statistics", STATISTICS.values()),
)


def document() -> str:
    """The page of all metrics."""
    lines = [_HEAD]
    for title, metrics in _SECTIONS:
        lines += [f"## {title}\n", "| name | kind | labels | meaning |", "|---|---|---|---|"]
        for name, kind, meaning, labels in metrics:
            shown = ", ".join(f"`{label}`" for label in labels)
            lines.append(f"| `{name}` | {kind} | {shown} | {meaning} |")
        lines.append("")
    lines.append(_TAIL)
    return "\n".join(lines)


_TAIL = """## Not served, because

- `broker_seqnum_*` have no labels of topic, partition and producer: whoever makes up producer
  names would make up series.
- The broker's `cluster_*` metrics: there is no cluster.
- Port 9100 for metrics: node_exporter's; they are on the admin port.
"""


if __name__ == "__main__":
    print(document(), end="")
