"""Building an index: from memory and in threads, while records come, over damage, within limits."""

from __future__ import annotations

import pytest

from dragoman.core import calls
from dragoman.core.calls import DeleteTopic, EventAppended, Produce, VersionRead
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events.load import RECORDS_HERE_MAX
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from support.streams import TOPIC, Streams, published

K, J = b"k", b"j"


def cold(log: Streams, **options: int) -> Streams:
    """The same log after a restart, all reads of which block."""
    again = log.restarted(**options)
    again.store.blocking_reads = True
    return again


def conflict(reply: object) -> dict[str, int | str]:
    refused = failure(reply)
    assert refused.code is ErrorCode.VERSION_CONFLICT
    return refused.facts


def failure(reply: object) -> Failure:
    assert isinstance(reply, Failure)
    return reply


def test_an_index_is_built_once_by_whoever_comes_first() -> None:
    log = Streams()
    log.add(K, 1)
    log = log.restarted()
    assert log.statistics["event_indexes_built"] == 0
    log.version(K)
    log.add(K, 2)
    log.stream(K)
    assert log.statistics["event_indexes_built"] == 1


def test_much_in_memory_is_looked_through_in_a_thread() -> None:
    log = Streams()
    log.ask(Produce(TOPIC, published(*[(K, n) for n in range(1, RECORDS_HERE_MAX + 2)]), 0))
    log = log.restarted()
    asked = log.hand(log.request(calls.ReadVersion, K))
    assert not asked.ready
    assert log.work() == 1
    assert asked.reply == VersionRead(RECORDS_HERE_MAX + 1)


def test_an_engine_that_closes_reads_no_further_for_an_index() -> None:
    log = Streams()
    log.add(K, 1)
    log = cold(log)
    asked = log.hand(log.request(calls.ReadVersion, K))
    log.engine.begin_close(log.now)
    assert log.work() == 1
    assert failure(asked.reply).code is ErrorCode.SHUTTING_DOWN
    assert log.work() == 0


def test_what_is_not_flushed_when_the_reading_begins_is_waited_for() -> None:
    log = Streams()
    log.publish((J, 1))
    log = log.restarted()
    log.hand(Produce(TOPIC, published((K, 1)), 0))
    asked = log.begin(K, 2)
    assert not asked.ready
    log.flush()
    log.flush()
    assert asked.reply == EventAppended(2, 2, 0)


def test_what_comes_during_the_reading_is_taken_once() -> None:
    log = Streams()
    log.publish((J, 1))
    log = log.restarted()
    log.hand(Produce(TOPIC, published((K, 1)), 0))
    asked = log.hand(log.request(calls.ReadVersion, K))
    log.hand(Produce(TOPIC, published((K, 2)), 0))
    log.flush()
    assert asked.reply == VersionRead(2)
    log.trim(1)
    assert log.version(K) == 2
    assert log.statistics["event_indexes_built"] == 1


@pytest.mark.parametrize("before", [1, 2, -1])
def test_a_trim_during_the_reading_counts(before: int) -> None:
    log = Streams()
    log.publish((K, 1), (K, 5), (K, 2))
    log = cold(log)
    asked = log.hand(log.request(calls.ReadVersion, K))
    log.trim(before)
    log.work()
    log.work()
    log.work()
    assert asked.reply == VersionRead(log.restarted().version(K))


def test_damaged_records_are_told_and_not_read_again_for_each_request() -> None:
    log = Streams()
    log.add(K, 1)
    log.add(J, 1)
    log.add(K, 2)
    log = log.restarted()
    log.store.damaged[1, 0] = [(1, 1)]
    refused = log.add(K, 3)
    assert refused.code is ErrorCode.DAMAGED
    assert (refused.facts["first"], refused.facts["last"]) == (1, 1)
    assert failure(log.ask(log.request(calls.ReadVersion, J))).code is ErrorCode.DAMAGED
    assert log.statistics["event_indexes_built"] == 1


def test_damage_that_was_deleted_is_forgotten() -> None:
    log = Streams()
    log.add(K, 1)
    log.add(K, 2)
    log = log.restarted()
    log.store.damaged[1, 0] = [(0, 0)]
    assert log.add(K, 3).code is ErrorCode.DAMAGED
    log.trim(1)
    log.store.damaged.clear()
    assert log.add(K, 3) == EventAppended(3, 2, 0)


