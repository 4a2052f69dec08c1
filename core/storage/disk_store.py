"""The log on disk: `core.store.Store` over a data directory.

The loop's thread calls everything here; what may block is handed out as work. One flush, one
segment-lane work and one checkpoint-lane work are under way at most; reads are many. The parts each
know one thing: what is pending becomes a group (`flush`), groups go to the journal (`journal`),
then to segments (`segment_work`), and a checkpoint makes that stand (`checkpoint`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dragoman.core import change as ch
from dragoman.core.catalog import Catalog
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.storage.checkpointer import Checkpointer
from dragoman.core.storage.compact import Compactor
from dragoman.core.storage.disk import RealDisk, is_full
from dragoman.core.storage.due_sync import DueSync
from dragoman.core.storage.expiry import ExpiryRead, expired
from dragoman.core.storage.files import OpenFiles
from dragoman.core.storage.flush import (
    Group,
    JournalFlush,
    PendingBatch,
    PendingChange,
    build_group,
    due_items,
    weight,
)
from dragoman.core.storage.journal import Journal
from dragoman.core.storage.layout import Layout
from dragoman.core.storage.log import Tails
from dragoman.core.storage.options import StorageOptions
from dragoman.core.storage.reading import (
    ColdCache,
    SegmentRead,
    TimeRead,
    WouldBlock,
    read_now,
)
from dragoman.core.storage.recovery import Recovered, recover
from dragoman.core.storage.scrub import Scrub
from dragoman.core.storage.writer import SegmentWriter
from dragoman.core.store import StoreFull, StoreOverloaded

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from dragoman.core.batch import RecordBatch
    from dragoman.core.change import Change
    from dragoman.core.clock import Now
    from dragoman.core.interface import Flush, Work
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.verify import Damage

_STRUCTURAL = (ch.TopicPut, ch.TopicDropped, ch.NamespaceDropped, ch.Trimmed)


class DiskStore:
    """A `core.store.Store` in a data directory, which it locks and recovers.

    Args:
        directory: Made where it is missing.
        disk: What stands for the operating system in tests.
        give_up_from: Discard a damaged journal from this sequence on.
        on_damage: Told, on the loop, what the scrub finds damaged; each place once.

    Attributes:
        catalog, revealed_sequence, failure: As the contract has them.
        damage: Sentences that name what recovery and since then the scrub found damaged.
        clean: The last stop was an orderly one.

    Raises:
        StorageError: The directory is in use, of another format, or damaged beyond serving.
        OSError: The disk failed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        options: StorageOptions | None = None,
        *,
        disk: Disk | None = None,
        give_up_from: int | None = None,
        on_damage: Callable[[Damage], None] | None = None,
    ) -> None:
        self._options = options = options or StorageOptions()
        self._disk = disk = RealDisk() if disk is None else disk
        self._layout = layout = Layout(str(directory))
        layout.check_ours(disk)
        self._lock = layout.lock(disk)
        try:
            layout.make(disk)
            try:
                found = self._recovered(give_up_from)
            except OSError as error:
                if not is_full(error):
                    raise
                disk.unlink(layout.reserve)
                found = self._recovered(give_up_from)
        except BaseException:
            disk.close(self._lock)
            raise
        self.catalog = Catalog.from_json(found.state.catalog.to_json())
        self.damage = found.damage
        self.clean = found.clean
        self.revealed_sequence = self._sequence = found.sequence
        self.failure: OSError | None = None
        self._replayed = found.replayed
        self._table = found.table
        self._logs = found.table.logs
        self._files = OpenFiles(disk, options.open_files_max)
        self._tails = Tails(options.tail_bytes_max)
        self._cold = ColdCache(options.cold_bytes_max)
        self._writer = SegmentWriter(
            disk, layout, self._files, options, self._journal, found.sequence
        )
        self._checkpointer = Checkpointer(
            disk,
            layout,
            self._files,
            options,
            found.state,
            found.table,
            group=found.group,
            incarnation=found.incarnation,
        )
        self._compactor = Compactor(disk, layout, options, self._checkpointer, found.incarnation)
        self._on_damage = on_damage
        self._scrub = Scrub(
            disk, options.scrub_bytes_per_s, self._logs, self.catalog, self._found_damage
        )
        self._pending: deque[PendingBatch | PendingChange] = deque()
        self._pending_bytes = 0
        self._flushing: JournalFlush | None = None
        self._again: JournalFlush | None = None
        self._again_at_us: int | None = None
        self._due_sync = DueSync(options)
        self._closing = False
        self._takes_nothing = False
        self._built: tuple[Group, int] | None = None
        self._counts = {"flushes": 0, "records": 0, "batches": 0, "journal_bytes": 0, "reads": 0}
        self._cold_reads = 0

    def append(self, change: Change) -> int:
        """Takes a change."""
        if self._takes_nothing:
            raise self._refusal()
        self._sequence = sequence = self._sequence + 1
        size = weight(change)
        self._pending_bytes += size
        self._pending.append(PendingChange(sequence, change, size))
        if isinstance(change, _STRUCTURAL):
            made, dropped = self._table.apply(change, sequence)
            self._checkpointer.changed(change, sequence, made, dropped)
        return sequence

    def append_batch(self, topic_id: int, partition: int, batch: RecordBatch) -> int:
        """Takes a placed batch, unless the disk or a budget is full."""
        if self._takes_nothing:
            raise self._refusal()
        if self._writer.is_full:
            raise StoreFull("the disk is full")
        size = batch.nbytes
        pending = self._pending_bytes + size
        if pending > self._options.pending_bytes_max and self._pending:
            raise StoreOverloaded("too much waits for the disk")
        if self._writer.unwritten_bytes > self._options.tail_bytes_max:
            raise StoreOverloaded("segments are written too slowly")
        self._pending_bytes = pending
        self._pending.append(PendingBatch(self._logs[topic_id, partition], batch, size))
        self._sequence += 1
        return self._sequence

    def check_room(self, nbytes: int) -> None:
        """Refuses several batches together that the disk or a budget has no room for."""
        if self._writer.is_full:
            raise StoreFull("the disk is full")
        if self._pending_bytes + nbytes > self._options.pending_bytes_max:
            raise StoreOverloaded("too much waits for the disk")

    def take_flush(self, now: Now) -> Flush | None:
        """Everything pending as one group, as far as the journal has prepared room for it."""
        if self._flushing is not None or self.failure is not None:
            return None
        if self._again is not None:
            return self._take_again(now)
        if not self._pending:
            return self._take_sync(now)
        if self._built is None:
            limit = self._options.group_bytes_max
            items = due_items(self._pending, self._pending_bytes, limit)
            self._built = build_group(items), len(items)
        group, count = self._built
        file = self._journal.place(group.length)
        if file is None:
            return None
        self._built = None
        for _ in range(count):
            self._pending.popleft()
        self._pending_bytes -= group.nbytes
        first = self.revealed_sequence + 1
        last = first + count - 1
        tails = self._tails
        for log, batch, _, length in group.writes:
            log.unwritten += length
            if not log.dropped:
                tails.add(log, batch, length, last)
        self._journal.group += 1
        flush = JournalFlush(
            self._disk,
            group=group,
            number=self._journal.group,
            last_sequence=last,
            syncs=self._due_sync.with_group(file.fd, group.records, now),
        )
        flush.goes_to(
            fd=file.fd,
            file=file.number,
            position=file.position,
            incarnation=self._journal.incarnation,
            synced_group=self._journal.synced_group,
            first_sequence=first,
        )
        self._journal.written(file, group.length, last)
        self._flushing = flush
        return flush

    def flushed(self, work: Flush, error: OSError | None) -> JournalFlush | None:
        """The group ended: what it holds is revealed and goes to the segments, or the store is
        fenced."""
        flush = self._flushing
        assert flush is not None
        assert work is flush
        self._flushing = None
        if error is not None:
            if is_full(error):
                self._again, self._again_at_us = flush, None
                self._writer.met_full_disk()
            else:
                self._fence(error)
            return None
        if flush.syncs:
            self._journal.synced_group = flush.number
        group = flush.group
        if group is None:
            return flush
        self.revealed_sequence = flush.last_sequence
        visible = self._checkpointer
        for log, batch, _, _ in group.writes:
            if not log.dropped:
                flush.ends[log.topic_id, log.partition] = batch.next_offset
                visible.revealed(log, batch.next_offset)
        counts = self._counts
        counts["flushes"] += 1
        counts["records"] += group.records
        counts["batches"] += group.batches
        counts["journal_bytes"] += group.length
        for done in self._writer.add(flush):
            self._checkpointer.written(done)
        return flush

    def limit_visible(self, topic_id: int, partition: int, high_watermark: int) -> None:
        """Readers beside the engine see the partition up to here, until its next flush."""
        if (log := self._logs.get((topic_id, partition))) is not None:
            self._checkpointer.revealed(log, max(high_watermark, log.log_start))

    def take_work(self, now: Now) -> list[Work]:
        """Segment writes, checkpoints, and pieces of the scrub and of compaction that are due."""
        if self.failure is not None:
            return []
        works: list[Work] = []
        segment = self._writer.take(now, hurry=self._closing)
        if segment is not None:
            works.append(segment)
        checkpoint = self._checkpointer.take(
            now,
            writer=self._writer,
            journal=self._journal,
            stopping=self._closing
            and not self._pending
            and self._flushing is None
            and self._again is None
            and self._writer.is_idle,
        )
        if checkpoint is not None:
            works.append(checkpoint)
            self._takes_nothing = self._checkpointer.ended
        if not self._closing and (piece := self._scrub.take(now)) is not None:
            works.append(piece)
        steps = self._compactor.take(now, stops=self._closing or self._writer.is_full)
        if steps is not None:
            works.append(steps)
        return works

    def finished(self, work: Work, error: OSError | None) -> None:
        """A work of `take_work` ended: what it wrote counts from now on, or the store is fenced."""
        if self._writer.owns(work):
            self._fence(self._writer.finished(work, error))
            for done in self._writer.take_written():
                self._checkpointer.written(done)
            self._tails.evict(self._writer.written_sequence)
        elif self._scrub.owns(work):
            self._scrub.finished(work, error)
        elif self._compactor.owns(work):
            self._fence(self._compactor.finished(work, error))
        else:
            self._fence(
                self._checkpointer.finished(work, error, journal=self._journal, writer=self._writer)
            )

    def read(
        self, topic_id: int, partition: int, offset: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the one that holds `offset` on: from memory, the page cache, or a thread."""
        log = self._logs.get((topic_id, partition))
        if log is None or offset >= log.end:
            return []
        if offset >= log.tail_start:
            return log.in_tail(offset, bytes_max)
        self._counts["reads"] += 1
        offset = max(offset, log.log_start)
        found = self._cold.get(log.cold, offset, bytes_max)
        if found:
            return found
        segment = log.segment_at(offset)
        if segment is None or (segment.base >= log.tail_start and log.tail_start > offset):
            return log.in_tail(log.tail_start, bytes_max) if log.tail_start < log.end else []
        try:
            found = read_now(self._disk, self._files, log, segment, offset, bytes_max)
        except WouldBlock:
            self._cold_reads += 1
            return SegmentRead(self._disk, self._files, self._cold, log, segment, offset, bytes_max)
        return self._cold.put(log.cold, found)

    def read_since(
        self, topic_id: int, partition: int, timestamp_us: int, bytes_max: int
    ) -> list[RecordBatch] | Work:
        """Batches from the first with a record at or after this time: from memory, or a thread."""
        log = self._logs.get((topic_id, partition))
        if log is None:
            return []
        start = log.tail_at_time(timestamp_us)
        tail = log.in_tail(start, bytes_max) if start < log.end else []
        # Append times never fall: something older in memory means that all before it is older.
        segments = [] if start > log.tail_start else log.segments_since(timestamp_us)
        if not segments:
            return tail
        return TimeRead(self._disk, self._files, self._cold, log, segments, timestamp_us, tail)

    def size(self, topic_id: int, partition: int) -> tuple[int, int]:
        """(bytes at rest, segments), with what is on its way to a segment."""
        log = self._logs.get((topic_id, partition))
        if log is None:
            return 0, 0
        segments = log.live_segments()
        total = log.unwritten + sum([segment.size for segment in segments])
        return total, max(len(segments), 1 if total else 0)

    def expired(
        self, topic_id: int, partition: int, *, before_us: int, bytes_max: int
    ) -> int | ExpiryRead | None:
        """The log start that retention asks for, or the work that looks for it."""
        log = self._logs.get((topic_id, partition))
        if log is None:
            return None
        return expired(self._disk, self._files, log, before_us=before_us, bytes_max=bytes_max)

    def compact(
        self, topic_id: int, partition: int, *, up_to: int, tombstones_before_us: int
    ) -> bool:
        """Begins a pass of compaction where one is due; False where another is under way."""
        log = self._logs.get((topic_id, partition))
        if log is None or self.failure is not None or self._closing:
            return True
        return self._compactor.begin(log, up_to=up_to, tombstones_before_us=tombstones_before_us)

    def overloaded(self) -> bool:
        """Whether pending bytes, unwritten tail or journal are above three quarters; never once it
        is fenced, or while what crowds the journal is needed by the older catalog alone: nobody is
        kept waiting for room that does not come."""
        options = self._options
        return self.failure is None and (
            4 * self._pending_bytes > 3 * options.pending_bytes_max
            or 4 * self._writer.unwritten_bytes > 3 * options.tail_bytes_max
            or (self._journal.is_crowded and self._checkpointer.will_free)
        )

    def begin_close(self, now: Now) -> None:
        """Asks for a last flush, and a checkpoint that says the stop was orderly."""
        self._closing = True

    def close(self) -> None:
        """Closes every file and gives the lock back."""
        self._compactor.close()
        self._files.close()
        self._journal.close()
        self._disk.close(self._lock)

    def statistics(self) -> Mapping[str, int | float | str]:
        """Counters and gauges by name."""
        counts = {f"store_{name}": count for name, count in self._counts.items()}
        return {
            **counts,
            "store": "disk",
            "store_durability": self._options.durability.value,
            "store_sequence": self._sequence,
            "store_revealed_sequence": self.revealed_sequence,
            "store_written_sequence": self._writer.written_sequence,
            "store_checkpoint_sequence": self._checkpointer.sequence,
            "store_checkpoints": self._checkpointer.checkpoints,
            "store_pending_bytes": self._pending_bytes,
            "store_unwritten_bytes": self._writer.unwritten_bytes,
            "store_tail_bytes": self._tails.bytes_held,
            "store_cold_bytes": self._cold.bytes_held,
            "store_cold_reads": self._cold_reads,
            "store_open_files": len(self._files),
            "store_journal_files": len(self._journal.files),
            "store_journal_used": self._journal.used_fraction,
            "store_replayed_groups": self._replayed,
            "store_damaged": len(self.damage),
            "store_scrubbed_bytes": self._scrub.bytes_checked,
            "store_damaged_batches": self._scrub.damaged,
            "store_compactions": self._compactor.passes,
            "store_compactions_given_up": self._compactor.given_up,
            "store_compacted_records": self._compactor.records_dropped,
            "store_compacted_bytes": self._compactor.bytes_freed,
            "store_full": int(self._writer.is_full),
            "store_failed": "" if self.failure is None else str(self.failure),
        }

    def _found_damage(self, damage: Damage) -> None:
        self.damage.append(str(damage))
        if self._on_damage is not None:
            self._on_damage(damage)

    def _refusal(self) -> EngineError:
        if self.failure is None:
            return EngineError(ErrorCode.SHUTTING_DOWN, "the log is being closed")
        return EngineError(
            ErrorCode.STORAGE_FAILED,
            f"the disk failed and nothing more is taken until a restart: {self.failure}",
        )

    def _fence(self, error: OSError | None) -> None:
        """Takes nothing more, where there is an error; the first one is kept."""
        if error is not None and self.failure is None:
            self.failure = error
            self._takes_nothing = True

    def _recovered(self, give_up_from: int | None) -> Recovered:
        """Recovers the directory, and sees to it that the journal's first group finds room."""
        found = recover(self._disk, self._layout, self._options, give_up_from=give_up_from)
        self._journal = journal = Journal(
            self._disk,
            self._layout,
            self._options,
            incarnation=found.incarnation,
            group=found.group,
            files=found.files,
        )
        try:
            while journal.place(1) is None:
                work = journal.take_preparation()
                assert work is not None
                work.run()
                journal.prepared(work, None)
        except BaseException:
            journal.close()
            raise
        return found

    def _take_again(self, now: Now) -> Flush | None:
        """The group that met a full disk, after a pause: the same bytes go to the same place."""
        if self._again_at_us is None:
            self._again_at_us = now.mono_us + 1000 * self._options.retry_ms
        if now.mono_us >= self._again_at_us:
            self._flushing, self._again = self._again, None
        return self._flushing

    def _take_sync(self, now: Now) -> Flush | None:
        """In mode `interval`: the sync that is due although nothing new is pending."""
        syncs = self._due_sync.alone(now, hurry=self._closing)
        if syncs:
            self._flushing = JournalFlush(
                self._disk,
                group=None,
                number=self._journal.group,
                last_sequence=self.revealed_sequence,
                syncs=syncs,
            )
        return self._flushing
