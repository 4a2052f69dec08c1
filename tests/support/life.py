"""Lives of a store on a disk that may crash, and what a restart owes them.

Everything that a store was given has a sequence. Whatever a crash leaves, a restart must find the
state as it was after some sequence: not before the newest one that was promised, and whole. That
one rule says that nothing acknowledged is lost, that nothing is torn, reordered, invented or
brought back, and that commits, groups and producers stand where their records stand.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from dragoman.core import change as ch
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.options import Durability
from dragoman.core.store import StoreFull, StoreOverloaded
from support.store import Driven, read_all

if TYPE_CHECKING:
    from random import Random

    from dragoman.core.catalog import Catalog
    from dragoman.simulation.disk import SimDisk

TINY: dict[str, Any] = {
    "segment_bytes": 1500,
    "journal_file_bytes": 16 * 1024,
    "journal_first_bytes": 4096,
    "journal_files_max": 4,
    "group_bytes_max": 1200,
    "tail_bytes_max": 6000,
    "reserve_bytes": 4096,
    "flush_records": 12,
    "scrub_bytes_per_s": 0,
}
"""A journal file takes four small groups and a segment a few batches, so that a hundred steps roll,
recycle and remove files of every kind, and a recovery is a fraction of a millisecond."""

PASSING = ("LOCK", "reserve", "visible", "visible.tmp")
"""Files that no recovery reads: states that differ in them alone are one."""


def canonical(catalog: Catalog) -> bytes:
    """The state as one text, whatever order it came about in; the log epoch aside."""
    data = catalog.to_json()
    del data["log_epoch"]
    data["namespaces"].sort(key=lambda row: row["number"])
    data["topics"].sort(key=lambda row: row["topic_id"])
    for topic in data["topics"]:
        topic["offsets"].sort(key=lambda row: (row["kind"], row["group"], row["partition"]))
        for partition in topic["partitions"]:
            partition["producers"].sort(key=lambda row: row["producer"])
    data["groups"].sort(key=lambda row: (row["namespace_number"], row["topic"], row["group"]))
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)


class Moment(NamedTuple):
    """What is true after one sequence.

    Attributes:
        catalog: The state, as `canonical` has it.
        records: The values of each partition, from offset 0; the list may have grown since.
        splits: A crash may not keep this sequence and lose the next one.
    """

    catalog: bytes
    records: dict[tuple[int, int], list[bytes]]
    splits: bool = False


class Life(Driven):
    """A store that remembers all it was given.

    Args:
        before: The life that this one follows after a crash, to be checked.

    Attributes:
        moments: By sequence.
        durable: What a power cut may not take; in mode `fsync` all that was revealed.
    """

    def __init__(self, disk: SimDisk, before: Life | None = None, **options: Any) -> None:
        self.options = {**TINY, **options}
        self.moments: dict[int, Moment] = {}
        self._synced = 0
        self._read: set[tuple[object, ...]] = set()
        super().__init__(disk, **self.options)
        store = self.store
        start = store.revealed_sequence
        if before is None:
            self.moments[start] = Moment(canonical(store.catalog), {})
        else:
            before.check(self)
            self.mono_us = before.mono_us
            kept = before.moments[start]
            for place, values in kept.records.items():
                state = store.catalog.partition(*place)
                assert state is not None
                self.written[place] = values[: state.next_offset]
            self.moments[start] = Moment(kept.catalog, dict(self.written))
        self._synced = start

    @property
    def durable(self) -> int:
        """The newest sequence that must survive a power cut."""
        store = self.store
        if store._options.durability is Durability.FSYNC:
            return store.revealed_sequence
        return max(self._synced, store._checkpointer.sequence)

    def flush(self) -> bool:
        """One flush, if there is something to flush."""
        work = self.store.take_flush(self.now())
        if work is None:
            return False
        try:
            work.run()
        except OSError as error:
            self.store.flushed(work, error)
            return True
        flush = self.store.flushed(work, None)
        assert flush is not None
        self.revealed.update(flush.ends)
        if flush.syncs:
            self._synced = flush.last_sequence
        return True

    def change(self, change: ch.Change) -> None:
        """Applies a change as the engine does, and notes what is true then."""
        super().change(change)
        catalog = self.store.catalog
        self.written = {
            (topic_id, number): self.written.get((topic_id, number), [])
            for topic_id, topic in catalog.topics.items()
            for number in range(len(topic.partitions))
        }
        if isinstance(change, ch.Trimmed):
            self._fill(change)
        self._note()

    def put(self, place: tuple[int, int], values: list[bytes], **columns: Any) -> bool:
        """Appends one batch; False where the store refused it."""
        with suppress(StoreFull, StoreOverloaded):
            self.produce(values, *place, **columns)
            self._note(splits="base_sequence" in columns)
            return True
        return False

    def put_once(self, place: tuple[int, int], values: list[bytes], producer: str) -> None:
        """Appends one batch of an idempotent producer, and what is remembered of it."""
        state = self.store.catalog.partition(*place)
        assert state is not None
        known = state.producers.get(producer)
        first = known.ranges[-1][1] + 1 if known is not None else 0
        epoch = known.epoch if known is not None else 0
        base = state.next_offset
        columns = {
            "producers": (producer.encode(),),
            "producer_epoch": epoch,
            "base_sequence": first,
        }
        if self.put(place, values, **columns):
            last = first + len(values) - 1
            self.change(ch.ProducerPut(*place, producer, epoch, first, last, base, self.mono_us))

    def places(self) -> list[tuple[int, int]]:
        """Every partition there is."""
        return sorted(self.written)

    def check(self, after: Driven, *, killed: bool = False) -> int:
        """A restart found one of this life's moments, whole; returns its sequence.

        Args:
            killed: Only the process ended, so nothing revealed may be missing in any mode.
        """
        store = after.store
        sequence = store.revealed_sequence
        owed = self.store.revealed_sequence if killed else self.durable
        assert store.damage == []
        assert sequence >= owed, f"ends at {sequence} although {owed} was promised"
        moment = self.moments.get(sequence)
        assert moment is not None, f"ends at {sequence}, which this life never wrote"
        assert not moment.splits, f"a batch was kept without its producer's entry ({sequence})"
        assert canonical(store.catalog) == moment.catalog
        for place, values in moment.records.items():
            self._check_records(after, place, values)
        return sequence

    def _check_records(self, after: Driven, place: tuple[int, int], values: list[bytes]) -> None:
        """Reads a partition, unless the same files were read before at the same ends."""
        store = after.store
        state = store.catalog.partition(*place)
        assert state is not None
        start, end = state.log_start_offset, state.next_offset
        files = after.disk.fingerprint(store._logs[place].directory)
        read = (*place, start, end, files, id(values))
        if read not in self._read:
            assert read_all(store, *place) == values[start:end], place
            self._read.add(read)

    def _fill(self, trim: ch.Trimmed) -> None:
        """A trim past the end moves the end: the offsets between hold nothing."""
        state = self.store.catalog.partition(trim.topic_id, trim.partition)
        if state is not None:
            values = self.written[trim.topic_id, trim.partition]
            values.extend([b""] * (state.next_offset - len(values)))

    def _note(self, *, splits: bool = False) -> None:
        store = self.store
        self.moments[store._sequence] = Moment(canonical(store.catalog), dict(self.written), splits)


class Wanderer(Life):
    """A life that does what its dice say, of everything that a store may be given."""

    def __init__(
        self, disk: SimDisk, dice: Random, before: Life | None = None, **options: Any
    ) -> None:
        self.dice = dice
        super().__init__(disk, before, **options)

    def wander(self, steps: int) -> None:
        """So many steps, and an end to what is under way."""
        dice = self.dice
        if not self.written:
            self.put_topic(1, 2)
        for _ in range(steps):
            for _ in range(dice.randint(0, 3)):
                self.write()
            if dice.random() < 0.35:
                self.tell()
            if dice.random() < 0.12:
                self.reshape()
            if dice.random() < 0.7:
                self.flush()
            if dice.random() < 0.5:
                self.work()
            if dice.random() < 0.08:
                self.mono_us += 31_000_000
        self.settle()

    def write(self) -> None:
        """One batch to some partition."""
        dice = self.dice
        if not self.written:
            return
        place = dice.choice(self.places())
        at = len(self.written[place])
        size = dice.choice((1, 4, 20, 60, 300))
        values = [b"%d-%d" % (place[1], at + n) * size for n in range(dice.randint(1, 3))]
        if dice.random() < 0.3:
            self.put_once(place, values, dice.choice("pq"))
        else:
            self.put(place, values)

    def tell(self) -> None:
        """A committed offset, a group, a producer's expiry or a role."""
        dice = self.dice
        if not self.written:
            return
        topic_id, partition = place = dice.choice(self.places())
        name = self.store.catalog.topics[topic_id].name
        group = dice.choice("gh")
        match dice.randrange(9):
            case 0 | 1 | 2 | 3:
                offset = dice.randint(0, len(self.written[place]))
                self.change(ch.OffsetPut(topic_id, "group", group, partition, offset))
            case 4 | 5:
                self.put_group(name, group, [f"m{n}" for n in range(dice.randint(0, 3))])
            case 6:
                self.change(ch.GroupDropped(DEFAULT_NAMESPACE_NUMBER, name, group))
            case 7:
                self.change(ch.ProducersExpired(*place, self.mono_us - dice.choice((0, 10**6))))
            case _:
                self.change(ch.RolePut(*place, bool(dice.getrandbits(1))))

    def reshape(self) -> None:
        """A topic made, dropped, renamed or resized; records trimmed; retention; a namespace."""
        dice = self.dice
        catalog = self.store.catalog
        topics = sorted(catalog.topics)
        place = dice.choice(self.places()) if self.written else (0, 0)
        match dice.randrange(10):
            case 0 | 1 if len(topics) < 3:
                self.put_topic(catalog.topic_ids_used + 1, dice.randint(1, 2))
            case 2 if len(topics) > 1:
                self.change(ch.TopicDropped(dice.choice(topics)))
            case 3 if topics:
                topic_id = dice.choice(topics)
                count = len(catalog.topics[topic_id].partitions)
                self.put_topic(topic_id, count, f"renamed-{self.mono_us}")
            case 4 if topics:
                self.put_topic(dice.choice(topics), dice.randint(1, 3))
            case 5 | 6 if self.written:
                self.trim(place, dice.randint(0, self.revealed.get(place, 0)))
            case 7 | 8 if self.written:
                start = self.store.expired(*place, before_us=0, bytes_max=1000)
                if isinstance(start, int):
                    self.trim(place, start)
            case 9:
                self._namespace()
            case _:
                pass

    def trim(self, place: tuple[int, int], start: int) -> None:
        """Records below `start` go, where they have not yet."""
        state = self.store.catalog.partition(*place)
        assert state is not None
        if state.log_start_offset < start <= state.next_offset:
            self.change(ch.Trimmed(*place, start))

    def put_topic(self, topic_id: int, partitions: int, name: str = "") -> None:
        """Makes a topic, or changes its name or its partitions."""
        known = self.store.catalog.topics.get(topic_id)
        home = DEFAULT_NAMESPACE_NUMBER if known is None else known.namespace_number
        if not name:
            name = f"topic-{topic_id}" if known is None else known.name
        self.change(ch.TopicPut(topic_id, home, topic_id, name, 1, [1] * partitions, {}))

    def put_group(self, topic: str, group: str, members: list[str]) -> None:
        """The next generation of a group."""
        groups = self.store.catalog.groups.get((DEFAULT_NAMESPACE_NUMBER, topic), {})
        known = groups.get(group)
        generation = 1 if known is None else known.generation + 1
        rows: list[list[str | int | bool]] = [[name, "v1", 10_000_000, False] for name in members]
        self.change(
            ch.GroupPut(
                *(DEFAULT_NAMESPACE_NUMBER, topic, group, 1),
                *(generation, "round_robin", 3, rows),
            )
        )

    def _namespace(self) -> None:
        catalog = self.store.catalog
        made = [n for n in catalog.namespaces_by_number if n != DEFAULT_NAMESPACE_NUMBER]
        if not made:
            number = catalog.namespace_numbers_used + 1
            self.change(ch.NamespacePut(number, f"ns{number}", 1))
            topic_id = catalog.topic_ids_used + 1
            self.change(ch.TopicPut(topic_id, number, 1, "in", 1, [1], {}))
        elif self.dice.getrandbits(1):
            self.change(ch.NamespacePut(made[0], f"ns-{self.mono_us}", 1))
        else:
            self.change(ch.NamespaceDropped(made[0]))
