"""Produce: offsets and timestamps assigned, batches handed to the store, the answer held until they
are durable."""

from __future__ import annotations

from operator import add, sub
from typing import TYPE_CHECKING

from dragoman.core.batch import BATCH_BYTES_MAX
from dragoman.core.buffering import Buffers
from dragoman.core.calls import Acks, Produced, ProducedMany
from dragoman.core.dealing import deal
from dragoman.core.dedupe import Dedupe
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.idempotence import Idempotence
from dragoman.core.outcome import Outcome
from dragoman.core.replication import check_leader
from dragoman.core.route import route
from dragoman.core.split import slice_batch, split_batch
from dragoman.core.store import StoreFull, StoreOverloaded

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Produce, ProduceMany
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.error import Failure
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.replication import Replicating
    from dragoman.core.store import Store
    from dragoman.core.topic import Topics
    from dragoman.core.waiting import Waiting

_NONE, _ALL = Acks.NONE, Acks.ALL
_SEQUENCES = 1 << 64
_BYTES_PLAIN, _COUNT_PLAIN = BATCH_BYTES_MAX // 4, 100_000
"""Below both, a batch without keys and headers is small enough without adding its columns up."""


class Producing:
    """Serves Produce and ProduceMany.

    Attributes:
        records, bytes: Appended since the start; bytes are values only.
        idempotence, dedupe: What is known of producers, and of payloads.
        buffers: Which partitions have more appended than may wait for the disk; None where that
            has no limit.
    """

    def __init__(
        self,
        options: EngineOptions,
        store: Store,
        directory: Directory,
        topics: Topics,
        replicating: Replicating,
        waiting: Waiting,
    ) -> None:
        self._needs_others = options.in_sync_min > 1
        self._record_bytes_max = options.record_bytes_max
        self._request_bytes_max = options.request_bytes_max
        self._bytes_small = min(options.record_bytes_max, options.request_bytes_max // 4)
        self._count_small = options.request_bytes_max // 320
        self._store = store
        self._directory = directory
        self._topics = topics
        self.idempotence = Idempotence(options, store, directory)
        self.dedupe = Dedupe(options)
        limit = options.partition_buffer_records
        self.buffers = Buffers(limit) if limit else None
        self._replicating = replicating
        self._waiting = waiting
        self.records = 0
        self.bytes = 0

    def produce(self, request: Produce, client: Client, now: Now) -> Outcome:
        """Appends the batch; answers once it is durable, at once without acks."""
        directory = self._directory
        if self._store.failure is not None or directory.closing:
            directory.check_writable()
        batch = request.batch
        self._check(batch)
        topic = self._topics.topic_or_new(
            request.namespace, request.topic, request.create_partitions, now
        )
        if request.dedupe and (window_ms := self.dedupe.window_ms(topic)):
            return self._produce_new(request, topic, window_ms, client, now)
        partition = route(directory, topic, request.route)
        if partition.replication is not None:
            check_leader(partition)
        if batch.producers and (request.idempotent or topic.state.config.get("idempotent")):
            return self._produce_once(request, partition, client, now)
        base = partition.state.next_offset
        sequence = self._append_whole(partition, batch, now)
        reply = Produced(partition.number, base, batch.count)
        if request.acks is _NONE:
            reply.high_watermark = partition.high_watermark
            return Outcome(reply)
        if request.acks is _ALL and (self._needs_others or partition.replication is not None):
            return self._replicating.hold(client, reply, sequence, partition, now)
        return self._waiting.hold(client, reply, sequence, partition)

    def _produce_once(
        self, request: Produce, partition: Partition, client: Client, now: Now
    ) -> Outcome:
        """Appends what of the batch its producers have not appended before."""
        batch = request.batch
        known = self.idempotence.check(partition, batch, now)
        reply = Produced(partition.number, partition.state.next_offset, batch.count)
        if known is None:
            sequence = self._append_whole(partition, batch, now, is_checked=True)
        else:
            # What was appended before is durable no later than what was appended last.
            sequence = partition.batch_sequence
            pieces = [slice_batch(batch, first, last) for first, last in known.new]
            if len(pieces) > 1:
                self._check_room(pieces)
            for piece in pieces:
                sequence = self._append_whole(partition, piece, now, is_checked=True)
            if known.base_offset is not None:
                reply.base_offset = known.base_offset
            reply.last_offset = (
                partition.state.next_offset - 1 if known.last_offset is None else known.last_offset
            )
        return self._answer(request, client, reply, sequence, partition, now)

    def _produce_new(
        self, request: Produce, topic: Topic, window_ms: int, client: Client, now: Now
    ) -> Outcome:
        """Appends a record unless its payload was appended within the topic's window."""
        dedupe = self.dedupe
        key = dedupe.key_of(request, topic.state.topic_id)
        original = dedupe.find(key, window_ms, now) if key else None
        partition = original.partition if original else route(self._directory, topic, request.route)
        check_leader(partition)
        if original is not None:
            reply = Produced(partition.number, original.offset, 1)
            return self._answer(request, client, reply, partition.batch_sequence, partition, now)
        base = partition.state.next_offset
        sequence = self._append_whole(partition, request.batch, now)
        if key:
            dedupe.put(key, window_ms, now, partition=partition, offset=base)
        reply = Produced(partition.number, base, request.batch.count)
        return self._answer(request, client, reply, sequence, partition, now)

    def _answer(
        self,
        request: Produce,
        client: Client,
        reply: Produced,
        sequence: int,
        partition: Partition,
        now: Now,
    ) -> Outcome:
        """The outcome of a produce that may have appended nothing."""
        if request.acks is _NONE:
            reply.high_watermark = partition.high_watermark
            return Outcome(reply)
        if request.acks is _ALL:
            return self._replicating.hold(client, reply, sequence, partition, now)
        return self._waiting.hold_unless_revealed(client, reply, sequence, partition)

    def produce_many(self, request: ProduceMany, client: Client, now: Now) -> Outcome:
        """Appends every record to the partition of its hash; answers once all are durable."""
        directory = self._directory
        directory.check_writable()
        if not request.values:
            raise EngineError(ErrorCode.EMPTY_BATCH, "a batch has at least one record")
        topic = self._topics.topic_or_new(
            request.namespace, request.topic, request.create_partitions, now
        )
        count = len(topic.partitions)
        if not count:
            directory.partition(topic, 0)
        dealt, places = deal(request, count)
        parts: list[Produced | Failure] = []
        partitions: list[Partition] = []
        sequence = 0
        for share in dealt:
            partition = route(directory, topic, share.route)
            partitions.append(partition)
            base = partition.state.next_offset
            try:
                if partition.replication is not None:
                    check_leader(partition)
                self._check(share.batch)
                sequence = self._append_whole(partition, share.batch, now)
            except EngineError as error:
                parts.append(error.failure())
            else:
                parts.append(
                    Produced(partition.number, base, share.batch.count, partition.high_watermark)
                )
        reply = ProducedMany(parts, places)
        if not sequence:
            return self._waiting.answer(client, reply, directory.sequence)
        if request.acks is _NONE:
            return Outcome(reply)
        if request.acks is _ALL and (
            self._needs_others or any(p.replication is not None for p in partitions)
        ):
            return self._replicating.hold_many(client, reply, sequence, partitions, now)
        return self._waiting.hold_many(client, reply, sequence, partitions)

    def append(self, partition: Partition, batch: RecordBatch, now: Now) -> int:
        """Appends a batch whose place is decided; returns its sequence.

        Raises:
            EngineError: As for a Produce of this batch.
        """
        self._check(batch)
        return self._append_whole(partition, batch, now)

    def _check(self, batch: RecordBatch) -> None:
        """Refuses what no partition takes, before a topic is made for it.

        Raises:
            EngineError: EMPTY_BATCH, MALFORMED, RECORD_TOO_LARGE, BATCH_TOO_LARGE.
        """
        count = batch.count
        if not count:
            raise EngineError(ErrorCode.EMPTY_BATCH, "a batch has at least one record")
        sequence = batch.base_sequence
        if sequence is not None and sequence + count > _SEQUENCES:
            raise EngineError(ErrorCode.MALFORMED, "a sequence is an unsigned 64-bit number")
        size = len(batch.values.blob)
        if batch.keys is not None:
            size += len(batch.keys.blob)
        if batch.headers is not None:
            size += len(batch.headers.blob)
        # What a record takes beside these three is below 80 bytes, a quarter of `_count_small`.
        if size > self._bytes_small or count > self._count_small:
            self._check_sizes(batch, size)

    def _check_sizes(self, batch: RecordBatch, size: int) -> None:
        limit = self._record_bytes_max
        if size > limit and (largest := _largest_record(batch)) > limit:
            raise EngineError(
                ErrorCode.RECORD_TOO_LARGE,
                f"a record has at most {limit} bytes",
                size=largest,
                limit=limit,
            )
        total, limit = batch.nbytes, self._request_bytes_max
        if total > limit:
            raise EngineError(
                ErrorCode.BATCH_TOO_LARGE,
                f"a request appends at most {limit} bytes and this one {total}",
                size=total,
                limit=limit,
            )

    def _append_whole(
        self, partition: Partition, batch: RecordBatch, now: Now, *, is_checked: bool = False
    ) -> int:
        """Appends a batch of any size, all or nothing; returns the sequence of its last piece.

        Args:
            is_checked: Its producers' sequences were checked and are to be remembered.
        """
        size = len(batch.values.blob)
        is_plain = batch.keys is None and batch.headers is None and batch.count < _COUNT_PLAIN
        if (size > _BYTES_PLAIN or not is_plain) and batch.nbytes > BATCH_BYTES_MAX:
            pieces = split_batch(batch, BATCH_BYTES_MAX)
            self._check_room(pieces)
            sequence = 0
            for piece in pieces:
                sequence = self._append(partition, piece, now)
                if is_checked:
                    self.idempotence.appended(partition, piece)
        else:
            sequence = self._append(partition, batch, now)
            if is_checked:
                self.idempotence.appended(partition, batch)
        self.records += batch.count
        self.bytes += size
        return sequence

    def _check_room(self, pieces: list[RecordBatch]) -> None:
        try:
            self._store.check_room(sum([piece.nbytes for piece in pieces]))
        except (StoreFull, StoreOverloaded) as error:
            raise _refusal(error) from None

    def _append(self, partition: Partition, batch: RecordBatch, now: Now) -> int:
        state = partition.state
        base = state.next_offset
        timestamp_us = now.wall_us
        if timestamp_us < state.last_timestamp_us:
            timestamp_us = state.last_timestamp_us
        batch.place(
            base_offset=base,
            timestamp_us=timestamp_us,
            log_epoch=self._directory.catalog.log_epoch,
        )
        try:
            sequence = self._store.append_batch(partition.topic_id, partition.number, batch)
        except (StoreFull, StoreOverloaded) as error:
            raise _refusal(error) from None
        # The same as Catalog.appended, without looking the partition up again.
        state.next_offset = base + batch.count
        state.last_timestamp_us = timestamp_us
        partition.batch_sequence = sequence
        if self.buffers is not None:
            self.buffers.appended(partition)
        if partition.index is not None:
            partition.index.note(batch)
        return sequence


def _refusal(error: StoreFull | StoreOverloaded) -> EngineError:
    """What a producer is told where the store takes nothing now."""
    if isinstance(error, StoreFull):
        return EngineError(ErrorCode.STORAGE_FULL, "there is no room for more records")
    return EngineError(ErrorCode.OVERLOADED, str(error))


def _largest_record(batch: RecordBatch) -> int:
    sizes = [0] * batch.count
    for column in (batch.values, batch.keys, batch.headers):
        if column is not None:
            offsets = column.offsets
            sizes = list(map(add, sizes, map(sub, offsets[1:], offsets)))
    return max(sizes)
