"""Fetch: where reading begins, what comes, and how long it waits."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.calls import (
    ASSIGNED,
    CommitOffset,
    CreateGroup,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    JoinGroup,
    OffsetKind,
    Produce,
    RemovePartitions,
    TopicConfig,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from dragoman.core.select import select
from support.log import WALL_US, Log, batch, values


@pytest.fixture(params=[False, True], ids=["hot", "cold"])
def log(request: pytest.FixtureRequest) -> Log:
    """A log with records a b | c d | e; batches 1 s apart; once with reads that block."""
    made = Log(MemoryStore(blocking_reads=request.param))
    for written in ((b"a", b"b"), (b"c", b"d"), (b"e",)):
        made.put("t", *written)
        made.pass_time(1)
    return made


def trimmed(log: Log, keep_bytes: int = 1) -> Log:
    """The same log after retention took all batches but the last."""
    log.ask(CreateTopic("r", 1, config=TopicConfig(retention_bytes=keep_bytes)))
    for value in (b"a", b"b", b"c"):
        log.ask(Produce("r", batch(value), 0))
    log.pass_time(10)
    log.flush()
    return log


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, b"abcde"),
        ({"offset": 3}, b"de"),
        ({"offset": 5}, b""),
        ({"offset": 99}, b""),
        ({"offset": 1, "records_max": 2}, b"bc"),
        ({"records_max": 0}, b""),
        ({"bytes_max": 3}, b"abc"),
        ({"bytes_max": 0}, b"a"),
        ({"bytes_max": 4, "record_overhead": 1}, b"ab"),
        ({"whence": Whence.EARLIEST, "offset": 3}, b"abcde"),
        ({"whence": Whence.LATEST}, b""),
        ({"whence": Whence.LAST, "offset": 2}, b"de"),
        ({"whence": Whence.LAST, "offset": 99}, b"abcde"),
        ({"whence": Whence.LAST, "offset": 0}, b""),
        ({"whence": Whence.TIMESTAMP, "offset": 0}, b"abcde"),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US}, b"abcde"),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 1}, b"cde"),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 1_000_000}, b"cde"),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 1_500_000}, b"e"),
        ({"whence": Whence.TIMESTAMP, "offset": WALL_US + 9_000_000}, b""),
        ({"whence": Whence.COMMITTED, "group": "g"}, b"abcde"),
        ({"whence": Whence.COMMITTED, "group": "g", "offset": 4}, b"e"),
        ({"whence": Whence.COMMITTED_OR_LATEST, "group": "g"}, b""),
        ({"whence": Whence.MAX_COMMITTED, "group": "g", "offset": 3}, b"de"),
    ],
)
def test_reading_begins_where_whence_says(
    log: Log, fields: dict[str, Any], expected: bytes
) -> None:
    reply = log.ask(Fetch("t", 0, **fields))
    assert b"".join(filter(None, values(reply.slices))) == expected
    assert reply.next_offset == reply.start_offset + len(expected)
    assert reply.count == len(expected)
    assert reply.high_watermark == 5


@pytest.mark.parametrize(
    ("whence", "offset", "expected"),
    [
        (Whence.COMMITTED, 0, 3),
        (Whence.COMMITTED, 4, 3),
        (Whence.COMMITTED_OR_LATEST, 0, 3),
        (Whence.MAX_COMMITTED, 0, 3),
        (Whence.MAX_COMMITTED, 4, 4),
    ],
)
def test_a_committed_offset_decides_where_reading_begins(
    log: Log, whence: Whence, offset: int, expected: int
) -> None:
    log.ask(CommitOffset("t", "g", ((0, 3),)))
    reply = log.ask(Fetch("t", 0, offset, whence=whence, group="g"))
    assert reply.start_offset == expected
    assert reply.committed == 3


def test_groups_and_consumers_have_separate_offsets(log: Log) -> None:
    log.ask(CommitOffset("t", "7", ((0, 3),), kind=OffsetKind.CONSUMER))
    assert log.read("t", whence=Whence.COMMITTED, group="7") == [b"a", b"b", b"c", b"d", b"e"]
    assert log.read("t", whence=Whence.COMMITTED, group="7", kind=OffsetKind.CONSUMER) == [
        b"d",
        b"e",
    ]


def test_a_time_between_the_records_of_a_joined_batch_is_found() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    for value in (b"a", b"b", b"c"):
        log.hand(Produce("t", batch(value), 0))
        log.pass_time(1)
    log.flush()
    reply = log.ask(Fetch("t", 0, WALL_US + 1, whence=Whence.TIMESTAMP))
    assert reply.start_offset == 1
    assert values(reply.slices) == [b"b", b"c"]


def test_auto_commit_stores_the_next_offset_before_the_answer(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, records_max=3, group="g", auto_commit=True))
    log.work()
    assert not outcome.ready
    log.flush()
    assert outcome.ready
    assert outcome.reply.committed is None  # type: ignore[union-attr]
    assert log.ask(FetchOffset("t", "g", 0)).offset == 3


def test_an_empty_read_commits_nothing(log: Log) -> None:
    log.ask(Fetch("t", 0, 5, group="g", auto_commit=True))
    assert log.ask(FetchOffset("t", "g", 0)).offset is None


def test_below_the_log_start_reading_begins_there_unless_strict() -> None:
    log = trimmed(Log())
    reply = log.ask(Fetch("r", 0))
    assert (reply.start_offset, reply.log_start_offset, values(reply.slices)) == (2, 2, [b"c"])
    failure = log.refused(Fetch("r", 0, 1, strict=True))
    assert failure.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert failure.facts == {"requested": 1, "earliest": 2, "latest": 3}


def test_a_committed_offset_below_the_log_start_begins_there() -> None:
    log = trimmed(Log())
    log.ask(CommitOffset("r", "g", ((0, -5),)))
    assert log.read("r", whence=Whence.COMMITTED, group="g") == [b"c"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Fetch("t", 0, -1), ErrorCode.INVALID_OFFSET),
        (Fetch("t", 3), ErrorCode.UNKNOWN_PARTITION),
        (Fetch("t", -1), ErrorCode.UNKNOWN_PARTITION),
        (Fetch("missing", 0), ErrorCode.UNKNOWN_TOPIC),
        (Fetch(99, 0), ErrorCode.UNKNOWN_TOPIC),
        (Fetch("t", 0, namespace="missing"), ErrorCode.UNKNOWN_NAMESPACE),
        (Fetch("t", 0, namespace=7), ErrorCode.UNKNOWN_NAMESPACE),
        (Fetch("a/b", 0, create_partitions=3), ErrorCode.INVALID_NAME),
        (Fetch("t", 0, group="a\nb", auto_commit=True), ErrorCode.INVALID_NAME),
    ],
)
def test_what_cannot_be_read_is_refused(log: Log, request_: Fetch, code: ErrorCode) -> None:
    assert log.code(request_) is code


def test_a_topic_without_partitions_has_nothing_to_read() -> None:
    log = Log()
    log.ask(CreateTopic("t", 0))
    assert log.code(Fetch("t", 0)) is ErrorCode.NO_PARTITIONS


def test_a_fetch_makes_the_topic_where_it_is_asked_to() -> None:
    log = Log()
    assert log.read("new", create_partitions=2) == []
    assert len(log.ask(DescribeTopic("new")).topic.partitions) == 2


def test_a_topic_and_namespace_are_known_by_their_numbers(log: Log) -> None:
    reply = log.ask(Fetch(1, 0, namespace=4_294_967_295))
    assert (reply.namespace, reply.topic, reply.count) == ("default", "t", 5)


def test_a_long_poll_is_answered_when_records_are_durable(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.hand(Produce("t", batch(b"f"), 0))
    assert not outcome.ready
    log.flush()
    log.work()
    assert outcome.ready
    assert values(outcome.reply.slices) == [b"f"]  # type: ignore[union-attr]


def test_a_long_poll_is_not_woken_by_another_partition(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.put("t", b"x", partition=1)
    assert not outcome.ready


def test_a_long_poll_beyond_the_end_waits_for_its_offset(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 6, wait_us=1_000_000))
    log.put("t", b"f")
    assert not outcome.ready
    log.put("t", b"g")
    log.work()
    assert values(outcome.reply.slices) == [b"g"]  # type: ignore[union-attr]


def test_a_long_poll_ends_empty_at_its_deadline(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.pass_time(0.999)
    assert not outcome.ready
    log.pass_time(0.001)
    assert outcome.ready
    assert outcome.reply.slices == []  # type: ignore[union-attr]
    assert outcome.reply.next_offset == 5  # type: ignore[union-attr]
    assert log.engine.statistics()["long_polls"] == 0


def test_a_long_poll_waits_no_longer_than_the_server_allows() -> None:
    log = Log(long_poll_max_us=1_000_000)
    log.put("t", b"a")
    outcome = log.hand(Fetch("t", 0, 1, wait_us=1 << 62))
    log.pass_time(1)
    assert outcome.ready


def test_a_long_poll_by_time_waits_for_records_of_that_time(log: Log) -> None:
    later = log.now.wall_us + 2_000_000
    outcome = log.hand(Fetch("t", 0, later, whence=Whence.TIMESTAMP, wait_us=60_000_000))
    log.put("t", b"early")
    log.work()
    assert not outcome.ready
    log.pass_time(2)
    log.put("t", b"late")
    log.work()
    assert values(outcome.reply.slices) == [b"late"]  # type: ignore[union-attr]


def test_a_long_poll_that_commits_waits_for_that_too(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000, group="g", auto_commit=True))
    log.put("t", b"f")
    log.work()
    assert not outcome.ready
    log.flush()
    assert outcome.ready
    assert log.ask(FetchOffset("t", "g", 0)).offset == 6


def test_many_long_polls_are_woken_together_in_order(log: Log) -> None:
    log.ready.clear()
    polls = [
        log.hand(Fetch("t", 0, 5, wait_us=1_000_000), Client(number, "test"))
        for number in range(20)
    ]
    log.put("t", b"f")
    log.work()
    assert [outcome for outcome in log.ready if outcome in polls] == polls


def test_a_cancelled_long_poll_is_forgotten(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.engine.cancel(outcome, log.now)
    log.ready.clear()
    log.put("t", b"f")
    log.pass_time(2)
    assert outcome not in log.ready


def test_a_cold_read_whose_asker_left_is_dropped() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a")
    outcome = log.hand(Fetch("t", 0))
    log.engine.disconnected(log.client, log.now)
    log.ready.clear()
    assert log.work() == 1
    assert log.ready == []
    assert not outcome.ready


def test_a_cold_read_of_a_topic_deleted_meanwhile_is_refused() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a")
    outcome = log.hand(Fetch("t", 0))
    log.ask(DeleteTopic("t"))
    log.work()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.UNKNOWN_TOPIC


def test_a_cold_read_that_the_disk_fails_is_refused() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a")
    outcome = log.hand(Fetch("t", 0))
    log.work(OSError(5, "I/O error"))
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.STORAGE_FAILED


def test_a_fetch_inside_damage_names_the_range(log: Log) -> None:
    log.store.damaged[1, 0] = [(2, 3)]
    failure = log.refused(Fetch("t", 0, 2))
    assert failure.code is ErrorCode.DAMAGED
    assert failure.facts == {"first": 2, "last": 3}


def test_a_fetch_before_damage_stops_there_and_one_after_it_goes_on(log: Log) -> None:
    log.store.damaged[1, 0] = [(2, 3)]
    reply = log.ask(Fetch("t", 0))
    assert values(reply.slices) == [b"a", b"b"]
    assert reply.next_offset == 2
    assert log.read("t", 4) == [b"e"]


def test_a_long_poll_that_meets_damage_is_refused(log: Log) -> None:
    outcome = log.hand(Fetch("t", 0, 5, wait_us=1_000_000))
    log.store.damaged[1, 0] = [(5, 5)]
    log.put("t", b"f")
    log.work()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.DAMAGED


def test_a_read_goes_on_over_several_reads_of_the_store() -> None:
    log = Log()
    for _ in range(10):
        log.put("t", bytes(10_000))
    assert len(log.read("t", bytes_max=100_000)) == 10
    assert len(log.read("t", bytes_max=95_000)) == 9


# ---------------------------------------------------------------- where a member is assigned


def joined(log: Log, member: str = "m", number: int = 7) -> Client:
    """A connection whose member of g on t is bound to it."""
    client = Client(number, "iggy")
    log.ask(JoinGroup("t", "g", member, bound=True), client)
    return client


def poll(log: Log, client: Client, **fields: Any) -> Any:
    request = Fetch("t", ASSIGNED, whence=Whence.COMMITTED, group="g", auto_commit=True, **fields)
    return log.ask(request, client)


def test_each_poll_goes_to_the_next_partition_that_is_owned(log: Log) -> None:
    client = joined(log)
    log.put("t", b"x", partition=2)
    replies = [poll(log, client) for _ in range(4)]
    assert [reply.partition for reply in replies] == [0, 1, 2, 0]
    assert [values(reply.slices) for reply in replies] == [
        [b"a", b"b", b"c", b"d", b"e"],
        [],
        [b"x"],
        [],
    ]
    assert [reply.committed for reply in replies] == [None, None, None, 5]


def test_members_poll_what_they_own_and_go_on_after_a_new_deal(log: Log) -> None:
    first, second = joined(log, "a", 7), joined(log, "b", 8)
    assert [poll(log, first).partition for _ in range(3)] == [0, 2, 0]
    assert [poll(log, second).partition for _ in range(2)] == [1, 1]
    log.engine.disconnected(second, log.now)
    assert [poll(log, first).partition for _ in range(3)] == [1, 2, 0]


def test_a_member_without_partitions_reads_nothing(log: Log) -> None:
    clients = [joined(log, member, number) for number, member in enumerate("abcd", start=7)]
    reply = poll(log, clients[3])
    assert (reply.partition, reply.slices, reply.start_offset) == (ASSIGNED, [], 0)
    assert (reply.high_watermark, reply.committed) == (0, None)


def test_a_group_is_polled_by_number_too(log: Log) -> None:
    log.ask(CreateGroup("t", "g", 5))
    client = joined(log)
    reply = log.ask(Fetch("t", ASSIGNED, group_number=5, auto_commit=True), client)
    assert reply.partition == 0
    assert log.ask(FetchOffset("t", "g", 0)).offset == 5
    log.ask(Fetch("t", 0, kind=OffsetKind.CONSUMER, group_number=5, auto_commit=True), client)
    assert log.ask(FetchOffset("t", "5", 0, kind=OffsetKind.CONSUMER)).offset == 5


def test_who_has_not_joined_is_assigned_nothing(log: Log) -> None:
    joined(log)
    assert log.code(Fetch("t", ASSIGNED, group="g")) is ErrorCode.UNKNOWN_MEMBER
    assert log.code(Fetch("t", ASSIGNED, group="x")) is ErrorCode.UNKNOWN_GROUP
    assert log.code(Fetch("x", ASSIGNED, group="g")) is ErrorCode.UNKNOWN_TOPIC
    assert log.code(Fetch("t", ASSIGNED)) is ErrorCode.UNKNOWN_PARTITION
    log.ask(JoinGroup("t", "g", "h"))
    assert log.code(Fetch("t", ASSIGNED, group="g")) is ErrorCode.UNKNOWN_MEMBER
    consumer = Fetch("t", ASSIGNED, group="g", kind=OffsetKind.CONSUMER)
    assert log.code(consumer) is ErrorCode.UNKNOWN_PARTITION


def test_a_topic_without_partitions_is_named_as_such(log: Log) -> None:
    client = joined(log)
    log.ask(RemovePartitions("t", 3))
    assert log.code(Fetch("t", ASSIGNED, group="g"), client) is ErrorCode.NO_PARTITIONS


def test_a_poll_waits_until_its_generation_is_durable(log: Log) -> None:
    client = Client(7, "iggy")
    log.hand(JoinGroup("t", "g", "m", bound=True), client)
    outcome = log.hand(Fetch("t", ASSIGNED, group="g"), client)
    log.work()
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_a_read_that_ends_in_another_generation_gives_and_commits_nothing() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a", b"b")
    client = joined(log)
    request = Fetch("t", ASSIGNED, whence=Whence.COMMITTED, group="g", auto_commit=True)
    outcome = log.hand(request, client)
    log.ask(JoinGroup("t", "g", "before"))
    log.work()
    reply: Any = outcome.reply
    assert (reply.partition, reply.slices, reply.next_offset) == (0, [], 0)
    assert log.ask(FetchOffset("t", "g", 0)).offset is None


def test_a_long_poll_of_a_member_that_lost_its_partition_gives_nothing() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    client = joined(log)
    outcome = log.hand(Fetch("t", ASSIGNED, group="g", wait_us=60_000_000), client)
    log.ask(JoinGroup("t", "g", "before"))
    log.put("t", b"a")
    assert outcome.ready
    assert outcome.reply.slices == []  # type: ignore[union-attr]


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("wait_us", [0, 1_000_000])
def test_where_compaction_left_nothing_up_to_a_batchs_end_reading_goes_on_behind_it(
    blocking: bool, wait_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.core.reader.READ_BYTES_MIN", 1)
    store = MemoryStore(blocking_reads=blocking)
    log = Log(store)
    log.put("t", b"0", b"1", b"2")
    log.put("t", b"3")
    stored = store._readable.logs[1, 0]
    stored[0] = select(stored[0], [0], 3)
    assert log.read("t", 1, bytes_max=1, wait_us=wait_us) == [b"3"]
