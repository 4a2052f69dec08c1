"""Produce: where records go and what is refused."""

from __future__ import annotations

import pytest

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    Acks,
    ByHash,
    CreateNamespace,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Fetch,
    Produce,
    Produced,
    ProducedMany,
    ProduceMany,
    RemovePartitions,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from dragoman.core.store import StoreOverloaded
from support.log import Log, batch


def many(*keyed: tuple[bytes, bytes, int], topic: str = "t", acks: Acks = Acks.ALL) -> ProduceMany:
    """A run of (key, value, hash) records."""
    keys, values, hashes = zip(*keyed, strict=True)
    return ProduceMany(topic, values, keys, hashes, Origin.V1, acks=acks, create_partitions=3)


@pytest.fixture
def log() -> Log:
    made = Log()
    made.ask(CreateTopic("t", 3))
    return made


def test_offsets_follow_each_other_within_a_partition(log: Log) -> None:
    assert log.ask(Produce("t", batch(b"a", b"b"), 1)) == Produced(1, 0, 2, 2)
    assert log.ask(Produce("t", batch(b"c"), 1)) == Produced(1, 2, 1, 3)
    assert log.ask(Produce("t", batch(b"d"), 2)) == Produced(2, 0, 1, 1)


def test_round_robin_begins_at_partition_0_and_takes_turns(log: Log) -> None:
    assert [log.ask(Produce("t", batch(b"x"))).partition for _ in range(5)] == [0, 1, 2, 0, 1]


def test_topics_take_turns_separately(log: Log) -> None:
    log.ask(CreateTopic("u", 2))
    log.ask(Produce("t", batch(b"x")))
    assert log.ask(Produce("u", batch(b"x"))).partition == 0


def test_turns_go_on_when_partitions_are_removed(log: Log) -> None:
    for _ in range(2):
        log.ask(Produce("t", batch(b"x")))
    log.ask(RemovePartitions("t", 2))
    assert [log.ask(Produce("t", batch(b"x"))).partition for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("value", [0, 1, 5, 2**64 - 1, -1, -(2**63)])
def test_a_hash_chooses_the_partition_modulo_their_number(log: Log, value: int) -> None:
    assert log.ask(Produce("t", batch(b"x"), ByHash(value))).partition == value % 3


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Produce("t", batch(b"x"), 3), ErrorCode.UNKNOWN_PARTITION),
        (Produce("t", batch(b"x"), -1), ErrorCode.UNKNOWN_PARTITION),
        (Produce("u", batch(b"x")), ErrorCode.UNKNOWN_TOPIC),
        (Produce(9, batch(b"x"), create_partitions=3), ErrorCode.UNKNOWN_TOPIC),
        (Produce("a b", batch(b"x"), create_partitions=3), ErrorCode.INVALID_NAME),
        (Produce("\udcff", batch(b"x"), create_partitions=3), ErrorCode.INVALID_NAME),
        (
            Produce("t", batch(b"x"), namespace="n", create_partitions=3),
            ErrorCode.UNKNOWN_NAMESPACE,
        ),
        (Produce("u", batch(b"x"), create_partitions=1 << 40), ErrorCode.INVALID_PARTITION_COUNT),
        (Produce("t", RecordBatch(0, VarColumn.of([]), origin=0), 0), ErrorCode.EMPTY_BATCH),
        (
            Produce(
                "t",
                RecordBatch(2, VarColumn.of([b"", b""]), origin=1, base_sequence=2**64 - 1),
                0,
            ),
            ErrorCode.MALFORMED,
        ),
        (ProduceMany("u", [b"v"], [b"k"], [0], 0), ErrorCode.UNKNOWN_TOPIC),
        (ProduceMany("t", [], [], [], 0), ErrorCode.EMPTY_BATCH),
    ],
)
def test_what_cannot_be_written_is_refused(
    log: Log, request_: Produce | ProduceMany, code: ErrorCode
) -> None:
    assert log.code(request_) is code


