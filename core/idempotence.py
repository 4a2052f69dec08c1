"""Exactly-once producers: which records of a batch are new, which were appended before.

Per partition and producer name the newest epoch and the sequences that were appended last are known
(`ProducerState`). They change only by `ProducerPut`, which follows its batch within the same group
of the journal: a crash keeps both or neither. A batch is looked at run by run, a run being
neighbouring records of one producer and epoch; a producer that writes alone has one run a batch.
"""

from __future__ import annotations

from itertools import islice, repeat, takewhile
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.catalog import RANGES_MAX, put_producer
from dragoman.core.change import ProducerPut, ProducersExpired
from dragoman.core.error import EngineError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.batch import RecordBatch
    from dragoman.core.catalog import ProducerState
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store

RUNS_MAX = 1024
"""Runs of one request, each of which is a change of its own in the journal."""
NAME_BYTES_MAX = 255
"""The longest name of an idempotent producer: names stay in memory for as long as they count."""
SWEEP_US = 10_000_000
"""How often producers that have been idle for too long are looked for."""
PRODUCERS_PER_TICK = 1024
SCANNED_PER_TICK = 8192
"""What one tick of a sweep forgets and looks at, so that no tick takes long."""


class Run(NamedTuple):
    """Records `first` to `last` (exclusive) of a batch, whose sequences follow each other.

    Attributes:
        producer: Its name, its bytes read as Latin-1.
        sequence: Of the first record.
    """

    first: int
    last: int
    producer: str
    epoch: int
    sequence: int


class Known(NamedTuple):
    """Which records of a batch were appended before.

    Attributes:
        new: The stretches (first, last exclusive) of those that were not.
        base_offset, last_offset: The original offset of the batch's first and last record; -1 where
            it is no longer known, None where the record is new.
    """

    new: list[tuple[int, int]]
    base_offset: int | None
    last_offset: int | None


