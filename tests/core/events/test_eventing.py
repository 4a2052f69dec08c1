"""The event store: versions, conflicts, what is read, and what may happen to its topic."""

from __future__ import annotations

import pytest

from dragoman.core import calls
from dragoman.core.calls import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    EventAppended,
    Produce,
    RemovePartitions,
    Role,
    SetRole,
    Snapshot,
    SnapshotSaved,
    TopicConfig,
    UpdateTopic,
    VersionRead,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events.field import Event, event_headers, event_of
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from dragoman.core.route import fnv1a_64
from support.log import Log, batch
from support.streams import TOPIC, Streams, published

K, J = b"k", b"j"


def conflict(current: int, requested: int) -> Failure:
    detail = f"the stream's version is {current}"
    facts: dict[str, int | str] = {"current": current, "requested": requested}
    return Failure(ErrorCode.VERSION_CONFLICT, detail, facts)


# ---------------------------------------------------------------- versions


def test_versions_count_from_one_in_each_stream() -> None:
    log = Streams()
    assert log.add(K, 1) == EventAppended(1, 0, 0)
    assert log.add(J, 1) == EventAppended(1, 1, 0)
    assert log.add(K, 2) == EventAppended(2, 2, 0)
    assert (log.version(K), log.version(J), log.version(b"other")) == (2, 1, 0)


@pytest.mark.parametrize("version", [0, 1, 3, 1 << 62])
def test_another_version_than_the_next_is_a_conflict(version: int) -> None:
    log = Streams()
    log.add(K, 1)
    assert log.add(K, version) == conflict(1, version)
    assert log.read(TOPIC) == [b"x"]


def test_of_two_writers_that_go_on_from_the_same_version_one_succeeds() -> None:
    log = Streams()
    log.add(K, 1)
    one = log.hand(log.adding(K, 2), Client(1, "test"))
    other = log.hand(log.adding(K, 2), Client(2, "test"))
    log.flush()
    assert one.reply == EventAppended(2, 1, 0)
    assert other.reply == conflict(2, 2)


def test_an_event_is_answered_once_it_is_durable() -> None:
    log = Streams()
    outcome = log.begin(K, 1)
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_events_may_follow_each_other_before_the_first_is_durable() -> None:
    log = Streams()
    begun = [log.begin(K, version) for version in (1, 2, 3)]
    log.flush()
    assert [outcome.reply for outcome in begun] == [EventAppended(n + 1, n, 0) for n in range(3)]


def test_a_conflict_waits_for_the_event_that_it_tells_of() -> None:
    log = Streams()
    log.begin(K, 1)
    refused = log.begin(K, 1)
    assert not refused.ready
    log.flush()
    assert refused.reply == conflict(1, 1)


def test_a_version_waits_for_the_event_that_it_tells_of() -> None:
    log = Streams()
    log.begin(K, 1)
    asked = log.hand(log.request(calls.ReadVersion, K))
    assert not asked.ready
    log.flush()
    assert asked.reply == VersionRead(1)


def test_the_key_chooses_the_partition() -> None:
    log = Streams(4)
    for key in (b"a", b"k1", b"user-1"):
        assert log.add(key, 1).partition == fnv1a_64(key) % 4


def test_the_fields_of_an_event_are_kept_beside_its_version() -> None:
    log = Streams()
    request = log.adding(K, 1)
    fields = event_headers(Event(b"Made", 2, 0, b"{}"))
    assert fields is not None
    request.batch.headers = type(request.batch.values).single(fields)
    log.ask(request)
    (piece,) = log.stream(K).slices
    record = piece.batch.record(piece.first)
    assert (record.key, record.value) == (K, b"x")
    assert event_of(record.headers or b"") == (Event(b"Made", 2, 1, b"{}"), True)


# ---------------------------------------------------------------- reading


def test_a_stream_is_read_without_the_records_between() -> None:
    log = Streams()
    for version in range(1, 5):
        log.add(K, version)
        log.publish((J, 0), (None, 0))
    reply = log.stream(K)
    assert reply.count == 4
    assert log.versions(K) == [1, 2, 3, 4]