def test_a_topic_without_partitions_takes_nothing(log: Log) -> None:
    log.ask(CreateTopic("empty", 0))
    for route in (0, ByHash(1)):
        assert log.code(Produce("empty", batch(b"x"), route)) is ErrorCode.NO_PARTITIONS
    assert log.code(Produce("empty", batch(b"x"))) is ErrorCode.NO_PARTITIONS
    assert log.code(many((b"k", b"v", 1), topic="empty")) is ErrorCode.NO_PARTITIONS


def test_a_missing_topic_is_made_where_the_request_says_so(log: Log) -> None:
    log.ask(Produce("new", batch(b"x"), create_partitions=4))
    assert len(log.ask(DescribeTopic("new")).topic.partitions) == 4


def test_a_topic_is_made_in_a_namespace_that_exists(log: Log) -> None:
    log.ask(CreateNamespace("n"))
    log.ask(Produce("new", batch(b"x"), namespace="n", create_partitions=1))
    assert log.ask(DescribeTopic("new", "n")).topic.namespace == "n"


def test_a_record_above_the_limit_is_refused_with_its_size(log: Log) -> None:
    limit = EngineOptions().record_bytes_max
    failure = log.refused(Produce("t", batch(bytes(limit + 1)), 0))
    assert failure.code is ErrorCode.RECORD_TOO_LARGE
    assert failure.facts == {"size": limit + 1, "limit": limit}


def test_value_key_and_headers_count_together_for_each_record_alone() -> None:
    log = Log(record_bytes_max=100)
    log.ask(CreateTopic("t", 1))
    log.ask(Produce("t", batch(bytes(60), bytes(70), keys=[bytes(40), bytes(30)]), 0))
    failure = log.refused(Produce("t", batch(b"", bytes(61), keys=[b"", bytes(40)]), 0))
    assert failure.code is ErrorCode.RECORD_TOO_LARGE
    assert failure.facts == {"size": 101, "limit": 100}


def test_a_request_above_the_limit_is_refused_whole_and_makes_no_topic() -> None:
    log = Log(request_bytes_max=4000)
    log.ask(CreateTopic("t", 1))
    log.ask(Produce("t", batch(*[bytes(30)] * 100), 0))
    failure = log.refused(Produce("u", batch(*[bytes(40)] * 100), create_partitions=1))
    assert failure.code is ErrorCode.BATCH_TOO_LARGE
    assert failure.facts == {"size": 4472, "limit": 4000}
    assert log.refused(DescribeTopic("u")).code is ErrorCode.UNKNOWN_TOPIC


def test_what_records_take_beside_their_values_counts_for_the_request() -> None:
    log = Log(request_bytes_max=4000)
    log.ask(CreateTopic("t", 1))
    failure = log.refused(Produce("t", batch(*[b""] * 1000), 0))
    assert failure.code is ErrorCode.BATCH_TOO_LARGE


def test_a_batch_above_the_limit_becomes_several_and_one_answer(log: Log) -> None:
    value = bytes(3 << 20)
    reply = log.ask(Produce("t", batch(*[value] * 15, b"end"), 0))
    assert reply == Produced(0, 0, 16, 16)
    slices = log.ask(Fetch("t", 0, bytes_max=1 << 30)).slices
    assert len(slices) == 2
    assert sum([piece.record_count for piece in slices]) == 16
    assert log.read("t", 15) == [b"end"]


def test_a_batch_that_becomes_several_is_taken_whole_or_not_at_all() -> None:
    log = Log(MemoryStore(bytes_max=40 << 20))
    log.ask(CreateTopic("t", 1))
    failure = log.refused(Produce("t", batch(*[bytes(3 << 20)] * 15), 0))
    assert failure.code is ErrorCode.STORAGE_FULL
    assert log.ask(DescribeTopic("t")).topic.partitions[0].log_end_offset == 0


