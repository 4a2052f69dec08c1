"""Idempotent producers: what is new, what is a duplicate, and what is refused."""

from __future__ import annotations

from array import array
from copy import copy
from typing import Any

import pytest

from dragoman.core import idempotence
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    Acks,
    CreateTopic,
    DeleteTopic,
    Produce,
    Produced,
    RemovePartitions,
    ReportReplica,
    TopicConfig,
)
from dragoman.core.catalog import RANGES_MAX
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from support.log import Log

IDLE_S = 1800


def sent(
    sequence: int | None, *values: bytes, producer: bytes = b"p", epoch: int | None = 5
) -> RecordBatch:
    """A batch of one producer."""
    return RecordBatch(
        len(values),
        VarColumn.of(values),
        origin=Origin.CURSUS,
        producers=(producer,),
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def mixed(*records: tuple[bytes, int, int]) -> RecordBatch:
    """A batch of (producer, epoch, sequence), each with its own text as value."""
    names = tuple(dict.fromkeys([record[0] for record in records]))
    return RecordBatch(
        len(records),
        VarColumn.of([b"%b-%d-%d" % record for record in records]),
        origin=Origin.CURSUS,
        producers=names,
        producer_index=array("I", [names.index(record[0]) for record in records]),
        epochs=array("q", [record[1] for record in records]),
        sequences=array("Q", [record[2] for record in records]),
    )


def once(batch: RecordBatch, partition: int = 0, acks: Acks = Acks.LEADER) -> Produce:
    """An idempotent produce."""
    return Produce("t", batch, partition, acks=acks, idempotent=True)


@pytest.fixture
def log() -> Log:
    made = Log()
    made.ask(CreateTopic("t", 2))
    return made


def at(log: Log, batch: RecordBatch, partition: int = 0) -> tuple[int, int, int | None]:
    """Where a produce says that its records are."""
    reply = log.ask(once(batch, partition))
    assert isinstance(reply, Produced), reply
    return reply.base_offset, reply.count, reply.last_offset


def test_a_batch_that_follows_is_appended(log: Log) -> None:
    assert at(log, sent(1, b"a", b"b")) == (0, 2, None)
    assert at(log, sent(3, b"c")) == (2, 1, None)
    assert log.read("t") == [b"a", b"b", b"c"]


def test_a_batch_that_was_appended_is_answered_with_its_offsets_and_not_appended(log: Log) -> None:
    log.put("t", b"x")
    at(log, sent(1, b"a", b"b"))
    at(log, sent(3, b"c"))
    assert at(log, sent(1, b"a", b"b")) == (1, 2, 2)
    assert at(log, sent(2, b"b", b"c")) == (2, 2, 3)
    assert log.read("t") == [b"x", b"a", b"b", b"c"]
    assert log.engine.statistics()["duplicates"] == 4


def test_a_new_producer_begins_at_any_sequence(log: Log) -> None:
    assert at(log, sent(700, b"a")) == (0, 1, None)
    assert at(log, sent(701, b"b")) == (1, 1, None)


def test_a_gap_is_refused_and_told(log: Log) -> None:
    at(log, sent(1, b"a"))
    failure = log.refused(once(sent(3, b"c")))
    assert failure.code is ErrorCode.OUT_OF_ORDER_SEQUENCE
    assert failure.facts == {"expected": 2, "got": 3, "producer": "p"}
    assert log.engine.statistics()["sequence_gaps"] == 1
    assert log.read("t") == [b"a"]


def test_what_lies_before_the_session_s_first_sequence_is_never_called_a_duplicate(
    log: Log,
) -> None:
    at(log, sent(5, b"e"))
    assert log.refused(once(sent(4, b"d"))).facts["expected"] == 6
    assert log.refused(once(sent(4, b"d", b"e", b"f"))).facts["got"] == 4


@pytest.mark.parametrize(("sequence", "epoch"), [(9, 5), (3, 4)])
def test_a_refusal_waits_for_the_records_that_it_tells_of(
    log: Log, sequence: int, epoch: int
) -> None:
    log.hand(once(sent(1, b"a", b"b")))
    refused = log.hand(once(sent(sequence, b"c", epoch=epoch)))
    assert not refused.ready
    log.flush()
    assert isinstance(refused.reply, Failure)


def test_a_lower_epoch_is_refused_and_told(log: Log) -> None:
    at(log, sent(1, b"a"))
    failure = log.refused(once(sent(2, b"b", epoch=4)))
    assert failure.code is ErrorCode.STALE_PRODUCER_EPOCH
    assert failure.facts == {"current": 5, "requested": 4, "producer": "p"}
    assert log.engine.statistics()["stale_producer_epochs"] == 1


def test_a_higher_epoch_is_a_new_session_at_any_sequence(log: Log) -> None:
    at(log, sent(10, b"a"))
    assert at(log, sent(1, b"b", epoch=6)) == (1, 1, None)
    assert at(log, sent(1, b"b", epoch=6)) == (1, 1, 1)
    assert log.code(once(sent(11, b"c"))) is ErrorCode.STALE_PRODUCER_EPOCH


def test_an_epoch_that_is_absent_counts_as_0(log: Log) -> None:
    at(log, sent(1, b"a", epoch=None))
    assert at(log, sent(1, b"a", epoch=0)) == (0, 1, 0)


def test_of_a_batch_that_is_partly_known_only_the_rest_is_appended(log: Log) -> None:
    at(log, sent(1, b"a", b"b"))
    assert at(log, sent(2, b"b", b"c", b"d")) == (1, 3, 3)
    assert log.read("t") == [b"a", b"b", b"c", b"d"]


def test_a_known_beginning_and_its_rest_may_lie_apart(log: Log) -> None:
    at(log, sent(1, b"a"))
    log.put("t", b"x", b"y")
    assert at(log, sent(1, b"a", b"b", b"c")) == (0, 3, 4)
    assert at(log, sent(1, b"a", b"b", b"c")) == (0, 3, 4)
    assert log.read("t") == [b"a", b"x", b"y", b"b", b"c"]


def test_producers_and_partitions_are_apart(log: Log) -> None:
    for producer in (b"p", b"q"):
        for partition in (0, 1):
            at(log, sent(1, producer, producer=producer), partition)
    assert log.read("t") == log.read("t", partition=1) == [b"p", b"q"]


@pytest.mark.parametrize(
    "batch",
    [
        sent(None, b"a"),
        sent(0, b"a"),
        sent(1, b"a", producer=b""),
        RecordBatch(1, VarColumn.of([b"a"]), origin=Origin.CURSUS, base_sequence=1),
        mixed((b"", 0, 1), (b"p", 0, 0)),
    ],
)
def test_records_without_producer_or_sequence_are_never_checked(
    log: Log, batch: RecordBatch
) -> None:
    for _ in range(2):
        assert log.ask(once(copy(batch))).last_offset is None
    assert log.engine.statistics()["idempotent_producers"] == 0
    assert len(log.read("t")) == 2 * batch.count


def test_a_sequence_of_0_is_left_out_of_its_run(log: Log) -> None:
    assert at(log, sent(0, b"a", b"b")) == (0, 2, None)
    assert at(log, sent(1, b"b")) == (1, 1, 1)


def test_without_the_flag_nothing_is_checked_but_where_the_topic_says_so(log: Log) -> None:
    log.ask(CreateTopic("i", 1, config=TopicConfig(idempotent=True)))
    for topic, kept in (("t", 2), ("i", 1)):
        for _ in range(2):
            log.ask(Produce(topic, sent(1, b"a"), 0))
        assert len(log.read(topic)) == kept


# ---------------------------------------------------------------- runs


def test_each_producer_of_a_batch_is_checked_by_itself(log: Log) -> None:
    at(log, mixed((b"p", 1, 1), (b"p", 1, 2), (b"q", 1, 1)))
    again = mixed((b"p", 1, 1), (b"p", 1, 2), (b"q", 1, 2), (b"p", 1, 3))
    assert at(log, again) == (0, 4, 4)
    assert log.read("t") == [b"p-1-1", b"p-1-2", b"q-1-1", b"q-1-2", b"p-1-3"]


def test_what_is_new_around_a_duplicate_is_appended(log: Log) -> None:
    at(log, mixed((b"q", 1, 1)))
    batch = mixed((b"p", 1, 1), (b"q", 1, 1), (b"p", 1, 2))
    assert at(log, batch) == (1, 3, 2)
    assert at(log, batch) == (1, 3, 2)
    assert log.read("t") == [b"q-1-1", b"p-1-1", b"p-1-2"]


def test_one_bad_run_refuses_the_whole_request(log: Log) -> None:
    at(log, mixed((b"q", 2, 1)))
    for records in (
        [(b"p", 1, 1), (b"q", 2, 3)],
        [(b"p", 1, 1), (b"q", 1, 2)],
        [(b"p", 1, 1), (b"p", 1, 3)],
        [(b"p", 1, 1), (b"q", 2, 2), (b"p", 1, 1)],
    ):
        assert log.code(once(mixed(*records))) in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE,
            ErrorCode.STALE_PRODUCER_EPOCH,
        )
    assert log.read("t") == [b"q-2-1"]
    assert log.engine.statistics()["idempotent_producers"] == 1


