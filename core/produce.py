"""Produce: offsets and timestamps assigned, the batch handed to the store, the answer held until it
is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.batch import BATCH_BYTES_MAX, RECORD_BYTES_MAX
from dragoman.core.calls import Acks, Produced
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.outcome import Outcome
from dragoman.core.route import route
from dragoman.core.split import split_batch
from dragoman.core.store import StoreFull

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Produce
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store
    from dragoman.core.topic import Topics
    from dragoman.core.waiting import Waiting

_NONE = Acks.NONE
_BYTES_PLAIN, _COUNT_PLAIN = BATCH_BYTES_MAX // 4, 100_000
"""Below both, a batch without keys and headers is small enough without adding its columns up."""


class Producing:
    """Serves Produce.

    Attributes:
        records, bytes: Appended since the start; bytes are values only.
    """

    def __init__(
        self, store: Store, directory: Directory, topics: Topics, waiting: Waiting
    ) -> None:
        self._store = store
        self._directory = directory
        self._topics = topics
        self._waiting = waiting
        self.records = 0
        self.bytes = 0

    def produce(self, request: Produce, client: Client, now: Now) -> Outcome:
        """Appends the batch; answers once it is durable, at once without acks."""
        directory = self._directory
        if self._store.failure is not None or directory.closing:
            directory.check_writable()
        batch = request.batch
        size = len(batch.values.blob)
        if not batch.count:
            raise EngineError(ErrorCode.EMPTY_BATCH, "a batch has at least one record")
        if size > RECORD_BYTES_MAX:
            check_records(batch)
        topic = self._topics.topic_or_new(
            request.namespace, request.topic, request.create_partitions, now
        )
        partition = route(directory, topic, request.route)
        base = partition.state.next_offset
        is_plain = batch.keys is None and batch.headers is None and batch.count < _COUNT_PLAIN
        if (size > _BYTES_PLAIN or not is_plain) and batch.nbytes > BATCH_BYTES_MAX:
            for piece in split_batch(batch, BATCH_BYTES_MAX):
                sequence = self._append(partition, piece, now)
        else:
            sequence = self._append(partition, batch, now)
        count = batch.count
        self.records += count
        self.bytes += size
        reply = Produced(partition.number, base, count)
        if request.acks is _NONE:
            reply.high_watermark = partition.high_watermark
            return Outcome(reply)
        return self._waiting.hold(client, reply, sequence, partition)

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
        except StoreFull:
            raise EngineError(ErrorCode.STORAGE_FULL, "there is no room for more records") from None
        # The same as Catalog.appended, without looking the partition up again.
        state.next_offset = base + batch.count
        state.last_timestamp_us = timestamp_us
        partition.batch_sequence = sequence
        return sequence


def check_records(batch: RecordBatch) -> None:
    """Refuses a batch that holds a record above the limit.

    Raises:
        EngineError: RECORD_TOO_LARGE.
    """
    offsets = batch.values.offsets
    previous = 0
    for end in offsets:
        if end - previous > RECORD_BYTES_MAX:
            raise EngineError(
                ErrorCode.RECORD_TOO_LARGE,
                f"a record has at most {RECORD_BYTES_MAX} bytes",
                size=end - previous,
                limit=RECORD_BYTES_MAX,
            )
        previous = end