def test_damage_met_in_a_thread_is_told() -> None:
    log = Streams()
    log.add(K, 1)
    log = cold(log)
    log.store.damaged[1, 0] = [(0, 0)]
    assert log.add(K, 2).code is ErrorCode.DAMAGED


def test_a_reading_that_fails_is_tried_again_by_the_next_request() -> None:
    log = Streams()
    log.add(K, 1)
    log = cold(log)
    asked = log.hand(log.request(calls.ReadVersion, K))
    log.work(OSError("once"))
    assert failure(asked.reply).code is ErrorCode.STORAGE_FAILED
    assert log.version(K) == 1


def test_a_partition_whose_index_is_too_large_serves_no_events() -> None:
    log = Streams()
    log.ask(Produce(TOPIC, published(*[(b"%d" % n, 1) for n in range(20)]), 0))
    log = log.restarted(event_index_bytes_max=2000)
    refused = failure(log.ask(log.request(calls.ReadVersion, K)))
    assert refused.code is ErrorCode.LIMIT_REACHED
    assert "event_index_bytes_max" in refused.detail
    assert log.read(TOPIC)
    log.add(K, 1)
    assert log.statistics["event_indexes_built"] == 1
    log.trim(-1)
    assert log.version(K) == 0


def test_a_topic_deleted_while_it_is_read_is_told() -> None:
    log = Streams()
    log.add(K, 1)
    log = cold(log)
    asked = log.hand(log.request(calls.ReadVersion, K))
    log.ask(DeleteTopic(TOPIC))
    log.work()
    assert failure(asked.reply).code is ErrorCode.UNKNOWN_TOPIC


def test_a_store_that_fails_during_the_reading_is_told() -> None:
    log = Streams(store=MemoryStore())
    log.publish((J, 1))
    log = log.restarted()
    log.hand(Produce(TOPIC, published((K, 1)), 0))
    asked = log.begin(K, 2)
    log.flush(OSError("gone"))
    assert failure(asked.reply).code is ErrorCode.STORAGE_FAILED


# ---------------------------------------------------------------- who waits


def test_who_leaves_while_an_index_is_built_is_forgotten() -> None:
    log = Streams()
    log.add(K, 1)
    log = Streams(store=log.store.restarted(), create=False)
    log.store.blocking_reads = True
    gone, stays = Client(7, "test"), Client(8, "test")
    left = log.hand(log.request(calls.ReadVersion, K), gone)
    asked = log.hand(log.request(calls.ReadVersion, K), stays)
    log.engine.disconnected(gone, log.now)
    log.work()
    assert (left.ready, asked.reply) == (False, VersionRead(1))


def test_requests_on_a_partition_wait_for_one_reading_and_go_on_in_order() -> None:
    log = Streams()
    log.add(K, 1)
    log = log.restarted()
    log.store.blocking_reads = True
    begun = [log.begin(K, version) for version in (2, 3, 3)]
    assert log.work() == 1
    log.flush()
    *appended, refused = [outcome.reply for outcome in begun]
    assert appended == [EventAppended(2, 1, 0), EventAppended(3, 2, 0)]
    assert conflict(refused) == {"current": 3, "requested": 3}
    assert log.statistics["event_indexes_built"] == 1


def test_so_much_may_wait_to_be_written() -> None:
    log = Streams()
    log.add(K, 1)
    log = log.restarted()
    log.store.blocking_reads = True
    large = bytes(24 * 1024 * 1024)
    gone = Client(7, "test")
    begun = [log.hand(log.adding(K, version, large), gone) for version in (2, 3)]
    refused = log.hand(log.adding(K, 4, large))
    assert isinstance(refused.reply, Failure)
    assert refused.reply.code is ErrorCode.OVERLOADED
    log.engine.disconnected(gone, log.now)
    last = log.hand(log.adding(K, 2, large))
    log.work()
    log.flush()
    assert not any(outcome.ready for outcome in begun)
    assert last.reply == EventAppended(2, 1, 0)