def test_reading_may_begin_at_any_version() -> None:
    log = Streams()
    for version in range(1, 6):
        log.add(K, version)
    assert log.versions(K, 4) == [4, 5]
    assert log.versions(K, 6) == []


def test_a_reading_has_at_most_so_many_events_and_at_least_one() -> None:
    log = Streams()
    for version in range(1, 6):
        log.add(K, version)
    assert log.stream(K, records_max=3).count == 3
    assert log.stream(K, bytes_max=1).count == 1
    assert log.stream(K, bytes_max=400).count < 5


def test_events_that_are_not_durable_are_not_read() -> None:
    log = Streams()
    log.add(K, 1)
    log.begin(K, 2)
    outcome = log.hand(log.request(calls.ReadEvents, K))
    assert isinstance(outcome.reply, calls.EventsRead)
    assert outcome.reply.count == 1


# ---------------------------------------------------------------- snapshots


def test_the_newest_snapshot_counts() -> None:
    log = Streams()
    log.add(K, 1)
    log.add(K, 2)
    assert log.snapshot(K) is None
    assert log.save(K, 2, b"b") == SnapshotSaved(2, 0)
    assert log.save(K, 1, b"a") == SnapshotSaved(1, 0)
    assert log.snapshot(K) == Snapshot(1, b"a")
    assert log.snapshot(J) is None


def test_a_stream_is_read_from_behind_its_snapshot() -> None:
    log = Streams()
    for version in range(1, 4):
        log.add(K, version)
    log.save(K, 2)
    reply = log.stream(K)
    assert reply.snapshot == Snapshot(2, b"state")
    assert reply.count == 1
    assert log.stream(K, 1).snapshot is None


def test_a_snapshot_beyond_the_stream_is_refused() -> None:
    log = Streams()
    log.add(K, 1)
    refused = log.save(K, 2)
    assert refused.code is ErrorCode.SNAPSHOT_TOO_NEW
    assert refused.facts == {"current": 1, "requested": 2}


def test_a_snapshot_on_its_way_is_waited_for() -> None:
    log = Streams()
    log.add(K, 1)
    log.hand(log.request(calls.SaveSnapshot, K, 1, b"state"))
    asked = log.hand(log.request(calls.ReadSnapshot, K))
    assert not asked.ready
    log.flush()
    assert asked.reply == calls.SnapshotRead(Snapshot(1, b"state"))


def test_snapshots_are_records_of_a_compacted_topic() -> None:
    log = Streams(2)
    log.add(K, 1)
    partition = log.save(K, 1).partition
    (topic,) = [t for t in log.ask(calls.ListTopics()).topics if t.name != TOPIC]
    assert (topic.name, len(topic.partitions)) == ("__snapshots.t", 2)
    assert topic.config.compact
    assert log.read(topic.name, partition=partition) == [b"state"]


def test_whoever_empties_the_newest_record_of_a_snapshot_deletes_it() -> None:
    log = Streams()
    log.add(K, 1)
    log.save(K, 1)
    log.ask(Produce("__snapshots.t", published((K, 1), value=None), 0))
    assert log.snapshot(K) is None
    assert log.restarted().snapshot(K) is None


def test_snapshots_go_and_are_renamed_with_their_topic() -> None:
    log = Streams()
    log.add(K, 1)
    log.save(K, 1)
    log.ask(UpdateTopic(TOPIC, name="u"))
    asked = calls.ReadSnapshot("u", K, fnv1a_64(K))
    assert log.ask(asked).snapshot == Snapshot(1, b"state")
    log.ask(DeleteTopic("u"))
    assert log.ask(calls.ListTopics()).topics == []


def test_the_name_of_the_snapshots_may_be_taken() -> None:
    log = Streams()
    log.ask(CreateTopic("__snapshots.t", 1))
    log.add(K, 1)
    assert log.save(K, 1).code is ErrorCode.TOPIC_EXISTS
    assert log.snapshot(K) is None


def test_a_topic_is_not_renamed_over_the_snapshots_of_another() -> None:
    log = Streams()
    log.add(K, 1)
    log.save(K, 1)
    log.ask(CreateTopic("__snapshots.u", 1))
    assert log.code(UpdateTopic(TOPIC, name="u")) is ErrorCode.TOPIC_EXISTS
    assert log.snapshot(K) == Snapshot(1, b"state")


