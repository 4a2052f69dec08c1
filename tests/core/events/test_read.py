"""Reading events out of stored batches: which slices, copies, limits, and what went meanwhile."""

from __future__ import annotations

from dragoman.core import calls
from dragoman.core.calls import DeleteTopic, Produce
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events.read import COPIES_HERE_MAX
from support.streams import TOPIC, Streams, published, versions

K, J = b"k", b"j"


def filled(*rows: tuple[bytes | None, int]) -> Streams:
    """These records in one batch."""
    log = Streams()
    log.ask(Produce(TOPIC, published(*rows), 0))
    return log


def test_neighbours_are_one_slice_of_the_stored_batch() -> None:
    log = filled((J, 1), (K, 1), (K, 2), (J, 2), (K, 3))
    slices = log.stream(K).slices
    assert [(piece.first, piece.last) for piece in slices] == [(1, 3), (4, 5)]
    assert slices[0].batch is slices[1].batch
    assert slices[0].batch.count == 5


def test_a_small_part_of_a_batch_is_copied_out_of_it() -> None:
    log = filled(*[(J, n) for n in range(1, 9)], (K, 1), (J, 9), (K, 2))
    (piece,) = log.stream(K).slices
    assert (piece.batch.count, piece.first, piece.last) == (2, 0, 2)
    assert [piece.batch.offset_at(0), piece.batch.offset_at(1)] == [8, 10]
    assert versions([piece]) == [1, 2]


def scattered(batches: int) -> Streams:
    """Each batch holds one event of K and two of others, and a record without a version."""
    log = Streams()
    for version in range(1, batches + 1):
        rows = ((J, version), (K, version), (b"i", version), (None, 0))
        log.ask(Produce(TOPIC, published(*rows), 0))
    return log


def test_what_is_copied_out_of_several_batches_is_one_batch_with_its_own_offsets() -> None:
    (piece,) = scattered(COPIES_HERE_MAX).stream(K).slices
    read = [(record.offset, record.key) for record in piece.batch.records(*piece[1:])]
    assert read == [(offset, K) for offset in range(1, 4 * COPIES_HERE_MAX, 4)]
    assert piece.batch.next_offset == read[-1][0] + 1


def test_what_lies_in_many_batches_is_copied_in_a_thread() -> None:
    count = COPIES_HERE_MAX + 1
    log = scattered(count)
    log.version(K)
    asked = log.hand(log.request(calls.ReadEvents, K))
    assert not asked.ready
    assert log.work() == 1
    assert isinstance(asked.reply, calls.EventsRead)
    assert versions(asked.reply.slices) == list(range(1, count + 1))


def test_bytes_are_counted_over_batches() -> None:
    log = Streams()
    for version in range(1, 9):
        log.add(K, version, b"x" * 1000)
    assert log.stream(K, bytes_max=3500).count == 3
    assert log.stream(K, 4, bytes_max=3500).count == 3


def test_events_are_read_where_reading_blocks() -> None:
    log = Streams()
    for version in range(1, 6):
        log.add(K, version, b"x" * 40_000)
        log.add(J, version, b"x" * 40_000)
    log = log.restarted()
    log.store.blocking_reads = True
    outcome = log.hand(log.request(calls.ReadEvents, K))
    for _ in range(20):
        log.work()
    assert isinstance(outcome.reply, calls.EventsRead)
    assert versions(outcome.reply.slices) == [1, 2, 3, 4, 5]


def test_what_is_deleted_while_it_is_read_is_left_out() -> None:
    log = Streams()
    for version in (1, 2, 3):
        log.add(K, version, b"x" * 70_000)
    log.store.blocking_reads = True
    outcome = log.hand(log.request(calls.ReadEvents, K))
    log.trim(2)
    for _ in range(4):
        log.work()
    assert isinstance(outcome.reply, calls.EventsRead)
    assert versions(outcome.reply.slices) in ([1, 3], [3])


def test_a_topic_deleted_while_it_is_read_is_told() -> None:
    log = Streams()
    log.add(K, 1)
    log.store.blocking_reads = True
    outcome = log.hand(log.request(calls.ReadEvents, K))
    log.ask(DeleteTopic(TOPIC))
    log.work()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.UNKNOWN_TOPIC


def test_damage_ends_what_is_read_and_is_told_to_who_begins_there() -> None:
    log = Streams()
    for version in (1, 2, 3):
        log.add(K, version)
    log.store.damaged[1, 0] = [(1, 1)]
    assert log.versions(K) == [1]
    refused = log.stream(K, 2)
    assert refused.code is ErrorCode.DAMAGED
    assert log.versions(K, 3) == [3]