class Idempotence:
    """Checks batches against what their producers appended before, and remembers what they do.

    Attributes:
        duplicates: Records that were known already and not appended again.
        gaps, stale_epochs: Requests refused for them.
        sequence: Of the newest change of any producer in the journal.
    """

    def __init__(self, options: EngineOptions, store: Store, directory: Directory) -> None:
        self._idle_us = options.producer_idle_us
        self._producers_max = options.producers_max
        self._store = store
        self._directory = directory
        self._sweep_at_us = 0
        self._sweep_before_us = 0
        self.duplicates = 0
        self.gaps = 0
        self.stale_epochs = 0
        self.sequence = 0
        known = [
            (producer.last_us, partition, name)
            for topic in directory.topics.values()
            for partition in topic.partitions
            for name, producer in partition.state.producers.items()
        ]
        known.sort(key=_last_us)
        # All producers of all partitions, the idlest first.
        self._idlest: dict[tuple[Partition, str], None] = {
            (partition, name): None for _, partition, name in known
        }

    def __len__(self) -> int:
        return len(self._idlest)

    def check(self, partition: Partition, batch: RecordBatch, now: Now) -> Known | None:
        """What of a batch is known; None where nothing is. Changes nothing that was appended.

        Raises:
            EngineError: OUT_OF_ORDER_SEQUENCE, STALE_PRODUCER_EPOCH; BATCH_TOO_LARGE for too many
                runs, INVALID_NAME for a producer's name that is too long.
        """
        try:
            runs = runs_of(batch)
            known, has_idle = self._compare(partition, runs, now.wall_us - self._idle_us)
        except EngineError as error:
            self.gaps += error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE
            self.stale_epochs += error.code is ErrorCode.STALE_PRODUCER_EPOCH
            raise
        if has_idle:
            self._expire(partition, now.wall_us - self._idle_us)
        if not known:
            return None
        self.duplicates += sum([last - first for first, last, _, _ in known])
        count = batch.count
        return Known(
            _between(known, count),
            known[0][2] if known[0][0] == 0 else None,
            known[-1][3] if known[-1][1] == count else None,
        )

    def _compare(
        self, partition: Partition, runs: list[Run], before_us: int
    ) -> tuple[list[tuple[int, int, int, int]], bool]:
        """The stretches that are known, each with its first and last original offset; and whether a
        producer among them is to be forgotten first, since it was idle since `before_us`."""
        producers = partition.state.producers
        asked: dict[str, tuple[int, int]] = {}
        known: list[tuple[int, int, int, int]] = []
        has_idle = False
        for first, last, name, epoch, sequence in runs:
            newest = sequence + last - first - 1
            state = producers.get(name)
            if state is not None and state.last_us < before_us:
                has_idle = True
                state = None
            earlier = asked.get(name)
            if earlier is None:
                if state is None:
                    asked[name] = epoch, newest
                    continue
                current, end = state.epoch, state.ranges[-1][1]
            else:
                current, end = earlier
            if epoch < current:
                raise EngineError(
                    ErrorCode.STALE_PRODUCER_EPOCH,
                    "a newer session of this producer has written since",
                    current=current,
                    requested=epoch,
                    producer=_shown(name),
                )
            if epoch > current or sequence == end + 1:
                asked[name] = epoch, newest
                continue
            if (
                earlier is not None
                or state is None
                or sequence > end
                or not _was_appended(state, sequence)
            ):
                raise _gap(end + 1, sequence, name)
            left = min(newest, end)
            stop = first + left - sequence + 1
            known.append((first, stop, _offset_of(state, sequence), _offset_of(state, left)))
            if newest > end:
                asked[name] = epoch, newest
        return known, has_idle

    def appended(self, partition: Partition, batch: RecordBatch) -> None:
        """A checked batch was appended: what its producers wrote is remembered."""
        idlest = self._idlest
        base = batch.base_offset
        timestamp_us = batch.base_timestamp_us
        producers = partition.state.producers
        for first, last, name, epoch, sequence in runs_of(batch):
            key = partition, name
            if key in idlest:
                del idlest[key]
            elif len(idlest) >= self._producers_max:
                self._make_room()
            idlest[key] = None
            put = ProducerPut(
                partition.topic_id,
                partition.number,
                name,
                epoch,
                sequence,
                sequence + last - first - 1,
                base + first,
                timestamp_us,
            )
            self.sequence = self._store.append(put)
            # The same as Catalog.apply, without looking the partition up again.
            put_producer(producers, name, put)

    def dropped(self, partitions: Iterable[Partition]) -> None:
        """These partitions are gone, and their producers with them."""
        for partition in partitions:
            for name in partition.state.producers:
                self._idlest.pop((partition, name), None)

    def tick(self, now: Now) -> None:
        """Forgets the next few of those that were idle for too long."""
        if self._store.failure is not None or self._directory.closing:
            return
        if not self._sweep_before_us:
            if now.mono_us < self._sweep_at_us:
                return
            self._sweep_at_us = now.mono_us + SWEEP_US
            self._sweep_before_us = max(now.wall_us - self._idle_us, 1)
        keys = list(islice(self._idlest, PRODUCERS_PER_TICK))
        idle = list(takewhile(self._is_idle, keys))
        is_whole = self._forget(idle, SCANNED_PER_TICK)
        if is_whole and len(idle) < PRODUCERS_PER_TICK:
            self._sweep_before_us = 0

    def _is_idle(self, key: tuple[Partition, str]) -> bool:
        partition, name = key
        return partition.state.producers[name].last_us < self._sweep_before_us

    def _make_room(self) -> None:
        """Forgets the idlest; some at once, since each time all of a partition are looked at."""
        wanted = max(self._producers_max // 256, 1)
        self._forget(list(islice(self._idlest, wanted)), self._producers_max)

    def _forget(self, keys: list[tuple[Partition, str]], scanned_max: int) -> bool:
        """Forgets these, the idlest of all, partition by partition; returns whether that took no
        more than looking at about so many producers, and all are forgotten."""
        bounds: dict[Partition, int] = {}
        for partition, name in keys:
            bounds[partition] = partition.state.producers[name].last_us + 1
        for partition, before_us in bounds.items():
            if scanned_max <= 0:
                return False
            scanned_max -= len(partition.state.producers)
            self._expire(partition, before_us)
        return True

    def _expire(self, partition: Partition, before_us: int) -> None:
        idlest = self._idlest
        for name, producer in partition.state.producers.items():
            if producer.last_us < before_us:
                del idlest[partition, name]
        expired = ProducersExpired(partition.topic_id, partition.number, before_us)
        self.sequence = self._directory.apply(expired)


def runs_of(batch: RecordBatch) -> list[Run]:
    """The runs of a batch that are checked: those with a producer and a sequence from 1 on.

    Raises:
        EngineError: OUT_OF_ORDER_SEQUENCE where neighbours of a run do not follow each other;
            BATCH_TOO_LARGE, INVALID_NAME.
    """
    sequence = batch.base_sequence
    if batch.producer_index is not None or batch.epochs is not None or sequence is None:
        return _mixed_runs(batch)
    name = batch.producers[0] if batch.producers else b""
    skipped = 0 if sequence else 1
    if not name or skipped == batch.count:
        return []
    epoch = batch.producer_epoch or 0
    return [Run(skipped, batch.count, _text(name), epoch, sequence + skipped)]


def _mixed_runs(batch: RecordBatch) -> list[Run]:
    """The same for a batch whose producers, epochs or sequences differ from record to record."""
    sequences = batch.sequences
    base = batch.base_sequence
    if not batch.producers or (sequences is None and base is None):
        return []
    count = batch.count
    if sequences is None:
        assert base is not None
        numbers: Iterable[int] = range(base, base + count)
    else:
        numbers = sequences
    index = repeat(0, count) if batch.producer_index is None else batch.producer_index
    epochs = repeat(batch.producer_epoch or 0, count) if batch.epochs is None else batch.epochs
    names = batch.producers
    runs: list[Run] = []
    begin = -1
    place = epoch = expected = 0
    for at, (producer, era, number) in enumerate(zip(index, epochs, numbers, strict=True)):
        if begin >= 0:
            if producer == place and era == epoch:
                if number == expected:
                    expected += 1
                    continue
                if number:
                    raise _gap(expected, number, _text(names[place]))
            runs.append(Run(begin, at, _text(names[place]), epoch, expected - (at - begin)))
            begin = -1
        if number and names[producer]:
            if len(runs) >= RUNS_MAX:
                raise EngineError(
                    ErrorCode.BATCH_TOO_LARGE,
                    f"idempotent producers take turns at most {RUNS_MAX} times in a request",
                )
            begin, place, epoch, expected = at, producer, era, number + 1
    if begin >= 0:
        runs.append(Run(begin, count, _text(names[place]), epoch, expected - (count - begin)))
    return runs


def _text(name: bytes) -> str:
    if len(name) > NAME_BYTES_MAX:
        raise EngineError(
            ErrorCode.INVALID_NAME,
            f"the name of an idempotent producer has at most {NAME_BYTES_MAX} bytes",
        )
    return name.decode("latin-1")


def _shown(name: str) -> str:
    return name.encode("latin-1").decode(errors="replace")


def _gap(expected: int, got: int, name: str) -> EngineError:
    return EngineError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE,
        f"sequence {expected} comes next, not {got}",
        expected=expected,
        got=got,
        producer=_shown(name),
    )


def _was_appended(state: ProducerState, sequence: int) -> bool:
    """Whether a sequence at or below the last one was appended in this session.

    A session may begin at any sequence. What lies before its first one was never appended in it,
    and calling it a duplicate would lose it; only where older ranges were forgotten it counts as
    one of those.
    """
    ranges = state.ranges
    return sequence >= ranges[0][0] or len(ranges) >= RANGES_MAX


def _offset_of(state: ProducerState, sequence: int) -> int:
    """The offset of a sequence that was appended, or -1 where that is no longer known."""
    for first, last, base in reversed(state.ranges):
        if first <= sequence <= last:
            return base + sequence - first
    return -1


def _between(known: list[tuple[int, int, int, int]], count: int) -> list[tuple[int, int]]:
    """The stretches of a batch of `count` records that are not in `known`."""
    new = []
    at = 0
    for first, last, _, _ in known:
        if first > at:
            new.append((at, first))
        at = last
    if at < count:
        new.append((at, count))
    return new


def _last_us(known: tuple[int, Partition, str]) -> int:
    return known[0]