def test_a_name_too_long_for_a_topic_of_snapshots_has_none() -> None:
    log = Log()
    name = "t" * 250
    log.ask(CreateTopic(name, 1, config=TopicConfig(event_sourcing=True)))
    log.ask(calls.AppendEvent(name, K, 0, 1, batch(b"x")))
    refused = log.ask(calls.SaveSnapshot(name, K, 0, 1, b"s"))
    assert refused.code is ErrorCode.INVALID_NAME
    assert refused.detail == (
        "streams of a topic whose name has more than 243 bytes have no snapshots"
    )


# ---------------------------------------------------------------- what others write


def test_a_published_record_with_the_next_version_is_an_event() -> None:
    log = Streams()
    log.add(K, 1)
    log.publish((K, 2), (J, 1), (K, 3))
    assert (log.version(K), log.version(J)) == (3, 1)
    assert log.add(K, 3) == conflict(3, 3)
    assert log.versions(K) == [1, 2, 3]


def test_a_published_record_that_is_not_flushed_counts() -> None:
    log = Streams()
    log.add(K, 1)
    log.hand(Produce(TOPIC, published((K, 2)), 0))
    refused = log.begin(K, 2)
    assert not refused.ready
    log.flush()
    assert refused.reply == conflict(2, 2)


def test_a_published_record_with_another_version_is_none() -> None:
    log = Streams()
    log.add(K, 1)
    log.publish((K, 3), (K, 1), (K, 0), (J, 2))
    assert (log.version(K), log.version(J)) == (1, 0)
    again = log.restarted()
    assert (again.version(K), again.version(J)) == (1, 0)


# ---------------------------------------------------------------- the topic


def test_only_topics_made_for_it_hold_streams() -> None:
    log = Log()
    log.ask(CreateTopic(TOPIC, 1))
    for request in (
        calls.AppendEvent(TOPIC, K, 0, 1, batch(b"x")),
        calls.ReadEvents(TOPIC, K, 0),
        calls.ReadVersion(TOPIC, K, 0),
        calls.SaveSnapshot(TOPIC, K, 0, 1, b"s"),
        calls.ReadSnapshot(TOPIC, K, 0),
    ):
        assert log.code(request) is ErrorCode.NOT_EVENT_SOURCED


def test_a_stream_has_a_key() -> None:
    log = Streams()
    assert log.add(b"", 1).code is ErrorCode.MALFORMED


@pytest.mark.parametrize(
    "request_",
    [
        AddPartitions(TOPIC, 1),
        RemovePartitions(TOPIC, 1),
        CreateTopic(TOPIC, 3, if_exists=calls.IfExists.GROW),
        UpdateTopic(TOPIC, config=TopicConfig()),
        UpdateTopic(TOPIC, config=TopicConfig(event_sourcing=True, compact=True)),
        CreateTopic("u", 1, config=TopicConfig(event_sourcing=True, compact=True)),
    ],
)
def test_what_would_split_or_thin_streams_is_refused(request_: calls.Request) -> None:
    log = Streams(2)
    assert log.code(request_) is ErrorCode.UNSUPPORTED
    assert len(log.ask(calls.DescribeTopic(TOPIC)).topic.partitions) == 2


def test_a_create_with_as_many_partitions_is_fine() -> None:
    log = Streams(2)
    again = CreateTopic(TOPIC, 2, if_exists=calls.IfExists.GROW)
    assert log.ask(again).topic.config.event_sourcing


def test_a_topic_made_again_begins_anew() -> None:
    log = Streams()
    log.add(K, 1)
    log.ask(DeleteTopic(TOPIC))
    assert log.add(K, 2).code is ErrorCode.UNKNOWN_TOPIC
    log.ask(CreateTopic(TOPIC, 1, config=TopicConfig(event_sourcing=True)))
    assert log.add(K, 1) == EventAppended(1, 0, 0)


