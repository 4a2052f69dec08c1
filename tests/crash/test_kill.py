"""SIGKILL of the real server under load of all dialects, again and again, on one data directory.

Afterwards a reader sees every acknowledged record once and in its writer's order, offsets without a
gap, nothing that was never sent, and the last committed offset that was answered. Cursus writers
are idempotent: after each kill they send again what was not acknowledged, with the same sequences,
and every record of theirs is there exactly once; those of larger batches compress them. Two writers
race for the versions of one stream of events. Members of a group, one a dialect, go on where
their group's last answered commits stand, and no generation comes twice.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.codecs.registry import BUILT_IN
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    AppendEvent,
    CommitOffset,
    CreateTopic,
    EventAppended,
    EventsRead,
    Fetch,
    Fetched,
    FetchOffset,
    GroupJoined,
    IfExists,
    JoinGroup,
    OffsetCommitted,
    OffsetFetched,
    OffsetKind,
    Produce,
    Produced,
    ReadEvents,
    ReadSnapshot,
    ReadVersion,
    SaveSnapshot,
    SnapshotRead,
    SnapshotSaved,
    TopicConfig,
    TopicCreated,
    VersionRead,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.events.field import event_of
from dragoman.core.route import fnv1a_64
from support.caller import Caller
from support.effort import effort
from support.server import Server
from support.verdict import rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dragoman.codecs.base import Speaker
    from dragoman.core.calls import Route
    from support.verdict import Row

KILLS = effort("CRASH_KILLS", 100)
"""How often; `make crash` sets a longer form."""
SEED = effort("CRASH_SEED", 20)
PARTITIONS = 3
WRITERS = [(name, batch) for name in BUILT_IN for batch in (1, 7)]
LOAD_S = (0.05, 0.35)
STREAM = b"k", fnv1a_64(b"k")
EVENTS_EVERY = 3
"""One in so many lives has the writers of events too, which make it a third longer."""


class Life(threading.Thread):
    """Something that a client does until the server is gone."""

    def __init__(self, dialect: str, speaker: Speaker | None = None) -> None:
        super().__init__(daemon=True)
        self.dialect = dialect
        self.speaker = speaker
        self.failure: Exception | None = None
        self.port = 0

    def run(self) -> None:
        try:
            caller = Caller(self.dialect, self.port, self.speaker)
            with caller.socket:
                self.act(caller)
        except OSError:
            pass
        except Exception as error:
            self.failure = error

    def act(self, caller: Caller) -> None:
        """Asks and asks."""
        raise AssertionError(caller)


class Writer(Life):
    """Writes numbered records, and remembers what was acknowledged.

    Attributes:
        retries: What is not acknowledged is sent again, with the same sequences.
    """

    def __init__(self, name: str, batch: int, number: int) -> None:
        speaker = CursusSpeaker("gzip") if name == "cursus" and batch > 1 else None
        super().__init__(name, speaker)
        self.batch = batch
        self.number = number
        self.retries = name == "cursus"
        self.sent = 0
        self.unanswered: int | None = None
        self.retried = 0
        self.acknowledged: list[tuple[int, int]] = []

    def act(self, caller: Caller) -> None:
        while True:
            first = self.sent
            if self.retries and self.unanswered is not None:
                first = self.unanswered
                self.retried += 1
            self.unanswered = first
            self.sent = first + self.batch
            reply = caller.ask(self.request(first))
            assert isinstance(reply, Produced), reply
            self.unanswered = None
            self.acknowledged.append((first, self.sent))

    def request(self, first: int) -> Produce:
        """The batch that begins with record `first`."""
        values = [b"%d:%d" % (self.number, n) for n in range(first, first + self.batch)]
        batch = RecordBatch(self.batch, VarColumn.of(values), origin=Origin.NONE)
        route: Route = self.number % PARTITIONS
        if self.retries:
            batch.producers = (b"w%d" % self.number,)
            batch.producer_epoch = 1
            batch.base_sequence = first + 1
        if self.dialect == "v1":
            # The server chooses by key there.
            batch.keys = VarColumn.of([b"k%d" % self.number] * self.batch)
            route = ROUND_ROBIN
        return Produce("load", batch, route, idempotent=self.retries)

    def again(self, port: int) -> Writer:
        """The same writer on its next life."""
        other = Writer(self.dialect, self.batch, self.number)
        other.sent = self.sent
        other.unanswered = self.unanswered
        other.retried = self.retried
        other.acknowledged = self.acknowledged
        other.port = port
        return other


class Committer(Life):
    """Commits rising offsets."""

    def __init__(self, port: int, committed: list[int]) -> None:
        super().__init__("rustlog")
        self.port = port
        self.committed = committed

    def act(self, caller: Caller) -> None:
        while True:
            offset = self.committed[-1] + 1
            reply = caller.ask(CommitOffset("load", "g", ((0, offset),)))
            assert isinstance(reply, OffsetCommitted), reply
            self.committed.append(offset)


class Member(Life):
    """Joins a group, reads what it was assigned from where the group stands, and commits.

    Attributes:
        group: One for each member.
        member: The id that the group knows it by, also after a restart.
        committed: What was answered, by partition.
        asked: The newest commit of each partition, answered or not.
        generations: What each life joined with.
    """

    def __init__(self, name: str, before: Member | None = None) -> None:
        super().__init__(name)
        self.group = f"{name}-group"
        self.member = "m" if before is None else before.member
        self.committed = {} if before is None else before.committed
        self.asked = {} if before is None else before.asked
        self.generations = [] if before is None else before.generations
        self.consumed = 0 if before is None else before.consumed

    def act(self, caller: Caller) -> None:
        joined = caller.ask(JoinGroup("load", self.group, self.member))
        assert isinstance(joined, GroupJoined), joined
        self.member = joined.member
        self.generations.append(joined.generation)
        while True:
            for partition in joined.partitions:
                self.consume(caller, joined, partition)

    def consume(self, caller: Caller, joined: GroupJoined, partition: int) -> None:
        found = caller.ask(FetchOffset("load", self.group, partition))
        assert isinstance(found, OffsetFetched), found
        stands = found.offset or 0
        answered = self.committed.get(partition, 0)
        assert answered <= stands <= self.asked.get(partition, 0), "a commit went back"
        fetched = caller.ask(Fetch("load", partition, stands, records_max=50))
        assert isinstance(fetched, Fetched), fetched
        if not fetched.count:
            return
        self.asked[partition] = fetched.next_offset
        reply = caller.ask(
            CommitOffset(
                *("load", self.group, ((partition, fetched.next_offset),)),
                member=joined.member,
                generation=joined.generation,
            )
        )
        assert isinstance(reply, OffsetCommitted), reply
        self.committed[partition] = fetched.next_offset
        self.consumed += fetched.count


class Appender(Life):
    """Appends events to a stream that another one appends to as well; now and then keeps its state.

    Attributes:
        acknowledged: By version, the events that were.
        saved, saving: The newest state that was acknowledged, and the newest that was asked for.
    """

    def __init__(self, number: int, before: Appender | None = None) -> None:
        super().__init__("cursus")
        self.number = number
        self.sent = 0 if before is None else before.sent
        self.acknowledged: dict[int, bytes] = {} if before is None else before.acknowledged
        self.saved = 0 if before is None else before.saved
        self.saving = 0 if before is None else before.saving

    def act(self, caller: Caller) -> None:
        found = caller.ask(ReadVersion("events", *STREAM))
        assert isinstance(found, VersionRead), found
        version = found.version
        assert version >= max(self.acknowledged, default=0), "a version fell"
        shown = caller.ask(ReadSnapshot("events", *STREAM))
        assert isinstance(shown, SnapshotRead), shown
        kept = 0 if shown.snapshot is None else shown.snapshot.version
        if not self.number:
            assert kept in (self.saved, self.saving), "a snapshot fell"
            self.saved = kept  # what was asked for and not acknowledged is kept now, or never
        while True:
            version = self.append(caller, version + 1)
            if not self.number and version % 10 == 0:
                self.saving = version
                saved = caller.ask(SaveSnapshot("events", *STREAM, version, b"%d" % version))
                assert isinstance(saved, SnapshotSaved), saved
                self.saved = version

    def append(self, caller: Caller, version: int) -> int:
        """The version of the stream afterwards."""
        self.sent += 1
        value = b"%d:%d" % (self.number, self.sent)
        batch = RecordBatch(1, VarColumn.of([value]), origin=Origin.NONE)
        reply = caller.ask(AppendEvent("events", *STREAM, version, batch))
        if isinstance(reply, Failure):
            assert reply.code is ErrorCode.VERSION_CONFLICT, reply
            return int(reply.facts["current"])
        assert isinstance(reply, EventAppended), reply
        self.acknowledged[version] = value
        return version


def read_events(caller: Caller) -> list[bytes]:
    """The whole stream, whose versions count up from 1."""
    events: list[bytes] = []
    while True:
        reply = caller.ask(ReadEvents("events", *STREAM, len(events) + 1))
        assert isinstance(reply, EventsRead), reply
        if not reply.slices:
            return events
        for piece in reply.slices:
            for record in piece.batch.records(piece.first, piece.last):
                events.append(record.value or b"")
                version = event_of(record.headers or b"")[0].aggregate_version
                assert version == len(events), "versions have no gap"


def check_events(appenders: list[Appender], events: list[bytes], row: Row) -> None:
    row.duplicated += len(events) - len(set(events))
    for appender in appenders:
        row.lost += sum(
            [
                events[version - 1 : version] != [value]
                for version, value in appender.acknowledged.items()
            ]
        )


def start_all(writers: list[Writer], server: Server) -> list[Writer]:
    started = [writer.again(server.ports[writer.dialect]) for writer in writers]
    for writer in started:
        writer.start()
    return started


def check_records(
    writers: list[Writer], read: Callable[[int], list[tuple[int, bytes]]], row: Row
) -> int:
    seen: dict[int, list[int]] = {writer.number: [] for writer in writers}
    for partition in range(PARTITIONS):
        rows = read(partition)
        assert [offset for offset, _ in rows] == list(range(len(rows))), "offsets without a gap"
        for _, value in rows:
            number, _, n = value.partition(b":")
            seen[int(number)].append(int(n))
    for writer in writers:
        records = seen[writer.number]
        assert records == sorted(records), f"{writer.dialect}: in the writer's order"
        held = set(records)
        row.duplicated += len(records) - len(held)
        row.lost += sum(
            [n not in held for first, last in writer.acknowledged for n in range(first, last)]
        )
        assert not records or records[-1] < writer.sent, "nothing that was never sent"
        if writer.retries:
            assert records == list(range(len(records))), "exactly once, without a gap"
    return sum(len(records) for records in seen.values())


@pytest.mark.slow
@pytest.mark.timeout(40 + 12 * KILLS)
def test_no_acknowledged_record_or_commit_is_lost_by_kills_under_load(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    server = Server(tmp_path / "data", "--set", "storage.segment_bytes=256KiB")
    writers = [Writer(name, batch, number) for number, (name, batch) in enumerate(WRITERS)]
    members = [Member("v1"), Member("cursus")]
    appenders = [Appender(0), Appender(1)]
    committed = [0]
    with server, rule("D1", "SIGKILL of the real server under load of all dialects") as row:
        caller = Caller("rustlog", server.ports["rustlog"])
        with caller.socket:
            made = caller.ask(CreateTopic("load", PARTITIONS))
        assert isinstance(made, TopicCreated), made
        caller = Caller("cursus", server.ports["cursus"])
        with caller.socket:
            config = TopicConfig(event_sourcing=True)
            made = caller.ask(CreateTopic("events", 2, config=config, if_exists=IfExists.GROW))
        assert isinstance(made, TopicCreated), made
        for kill in range(KILLS):
            writers = start_all(writers, server)
            members = [Member(member.dialect, member) for member in members]
            appenders = [Appender(appender.number, appender) for appender in appenders]
            racing = [] if kill % EVENTS_EVERY else appenders
            for client in (*members, *racing):
                client.port = server.ports[client.dialect]
                client.start()
            committer = Committer(server.ports["rustlog"], committed)
            committer.start()
            committer.join(dice.uniform(*LOAD_S))
            server.kill()
            for thread in (*writers, *members, *racing, committer):
                thread.join(20)
                assert thread.failure is None, thread.failure
            server.start()
            row.cases += 1
            caller = Caller("rustlog", server.ports["rustlog"])
            with caller.socket:
                found = caller.ask(FetchOffset("load", "g", 0, kind=OffsetKind.GROUP))
            assert isinstance(found, OffsetFetched), found
            assert (found.offset or 0) in (committed[-1], committed[-1] + 1)
            committed[-1] = found.offset or 0
        caller = Caller("rustlog", server.ports["rustlog"])
        with caller.socket:
            kept = check_records(writers, lambda partition: caller.read_all("load", partition), row)
        caller = Caller("cursus", server.ports["cursus"])
        with caller.socket:
            check_events(appenders, read_events(caller), row)
        assert kept > KILLS
        assert all(appender.acknowledged for appender in appenders)
        assert KILLS < 10 or any(writer.retried for writer in writers)
        for member in members:
            assert member.generations == sorted(member.generations), "a generation went back"
            assert member.consumed > 0
        assert server.stop() == 0
