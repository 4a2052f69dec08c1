"""Writers of streams of events: several on the same streams, each of which believes to know the
version that comes next, and those who read streams and keep their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    AppendEvent,
    ReadEvents,
    ReadSnapshot,
    ReadVersion,
    SaveSnapshot,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events.field import event_of
from dragoman.core.route import fnv1a_64
from dragoman.simulation.actor import Actor
from dragoman.simulation.rule import Broken, Rule
from dragoman.simulation.writer import new_values

if TYPE_CHECKING:
    from dragoman.core.calls import (
        EventAppended,
        EventsRead,
        Snapshot,
        SnapshotRead,
        SnapshotSaved,
        VersionRead,
    )
    from dragoman.simulation.actor import World
    from dragoman.simulation.aggregate import Aggregate

KEYS = ("k0", "k1")
CONFLICT = frozenset({ErrorCode.VERSION_CONFLICT})
TOO_NEW = frozenset({ErrorCode.SNAPSHOT_TOO_NEW})


class Appender(Actor):
    """Appends to the streams of one topic, and reads them."""

    def __init__(self, name: str, world: World, topic: str) -> None:
        super().__init__(name, world, "cursus", 3)
        self._topic = topic

    def do(self) -> None:
        """Does something with some stream."""
        random = self.world.random
        key = random.choice(KEYS)
        choice = random.random()
        if choice < 0.5:
            self._append(key)
        elif choice < 0.64:
            self.read(key, random.choice((0, 1, random.randint(1, self._of(key).version + 2))))
        elif choice < 0.70:
            self.read_version(key)
        elif choice < 0.86:
            self._save(key)
        else:
            self.read_snapshot(key)

    def _of(self, key: str) -> Aggregate:
        return self.world.aggregate(self._topic, key)

    # ------------------------------------------------------------ events

    def _append(self, key: str) -> None:
        known = self._of(key)
        before = known.version
        version = max(before + self.world.random.choice((1, 1, 1, 1, 1, 1, 2, 0)), 1)
        (payload,) = new_values(self, 1, binary=False)
        known.sends(version, payload)
        batch = RecordBatch(1, VarColumn.of([payload]), origin=Origin.NONE)
        request = AppendEvent(self._topic, *_stream(key), version, batch)

        def answered(reply: EventAppended | Failure) -> None:
            if not isinstance(reply, Failure):
                known.appended(version, payload, reply.version, before)
            elif reply.code is ErrorCode.VERSION_CONFLICT:
                known.conflicted(version, int(reply.facts["current"]), before)
            else:
                self.is_refused(reply, None)

        self.ask(request, answered)

    def read(self, key: str, first: int) -> None:
        """Reads a stream from a version on; from 0 behind its snapshot."""
        known = self._of(key)
        before, step = known.version, self.world.trace.step

        def answered(reply: EventsRead | Failure) -> None:
            if self.is_refused(reply, None):
                return
            assert not isinstance(reply, Failure)
            begin = first or 1
            if not first:
                self._is_shown(known, reply.snapshot, step)
                begin += 0 if reply.snapshot is None else reply.snapshot.version
            events = [
                (event_of(record.headers or b"")[0].aggregate_version, record.value or b"")
                for piece in reply.slices
                for record in piece.batch.records(*piece[1:])
            ]
            known.read(begin, events, before)

        self.ask(ReadEvents(self._topic, *_stream(key), first), answered)

    def read_version(self, key: str) -> None:
        """Asks how far a stream is."""
        known = self._of(key)
        before = known.version

        def answered(reply: VersionRead | Failure) -> None:
            if not self.is_refused(reply, None):
                assert not isinstance(reply, Failure)
                known.stands_at(reply.version, before)

        self.ask(ReadVersion(self._topic, *_stream(key)), answered)

    # ------------------------------------------------------------ snapshots

    def _save(self, key: str) -> None:
        world = self.world
        known = self._of(key)
        before = known.version
        version = world.random.randint(1, before + 2)
        world.values += 1
        number = world.values
        request = SaveSnapshot(self._topic, *_stream(key), version, b"%d:%d" % (version, number))
        commit = known.snapshots.asks(number, world.trace.step)

        def answered(reply: SnapshotSaved | Failure) -> None:
            expected = TOO_NEW if version > before else frozenset()
            if self.is_refused(reply, None, expected):
                assert isinstance(reply, Failure)
                if reply.code is ErrorCode.SNAPSHOT_TOO_NEW or not self.is_impaired:
                    known.snapshots.forget(commit)
                return
            known.stands_at(max(version, before), before)
            commit.done = world.trace.step

        self.ask(request, answered, self.losing(commit))

    def read_snapshot(self, key: str) -> None:
        """Reads the state that is kept of a stream."""
        known = self._of(key)
        step = self.world.trace.step

        def answered(reply: SnapshotRead | Failure) -> None:
            if not self.is_refused(reply, None):
                assert not isinstance(reply, Failure)
                self._is_shown(known, reply.snapshot, step)

        self.ask(ReadSnapshot(self._topic, *_stream(key)), answered)

    def _is_shown(self, known: Aggregate, shown: Snapshot | None, step: int) -> None:
        number = None
        if shown is not None:
            version, _, told = shown.payload.partition(b":")
            if int(version) != shown.version:
                raise Broken(Rule.SNAPSHOT, f"{shown.payload!r} is shown as of {shown.version}")
            number = int(told)
        known.snapshots.reads((number,), step, self.world.trace.step)


def _stream(key: str) -> tuple[bytes, int]:
    """How a request names a stream."""
    return key.encode(), fnv1a_64(key.encode())
