"""From what is pending to one group in the journal.

On the loop: neighbours are joined, batches encoded, the group checksummed. In the flusher's thread:
one `pwritev`, one `fdatasync`. Nothing is copied but what is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.batch import RecordBatch, encode_batch
from dragoman.core.change import GroupPut, OffsetPut, ProducerPut, TopicPut
from dragoman.core.interface import WorkLane
from dragoman.core.join import can_join, join_batches
from dragoman.core.storage.group import HEADER_BYTES, batch_entry, change_entry, encode_group

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dragoman.core.change import Change
    from dragoman.core.column import Buffer
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.log import PartitionLog

INLINE_BYTES_MAX = 256 * 1024
"""A group up to this that needs no sync is copied to the page cache faster than a thread wakes."""
JOINED_BYTES_MAX = 1024 * 1024
"""A joined batch does not grow past this."""
JOINED_RECORDS_MAX = 64
"""A batch of more records stays as it is: joining costs by the record, keeping by the batch."""
SMALL_BYTES_MAX = 64 * 1024
"""A batch larger than this stays as it is."""
_MEMBER_BYTES, _TIME_BYTES = 40, 17
"""What a member beside its id, and a partition's time of making, take at rest."""
_PASSED = frozenset((OffsetPut, GroupPut, ProducerPut))
"""Changes that a run of neighbouring batches may pass: they say nothing about files."""


class PendingBatch(NamedTuple):
    """A batch that waits for a flush."""

    log: PartitionLog
    batch: RecordBatch
    nbytes: int


class PendingChange(NamedTuple):
    """A change that waits for a flush; `nbytes` where it may be large."""

    sequence: int
    change: Change
    nbytes: int = 0


class Write(NamedTuple):
    """A batch on its way to a segment: the buffers that the journal was given."""

    log: PartitionLog
    batch: RecordBatch
    buffers: list[Buffer]
    length: int


class Appended(NamedTuple):
    """What a batch means for the catalog."""

    topic_id: int
    partition: int
    next_offset: int
    timestamp_us: int


class Group:
    """The contents of one flush.

    Attributes:
        parts: The entries' buffers, `length` bytes with the group's header.
        writes: The batches for the segments.
        folds: What changes in the catalog, in order.
        records, batches, nbytes: How much it carries; `batches` before joining.
    """

    __slots__ = ("batches", "entries", "folds", "length", "nbytes", "parts", "records", "writes")

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.writes: list[Write] = []
        self.folds: list[Change | Appended] = []
        self.entries = 0
        self.length = HEADER_BYTES
        self.records = 0
        self.batches = 0
        self.nbytes = 0

    def add_change(self, sequence: int, change: Change) -> None:
        """Takes a change as the next entry."""
        entry = change_entry(sequence, change)
        self.parts.append(entry)
        self.folds.append(change)
        self.entries += 1
        self.length += len(entry)

    def add_batch(self, log: PartitionLog, batch: RecordBatch) -> None:
        """Takes a batch as the next entry."""
        topic_id, partition = log.topic_id, log.partition
        buffers = encode_batch(batch, topic_id, partition)
        length = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
        entry = batch_entry(topic_id, partition, length)
        self.parts.append(entry)
        self.parts += buffers
        self.writes.append(Write(log, batch, buffers, length))
        self.folds.append(Appended(topic_id, partition, batch.next_offset, batch.max_timestamp_us))
        self.entries += 1
        self.length += len(entry) + length
        self.records += batch.count


def due_items(
    pending: Collection[PendingBatch | PendingChange], nbytes: int, bytes_max: int
) -> list[PendingBatch | PendingChange]:
    """What the next group takes: all that is pending, or as much as a group may hold. What a batch
    says of its producer stays in its group.

    Args:
        nbytes: Of everything that is pending.
    """
    if nbytes <= bytes_max:
        return list(pending)
    items: list[PendingBatch | PendingChange] = []
    total = 0
    for item in pending:
        total += item.nbytes
        is_about_batch = type(item) is PendingChange and type(item.change) is ProducerPut
        if total > bytes_max and items and not is_about_batch:
            break
        items.append(item)
    return items


def weight(change: Change) -> int:
    """About how many bytes a change takes where it may take many, else 0."""
    if type(change) is GroupPut:
        return sum([len(str(member[0])) + _MEMBER_BYTES for member in change.members])
    return _TIME_BYTES * len(change.partition_created_us) if type(change) is TopicPut else 0


def build_group(items: Sequence[PendingBatch | PendingChange]) -> Group:
    """Makes the group of what is pending; small neighbours of one partition become one batch."""
    group = Group()
    runs: dict[PartitionLog, list[RecordBatch]] = {}
    sizes: dict[PartitionLog, int] = {}
    for item in items:
        if isinstance(item, PendingBatch):
            log, batch, size = item
            group.nbytes += size
            group.batches += 1
            run = runs.get(log)
            small = size <= SMALL_BYTES_MAX and batch.count <= JOINED_RECORDS_MAX
            if run is not None:
                if small and sizes[log] + size <= JOINED_BYTES_MAX and can_join(run[-1], batch):
                    run.append(batch)
                    sizes[log] += size
                    continue
                group.add_batch(log, join_batches(run))
            runs[log] = [batch]
            sizes[log] = size if small else JOINED_BYTES_MAX
            continue
        sequence, change, nbytes = item
        group.nbytes += nbytes
        if type(change) not in _PASSED:
            for log, run in runs.items():
                group.add_batch(log, join_batches(run))
            runs.clear()
        group.add_change(sequence, change)
    for log, run in runs.items():
        group.add_batch(log, join_batches(run))
    return group


class JournalFlush:
    """One group on its way to the journal: a `core.store.FlushWork`.

    Attributes:
        last_sequence, ends: As the contract has them; `ends` is filled when the flush has ended.
        group: What is in it; None where older groups are only synced.
        number: The group's number.
        syncs: The descriptors to sync after writing.
        blocks: It syncs, or writes more than a little.
    """

    lane = WorkLane.FLUSH

    def __init__(
        self,
        disk: Disk,
        *,
        group: Group | None,
        number: int,
        last_sequence: int,
        syncs: Sequence[int],
    ) -> None:
        self._disk = disk
        self.group = group
        self.number = number
        self.last_sequence = last_sequence
        self.syncs = syncs
        self.blocks = bool(syncs) or group is None or group.length > INLINE_BYTES_MAX
        self.ends: dict[tuple[int, int], int] = {}
        self._fd = -1
        self._position = 0
        self._buffers: list[Buffer] = []

    def goes_to(
        self,
        *,
        fd: int,
        file: int,
        position: int,
        incarnation: int,
        synced_group: int,
        first_sequence: int,
    ) -> None:
        """Where the group is written. Its bytes are made here, on the loop: a thread that computes
        takes turns with the loop, one that only writes and syncs does not."""
        assert self.group is not None
        self._fd = fd
        self._position = position
        self._buffers = encode_group(
            self.group.parts,
            length=self.group.length,
            incarnation=incarnation,
            number=self.number,
            first_sequence=first_sequence,
            synced_group=synced_group,
            sequences=self.last_sequence - first_sequence + 1,
            entries=self.group.entries,
            file=file,
        )

    def run(self) -> None:
        """Writes the group and syncs."""
        if self._buffers:
            self._disk.write(self._fd, self._buffers, self._position)
        for fd in self.syncs:
            self._disk.sync(fd)