def test_a_follower_takes_no_events_and_is_read() -> None:
    log = Streams()
    log.add(K, 1)
    log.ask(SetRole(TOPIC, 0, Role.FOLLOWER))
    assert log.add(K, 2).code is ErrorCode.NOT_LEADER
    assert log.save(K, 1).code is ErrorCode.NOT_LEADER
    assert log.versions(K) == [1]


def test_an_event_has_the_limits_of_every_record() -> None:
    log = Streams(record_bytes_max=100)
    assert log.add(K, 1, b"x" * 100).code is ErrorCode.RECORD_TOO_LARGE
    assert log.version(K) == 0


def test_a_full_disk_takes_no_event_and_the_version_stays() -> None:
    log = Streams(store=MemoryStore(bytes_max=400))
    log.add(K, 1)
    assert log.add(K, 2, b"x" * 400).code is ErrorCode.STORAGE_FULL
    assert log.version(K) == 1


def test_an_engine_that_closes_takes_no_event() -> None:
    log = Streams()
    log.engine.begin_close(log.now)
    assert log.add(K, 1).code is ErrorCode.SHUTTING_DOWN


# ---------------------------------------------------------------- restart, trims


def test_streams_are_known_after_a_restart() -> None:
    log = Streams()
    for version in range(1, 4):
        log.add(K, version)
    log.save(K, 2)
    log.begin(K, 4)
    again = log.restarted()
    assert again.version(K) == 3
    assert again.snapshot(K) == Snapshot(2, b"state")
    assert again.add(K, 4) == EventAppended(4, 3, 0)
    assert again.versions(K) == [1, 2, 3, 4]


def test_what_is_deleted_from_the_beginning_is_gone_and_versions_go_on() -> None:
    log = Streams()
    for version in range(1, 5):
        log.add(K, version)
    log.trim(2)
    for later in (log, log.restarted()):
        assert later.version(K) == 4
        assert later.versions(K) == [3, 4]
        assert later.add(K, 5) == EventAppended(5, 4, 0)


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_stream_of_which_nothing_is_left_has_its_snapshots_version(is_saved: bool) -> None:
    log = Streams()
    log.add(K, 1)
    log.add(K, 2)
    if is_saved:
        log.save(K, 2)
    log.trim(-1)
    version = 2 if is_saved else 0
    for later in (log, log.restarted()):
        assert later.version(K) == version
    assert log.add(K, version + 1) == EventAppended(version + 1, 2, 0)


@pytest.mark.parametrize(
    "deletion", [calls.DeleteRecords("__snapshots.t", 0, -1), DeleteTopic("__snapshots.t")]
)
@pytest.mark.parametrize("kind", [calls.ReadSnapshot, calls.ReadEvents, calls.ReadVersion])
def test_that_a_snapshot_is_gone_is_told_once_it_is_durable(
    kind: type, deletion: calls.Request
) -> None:
    log = Streams()
    log.add(K, 1)
    log.save(K, 1)
    log.trim(-1)
    log.hand(deletion)
    asked = log.hand(log.request(kind, K))
    assert not asked.ready
    log.flush()
    assert asked.ready


def test_of_two_writers_that_wait_for_an_index_of_snapshots_one_succeeds() -> None:
    log = Streams()
    log.add(J, 1)
    log.save(J, 1)
    log.trim(-1)
    log = log.restarted()
    log.store.blocking_reads = True
    begun = [log.begin(K, 1), log.begin(K, 1)]
    for _ in range(8):
        log.flush()
        log.work()
    assert [each.reply for each in begun] == [EventAppended(1, 1, 0), conflict(1, 1)]


def test_a_record_beside_a_stream_may_be_its_first_event_once_the_rest_is_deleted() -> None:
    log = Streams()
    log.add(K, 1)
    log.publish((K, 7))
    log.trim(1)
    for later in (log, log.restarted()):
        assert later.version(K) == 7
        assert later.versions(K) == [7]


def test_what_is_appended_after_a_trim_is_held_against_what_is_left() -> None:
    log = Streams()
    log.add(K, 1)
    log.add(K, 2)
    log.trim(2)
    log.publish((K, 9))
    for later in (log, log.restarted()):
        assert later.version(K) == 9