def test_large_headers_make_a_batch_split_too(log: Log) -> None:
    headers = VarColumn.of([bytes(12 << 20)] * 3)
    large = RecordBatch(3, VarColumn.of([b"a", b"b", b"c"]), origin=1, headers=headers)
    log.ask(Produce("t", large, 0))
    assert len(log.ask(Fetch("t", 0)).slices) == 2


def test_a_run_of_keyed_records_goes_to_the_partitions_of_its_hashes(log: Log) -> None:
    log.ask(Produce("t", batch(b"first"), 1))
    reply = log.ask(many((b"k1", b"a", 1), (b"k2", b"b", 2), (b"k1", b"c", 4)))
    assert reply == ProducedMany([Produced(1, 1, 2, 3), Produced(2, 0, 1, 1)], [0, 1, 0])
    assert log.read("t", partition=1) == [b"first", b"a", b"c"]
    assert log.read("t", partition=2) == [b"b"]


def test_a_run_is_answered_only_when_all_of_it_is_durable(log: Log) -> None:
    outcome = log.hand(many((b"k1", b"a", 1), (b"k2", b"b", 2)))
    assert not outcome.ready
    log.flush()
    assert outcome.ready


def test_a_run_without_acks_is_answered_at_once(log: Log) -> None:
    assert log.hand(many((b"k1", b"a", 1), acks=Acks.NONE)).ready


def test_a_run_names_the_parts_that_found_no_room() -> None:
    log = Log(MemoryStore(bytes_max=300))
    log.ask(CreateTopic("t", 3))
    parts = log.ask(many((b"k1", bytes(90), 1), (b"k2", bytes(200), 2))).parts
    assert isinstance(parts[0], Produced)
    assert isinstance(parts[1], Failure)
    assert parts[1].code is ErrorCode.STORAGE_FULL


class Busy(MemoryStore):
    """A store with room, but with a budget for one batch of memory."""

    def append_batch(self, topic_id: int, partition: int, batch: RecordBatch) -> int:
        if self._pending:
            raise StoreOverloaded("too much waits for the disk")
        return super().append_batch(topic_id, partition, batch)


def test_a_spent_budget_is_told_as_overload_and_passes() -> None:
    log = Log(Busy())
    log.ask(CreateTopic("t", 3))
    log.hand(Produce("t", batch(b"a"), 0))
    refused = log.hand(Produce("t", batch(b"b"), 0))
    assert refused.reply == Failure(ErrorCode.OVERLOADED, "too much waits for the disk")
    log.flush()
    assert log.ask(Produce("t", batch(b"b"), 0)).base_offset == 1


def test_a_run_names_the_parts_that_met_a_spent_budget() -> None:
    log = Log(Busy())
    log.ask(CreateTopic("t", 3))
    parts = log.ask(many((b"k1", b"a", 1), (b"k2", b"b", 2))).parts
    assert isinstance(parts[0], Produced)
    assert isinstance(parts[1], Failure)
    assert parts[1].code is ErrorCode.OVERLOADED


def test_a_run_of_which_nothing_was_taken_is_answered_at_once() -> None:
    log = Log(MemoryStore(bytes_max=50))
    log.ask(CreateTopic("t", 3))
    outcome = log.hand(many((b"k1", b"a", 1)))
    assert outcome.ready


def test_a_run_into_a_topic_that_is_deleted_meanwhile_says_so(log: Log) -> None:
    outcome = log.hand(many((b"k1", b"a", 1), (b"k2", b"b", 2)))
    log.hand(DeleteTopic("t"))
    log.flush()
    parts = outcome.reply.parts  # type: ignore[union-attr]
    assert [part.code for part in parts] == [ErrorCode.UNKNOWN_TOPIC] * 2


def test_a_run_is_failed_by_a_failing_flush(log: Log) -> None:
    outcome = log.hand(many((b"k1", b"a", 1)))
    log.flush(OSError(5, "I/O error"))
    assert isinstance(outcome.reply, Failure)