def test_an_epoch_may_rise_within_a_batch(log: Log) -> None:
    at(log, mixed((b"p", 1, 8), (b"p", 2, 9), (b"p", 2, 10)))
    assert at(log, mixed((b"p", 2, 10), (b"p", 2, 11))) == (2, 2, 3)


def test_producers_take_turns_only_so_often_in_a_request(log: Log) -> None:
    turns = [(b"pq"[at % 2 : at % 2 + 1], 1, at // 2 + 1) for at in range(idempotence.RUNS_MAX + 1)]
    assert log.code(once(mixed(*turns))) is ErrorCode.BATCH_TOO_LARGE
    assert at(log, mixed(*turns[:-1])) == (0, idempotence.RUNS_MAX, None)


def test_a_name_that_is_too_long_is_refused(log: Log) -> None:
    name = b"n" * (idempotence.NAME_BYTES_MAX + 1)
    assert log.code(once(sent(1, b"a", producer=name))) is ErrorCode.INVALID_NAME
    at(log, sent(1, b"a", producer=name[1:]))


def test_a_name_is_any_bytes(log: Log) -> None:
    at(log, sent(1, b"a", producer=b"\xff\0"))
    assert at(log, sent(1, b"a", producer=b"\xff\0")) == (0, 1, 0)
    assert log.refused(once(sent(9, b"a", producer=b"\xff\0"))).facts["producer"] == "\ufffd\0"


# ---------------------------------------------------------------- answers


def test_a_duplicate_is_answered_no_sooner_than_its_original(log: Log) -> None:
    first, second = log.hand(once(sent(1, b"a"))), log.hand(once(sent(1, b"a")))
    assert not first.ready
    assert not second.ready
    log.flush()
    assert log.ready[-2:] == [first, second]
    assert second.reply == Produced(0, 0, 1, 1, 0)


def test_a_duplicate_of_what_is_durable_is_answered_at_once(log: Log) -> None:
    at(log, sent(1, b"a"))
    outcome = log.hand(once(sent(1, b"a")))
    assert outcome.ready
    assert outcome.reply == Produced(0, 0, 1, 1, 0)


def test_a_duplicate_without_acks_is_answered_at_once(log: Log) -> None:
    for _ in range(2):
        assert log.hand(once(sent(1, b"a"), acks=Acks.NONE)).ready


def test_a_duplicate_of_what_failed_fails(log: Log) -> None:
    log.hand(once(sent(1, b"a")))
    second = log.hand(once(sent(1, b"a")))
    log.flush(OSError(5, "gone"))
    assert second.reply.code is ErrorCode.STORAGE_FAILED  # type: ignore[union-attr]


def test_a_duplicate_with_acks_all_waits_for_the_replicas_of_its_original(log: Log) -> None:
    replicated = Log(in_sync_min=2)
    replicated.ask(CreateTopic("t", 1))
    replicated.hand(once(sent(1, b"a"), acks=Acks.ALL))
    replicated.flush()
    second = replicated.hand(once(sent(1, b"a"), acks=Acks.ALL))
    replicated.flush()
    assert not second.ready
    replicated.ask(ReportReplica("t", 0, 1, 0))
    assert second.ready
    assert second.reply == Produced(0, 0, 1, 1, 0)


def test_offsets_that_are_no_longer_known_are_minus_one(log: Log) -> None:
    for sequence in range(1, RANGES_MAX + 3):
        at(log, sent(sequence, b"a"))
        log.put("t", b"x")
    assert at(log, sent(1, b"a")) == (-1, 1, -1)
    assert at(log, sent(3, b"a")) == (4, 1, 4)


# ---------------------------------------------------------------- forgetting


def test_an_idle_producer_is_unknown_and_begins_anew(log: Log) -> None:
    at(log, sent(1, b"a"))
    log.now = log.now._replace(wall_us=log.now.wall_us + 1_000_000 * IDLE_S)
    assert at(log, sent(1, b"a")) == (0, 1, 0)
    log.now = log.now._replace(wall_us=log.now.wall_us + 1)
    assert at(log, sent(1, b"a")) == (1, 1, None)
    assert at(log, sent(1, b"a")) == (1, 1, 1)


@pytest.mark.parametrize("name", ["PRODUCERS_PER_TICK", "SCANNED_PER_TICK"])
def test_idle_producers_are_swept_a_few_at_a_time(log: Log, monkeypatch: Any, name: str) -> None:
    monkeypatch.setattr(idempotence, name, 1)
    for partition in (0, 1):
        for producer in (b"p", b"q"):
            at(log, sent(1, b"a", producer=producer), partition)
    log.pass_time(IDLE_S / 2)
    at(log, sent(2, b"b"), 1)
    log.pass_time(IDLE_S / 2 + 1)
    counts = []
    for _ in range(4):
        counts.append(log.engine.statistics()["idempotent_producers"])
        log.pass_time(0.05)
    assert counts == [2, 1, 1, 1]
    log.flush()
    assert list(Log(log.store.restarted()).store.catalog.topics[1].partitions[1].producers) == ["p"]


def test_a_sweep_stops_where_the_log_takes_nothing(log: Log) -> None:
    at(log, sent(1, b"a"))
    log.engine.begin_close(log.now)
    log.pass_time(2 * IDLE_S)
    assert log.engine.statistics()["idempotent_producers"] == 1


def test_the_idlest_make_room() -> None:
    log = Log(producers_max=2)
    log.ask(CreateTopic("t", 2))
    for name, partition in ((b"p", 0), (b"q", 1), (b"p", 0), (b"r", 0)):
        log.pass_time(1)
        state = log.store.catalog.topics[1].partitions[partition].producers.get(name.decode())
        at(log, sent(2 if state else 1, b"a", producer=name), partition)
    assert log.engine.statistics()["idempotent_producers"] == 2
    assert at(log, sent(1, b"a", producer=b"p"))[0] == 0
    assert at(log, sent(1, b"a", producer=b"q"), 1)[0] == 1


def test_producers_go_with_their_partition_and_topic(log: Log) -> None:
    at(log, sent(1, b"a"))
    at(log, sent(1, b"a"), 1)
    log.ask(RemovePartitions("t", 1))
    assert log.engine.statistics()["idempotent_producers"] == 1
    log.ask(DeleteTopic("t"))
    assert log.engine.statistics()["idempotent_producers"] == 0


# ---------------------------------------------------------------- restarts and large requests


def test_duplicates_are_known_after_a_restart(log: Log) -> None:
    log.put("t", b"x")
    at(log, sent(1, b"a", b"b"))
    again = Log(log.store.restarted())
    assert at(again, sent(1, b"a", b"b")) == (1, 2, 2)
    assert at(again, sent(2, b"b", b"c")) == (2, 2, 3)
    assert again.code(once(sent(9, b"d"))) is ErrorCode.OUT_OF_ORDER_SEQUENCE
    assert again.engine.statistics()["idempotent_producers"] == 1


def test_what_was_lost_in_a_crash_is_new_again(log: Log) -> None:
    at(log, sent(1, b"a"))
    log.hand(once(sent(2, b"b")))
    again = Log(log.store.restarted())
    assert at(again, sent(1, b"a", b"b")) == (0, 2, 1)
    assert again.read("t") == [b"a", b"b"]


def test_a_request_that_becomes_several_batches_is_remembered_whole(
    log: Log, monkeypatch: Any
) -> None:
    monkeypatch.setattr("dragoman.core.produce.BATCH_BYTES_MAX", 400)
    monkeypatch.setattr("dragoman.core.produce._BYTES_PLAIN", 100)
    values = [b"%03d" % n * 30 for n in range(20)]
    assert at(log, sent(1, *values)) == (0, 20, None)
    assert at(log, sent(11, *values[10:], b"more")) == (10, 11, 20)
    assert log.read("t") == [*values, b"more"]


def test_a_request_with_several_new_stretches_is_taken_whole_or_not_at_all() -> None:
    log = Log(MemoryStore(bytes_max=700))
    log.ask(CreateTopic("t", 1))
    at(log, mixed((b"q", 1, 1)))
    several = mixed(
        *[(b"p", 1, n) for n in range(1, 6)], (b"q", 1, 1), *[(b"r", 1, n) for n in range(1, 40)]
    )
    assert log.code(once(several)) is ErrorCode.STORAGE_FULL
    assert log.read("t") == [b"q-1-1"]
    assert log.engine.statistics()["idempotent_producers"] == 1
