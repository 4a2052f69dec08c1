"""Arguments become requests."""

from __future__ import annotations

import pytest

from dragoman.codecs.v1.command import Commands, Wrong
from dragoman.core.calls import (
    Acks,
    Assignor,
    CommitOffset,
    Fetch,
    JoinGroup,
    Produce,
    ReportReplica,
    Role,
    SetRole,
)

COMMANDS = Commands(partitions=5, reply_bytes_max=1000, replication=True)


def request(command: bytes, line: bytes) -> object:
    found = COMMANDS.request(command, line.split())
    assert found is not None
    assert found[0].encode() == command
    return found[1]


def test_topics_are_made_with_the_configured_partitions() -> None:
    produced = request(b"PRODUCE", b"space/t k:v acks=ALL")
    assert isinstance(produced, Produce)
    assert (produced.namespace, produced.topic) == ("space", "t")
    assert (produced.create_partitions, produced.acks) == (5, Acks.ALL)
    fetched = request(b"CONSUME", b"t 1 2")
    assert isinstance(fetched, Fetch)
    assert (fetched.create_partitions, fetched.bytes_max) == (5, 1000)


def test_joining_assumes_them_and_lives_by_heartbeats() -> None:
    joined = request(b"JOIN", b"g t c assignor=RANGE")
    assert isinstance(joined, JoinGroup)
    assert (joined.assume_partitions, joined.assignor) == (5, Assignor.RANGE)
    assert (joined.session_timeout_us, joined.bound) == (10_000_000, False)


def test_generations_are_shown_one_higher() -> None:
    committed = request(b"COMMIT", b"g t c 2 0 7")
    assert isinstance(committed, CommitOffset)
    assert (committed.member, committed.generation) == ("c", 1)
    assert committed.offsets == ((0, 7),)
    assert not committed.monotonic


def test_a_role_is_set_on_a_topic_that_may_be_made() -> None:
    assert request(b"SET_PARTITION_ROLE", b"space/t 1 FOLLOWER") == SetRole(
        "t", 1, Role.FOLLOWER, "space", 5
    )


def test_a_replica_reports_the_last_offset_that_it_has() -> None:
    assert request(b"REPLICA_FETCH", b"t 1 2 -1") == ReportReplica("t", 1, 2, -1)


def test_roles_and_replicas_are_served_where_the_listener_allows_them() -> None:
    commands = Commands(partitions=5, reply_bytes_max=1000, replication=False)
    assert commands.request(b"REPLICA_FETCH", [b"t", b"0", b"1", b"0"]) is None
    assert commands.request(b"SET_PARTITION_ROLE", []) is None


def test_an_unknown_command_is_none() -> None:
    assert COMMANDS.request(b"PING", []) is None


def test_a_wrong_count_is_answered_by_the_usage() -> None:
    with pytest.raises(Wrong, match="OFFSET requires: <group> <topic> <partition>"):
        COMMANDS.request(b"OFFSET", [])
