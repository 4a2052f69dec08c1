"""The tables about the Cursus documents name keys, clauses and vectors that are there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dragoman.gateway.config import load_config
from dragoman.gateway.effective import effective
from dragoman.gateway.profile import PROFILES
from support.vectors import load_vectors

ROOT = Path(__file__).parent.parent
TABLES = (ROOT / "docs/CURSUS.md").read_text()
LEDGER = (ROOT / "specs/cursus/ledger.md").read_text()
PROTOCOL = (ROOT / "specs/cursus/protocol.md").read_text()
DEFINED = re.findall(r"\*\*(CUR-[A-Z]\d+)\*\*", PROTOCOL)
DOCUMENT = (
    *("DiskFlushBatchSize", "LingerMS", "PartitionChannelBufSize", "ConsumerChannelBufSize"),
    *("readDeadline", "SegmentSize", "BrokerPort", "maxWorkers", "CleanupInterval", "CleanupCount"),
    *("messages_processed_total", "message_latency_seconds", "maxPollRecords"),
    *("tlsCertPath", "tlsKeyPath", "compressionType"),
)
BROKER = (
    *("broker_port", "health_check_port", "enable_exporter", "exporter_port", "log_dir"),
    *("log_level", "disk_flush_batch_size", "disk_flush_interval_ms", "linger_ms"),
    *("disk_write_timeout_ms", "compression_type", "log_cleanup_interval", "log_segment_bytes"),
    *("log_segment_roll_ms", "log_index_size_bytes", "log_index_interval_bytes"),
    *("log_cleanup_policy", "log_retention_hours", "log_retention_bytes", "channel_buffer_size"),
    *("partition_channel_buffer_size", "consumer_channel_buffer_size", "enable_idempotence"),
    *("consumer_session_timeout_ms", "consumer_heartbeat_check_ms", "max_stream_connections"),
    *("stream_timeout", "stream_heartbeat_interval", "stream_commit_interval"),
    *("advertised_client_host", "advertised_broker_port", "advertised_host"),
    *("use_tls", "tls_cert_path", "tls_key_path", "enabled_distribution", "raft_port"),
    *("discovery_port", "raft_peers", "static_cluster_members", "bootstrap_cluster"),
    *("min_insync_replicas", "default_replication_factor"),
)
HEADINGS = (
    *("Protocol", "Transport", "Frame Structure", "Commands", "Command Routing"),
    *("Batch Message Encoding", "ACK Response Format", "Compression"),
    *("Message Flow", "Wire Protocol", "Deduplication Mechanism", "Partition Selection Strategy"),
    *("Key-based routing", "Round-robin routing", "Dual-Path Distribution", "In-Memory Path"),
    *("Disk Path", "Consumption Flow", "Batching and Flushing"),
    *("Publishing Messages", "Purpose and Scope", "Message Ingestion Protocol"),
    *("TCP Connection Handling", "Length-Prefixed Message Framing", "Message Routing Logic"),
    *("Deduplication Mechanism (of the publishing page)", "Purpose and Implementation"),
    *("Cleanup Process", "Partition Selection Strategies", "Key-Based Routing"),
    *("Round-Robin Distribution", "Disk Persistence", "Asynchronous Write Path"),
    *("Batch Accumulation Logic", "Write Batch Implementation", "Segment Rotation"),
    *("Partition Channel Architecture", "Partition-to-Consumer Assignment"),
    *("Performance Characteristics", "Tunable Parameters", "Latency vs Throughput Trade-offs"),
    *("Metrics", "Consuming Messages", "Purpose and Scope", "Consumption Architecture"),
    *("The CONSUME Command Protocol", "Command Syntax", "Command Detection and Routing"),
    *("Command Parsing", "Reading Messages from Disk", "DiskHandler Retrieval"),
    *("Message Format on Disk", "Memory-Mapped I/O", "Offset Handling", "Batch Size Limit"),
    *("Message Streaming Protocol", "Length-Prefixed Framing", "Connection Lifecycle"),
    *("Error Handling", "Consumer Groups vs CONSUME Command", "Consumer Groups (In-Memory)"),
    *("CONSUME Command (Disk-Based)", "Platform-Specific Optimizations"),
    *("Linux: sendfile() System Call", "Linux: Sequential Read-Ahead Hints"),
    *("Configuration Parameters", "Error Scenarios and Recovery"),
    *("Topic or Partition Not Found", "Segment File Not Found", "Read Errors During Streaming"),
    "Summary",
)
"""The headings of both documents, in their order."""
OURS = {
    "Ledger of the Cursus documents",
    "The Cursus document",
    "The message-flow document",
    "Where the documents and the published clients differ",
}


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every key that an operator may set."""
    monkeypatch.chdir(tmp_path)
    return {one.key for one in effective(load_config(None, {}, {}))}


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table, without heads."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("|") and not line.startswith("|---"):
            if at + 1 < len(lines) and lines[at + 1].startswith("|---"):
                continue
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def test_every_key_that_the_tables_name_is_one(keys: set[str]) -> None:
    named = set(re.findall(r"`((?:storage|engine|server|log|admin|listeners)\.[\w.]+)`", TABLES))
    assert named
    assert not named - keys


def test_the_tables_have_every_key_of_the_profile() -> None:
    named = [key for key, _, _ in PROFILES["cursus-document"]]
    assert not [key for key in named if f"`{key}`" not in TABLES]


@pytest.mark.parametrize("name", DOCUMENT + BROKER)
def test_the_tables_have_every_setting_of_the_documents_and_of_a_broker(name: str) -> None:
    assert f"| `{name}`" in TABLES or f"`{name}` |" in TABLES or f", `{name}`" in TABLES


@pytest.mark.parametrize("text", [TABLES, LEDGER], ids=["tables", "ledger"])
def test_what_is_not_served_says_why(text: str) -> None:
    for cells in rows(text):
        assert cells[0], cells
        assert all(cells[2:]), cells
        said = [cell for cell in cells if "not served" in cell]
        assert all(re.match(r"not served, because \w+ ", cell) for cell in said), cells


@pytest.mark.parametrize("text", [TABLES, LEDGER], ids=["tables", "ledger"])
def test_every_clause_that_is_named_is_there(text: str) -> None:
    assert set(re.findall(r"CUR-[A-Z]\d+", text)) <= set(DEFINED)


def test_every_clause_is_written_once() -> None:
    assert [clause for clause, times in Counter(DEFINED).items() if times > 1] == []


def test_every_row_of_the_ledger_names_a_clause_or_says_why_not() -> None:
    entries = rows(LEDGER)
    assert len(entries) > 250
    assert not [cells for cells in entries if not re.search(r"CUR-[A-Z]\d|not served", cells[-1])]


def test_the_ledger_has_every_heading_of_the_documents_in_their_order() -> None:
    headings = re.findall(r"^#+ (.*)$", LEDGER, re.M)
    assert tuple(heading for heading in headings if heading not in OURS) == HEADINGS


def test_every_vector_that_the_ledger_names_is_there() -> None:
    ids = {vector.id for vector in load_vectors("cursus")}
    lists = re.findall(r"vectors? ((?:`[\w-]+`(?:, )?)+)", LEDGER)
    named = {name for names in lists for name in re.findall(r"`([\w-]+)`", names)}
    assert named
    assert not named - ids
