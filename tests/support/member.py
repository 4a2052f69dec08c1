"""Members of a group in the dialects that have some, each as a client of that dialect works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from dragoman.codecs.iggy.xxhash import xxh32
from dragoman.core.calls import (
    ASSIGNED,
    Assignor,
    CommitOffset,
    Fetch,
    Fetched,
    FetchOffset,
    GroupJoined,
    GroupLeft,
    Heartbeat,
    HeartbeatAccepted,
    JoinGroup,
    LeaveGroup,
    OffsetCommitted,
    OffsetFetched,
    SyncGroup,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure
from support.history import GROUP, NUMBER, TOPIC
from support.talk import Talk

if TYPE_CHECKING:
    from dragoman.core.calls import Reply
    from support.history import History

_REFUSALS = {
    ErrorCode.UNKNOWN_MEMBER,
    ErrorCode.STALE_GENERATION,
    ErrorCode.NOT_OWNER,
    ErrorCode.UNKNOWN_PARTITION,
}


class Member(Protocol):
    """Somebody who is a member now and then."""

    def act(self) -> None:
        """Does one thing."""

    def reconnect(self) -> None:
        """The server was restarted."""

    def end(self) -> None:
        """Is heard of no more."""


class HeartbeatMember:
    """A member of V1 or Cursus: it is known by its id, whatever connection it uses.

    Attributes:
        generation: Of its last join, also long after it was forgotten; 0 before the first.
        silent: So often it does nothing when it is its turn.
    """

    def __init__(self, history: History, dialect: str, name: str) -> None:
        self._history = history
        self._random = history.random
        self._dialect = dialect
        self._talk = Talk(dialect, history.exchange)
        self.id = name
        self.generation = 0
        self.silent = 0
        self._owned: tuple[int, ...] = ()
        self._held: dict[int, tuple[int, int]] = {}

    @property
    def shown(self) -> str:
        """How the look of an Iggy client shows it."""
        return str(xxh32(self.id.encode()))

    def act(self) -> None:
        """Does one thing that a client does, or that a broken one does."""
        if self.silent:
            self.silent -= 1
            return
        if not self.generation:
            self._join()
            return
        deeds = {
            self._work: 10,
            self._beat: 2,
            self._read: 3,
            self._commit: 3,
            self._commit_anything: 1,
            self._sync: 1,
            self._join: 0.5,
            self._leave: 0.3,
            self._vanish: 0.5,
            self.reconnect: 0.5,
        }
        (deed,) = self._random.choices([*deeds], [*deeds.values()])
        deed()

    def reconnect(self) -> None:
        """Another connection, which nobody notices."""
        if not self._talk.conversation.closed:
            self._talk.conversation.hang_up()
        self._talk = Talk(self._dialect, self._history.exchange)

    def end(self) -> None:
        """Falls silent."""
        self.silent = 1 << 30

    def _work(self) -> None:
        """A turn of a client that does all as it should."""
        self._beat()
        self._read()
        self._commit()

    def _vanish(self) -> None:
        self.silent = self._random.randint(1, 6)

    def _join(self) -> None:
        assignor = None
        if self._dialect == "v1" and self._random.random() < 0.05:
            assignor = self._random.choice([*Assignor])
        joined = self._talk.ask(JoinGroup(TOPIC, GROUP, self.id, assignor=assignor))
        assert isinstance(joined, GroupJoined), joined
        self.id = joined.member
        self._took(joined)

    def _took(self, joined: GroupJoined) -> None:
        self.generation = joined.generation
        self._owned = joined.partitions
        self._history.saw(joined.generation, self.shown, joined.partitions)
        truth = self._history.audit()
        assert truth.generation == joined.generation
        mine = tuple([p for p, owner in sorted(truth.owners.items()) if owner == self.shown])
        assert joined.partitions == mine

    def _is_current(self) -> bool:
        truth = self._history.audit()
        return truth.generation == self.generation and self.shown in truth.members

    def _beat(self) -> None:
        is_current = self._is_current()
        told = self._talk.ask(Heartbeat(TOPIC, GROUP, self.id, self.generation))
        assert isinstance(told, HeartbeatAccepted) is is_current, told
        if not is_current and self._random.random() < 0.9:
            self._join()

    def _sync(self) -> None:
        truth = self._history.audit()
        told = self._talk.ask(SyncGroup(TOPIC, GROUP, self.id, self.generation))
        is_known = self.shown in truth.members
        if self._dialect == "v1":
            assert isinstance(told, GroupJoined) is (
                is_known and truth.generation == self.generation
            )
        else:
            assert isinstance(told, GroupJoined) is is_known, told
        if isinstance(told, GroupJoined):
            told.generation = truth.generation
            self._took(told)

    def _leave(self) -> None:
        is_current = self._is_current()
        left = self._talk.ask(LeaveGroup(TOPIC, GROUP, self.id, self.generation))
        if self._dialect == "v1":
            assert isinstance(left, GroupLeft) is is_current, left
        else:
            assert isinstance(left, GroupLeft), left
        if isinstance(left, GroupLeft):
            assert self.shown not in self._history.audit().members
            self._vanish()

    def _read(self) -> None:
        if not self._owned:
            return
        partition = self._random.choice(self._owned)
        fetched = self._talk.ask(FetchOffset(TOPIC, GROUP, partition))
        assert isinstance(fetched, OffsetFetched), fetched
        offset = fetched.offset or 0
        assert offset == self._history.committed.get(partition, 0)
        read = self._talk.ask(Fetch(TOPIC, partition, offset))
        assert isinstance(read, Fetched), read
        following = self._random.randint(offset, read.next_offset)
        if following > offset:
            self._held[partition] = (offset, following)

    def _commit(self) -> None:
        if self._held:
            partition = self._random.choice([*self._held])
            self._commit_at(partition, *self._held.pop(partition))

    def _commit_anything(self) -> None:
        """What nobody but the owner may do, with an offset that changes nothing if it is."""
        partition = self._random.randrange(self._history.partitions)
        committed = self._history.committed.get(partition, 0)
        self._commit_at(partition, committed, committed)

    def _commit_at(self, partition: int, first: int, following: int) -> None:
        history = self._history
        truth = history.audit()
        owns = truth.generation == self.generation and truth.owners.get(partition) == self.shown
        falls = following < history.committed.get(partition, 0) and self._dialect == "cursus"
        told = self._talk.ask(
            CommitOffset(
                TOPIC,
                GROUP,
                ((partition, following),),
                member=self.id,
                generation=self.generation,
            )
        )
        expected = _REFUSALS if not owns else {ErrorCode.OFFSET_REGRESSION} if falls else set()
        check_commit(history, told, expected)
        if not expected:
            history.took(partition, first, following)


class ConnectionMember:
    """A member of Iggy: it is its connection."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._random = history.random
        self._talk = Talk("iggy", history.exchange)
        self._joined = False
        self._at = ASSIGNED
        self._polled_in = 0
        self._held = (0, 0)

    @property
    def shown(self) -> str:
        """How the look of an Iggy client shows it."""
        return str(crc32(self._talk.conversation.session.client.peer.encode()))

    def act(self) -> None:
        """Does one thing that a client does, or that a broken one does."""
        deeds = {
            self._poll: 10,
            self._store: 5,
            self._join: 0.5 if self._joined else 8,
            self._leave: 0.3,
            self._hang_up: 0.3,
        }
        (deed,) = self._random.choices([*deeds], [*deeds.values()])
        deed()

    def reconnect(self) -> None:
        """A new connection is nobody's member."""
        self._talk = Talk("iggy", self._history.exchange)
        self._forget()

    def end(self) -> None:
        """Hangs up."""
        self._talk.conversation.hang_up()

    def _forget(self) -> None:
        self._joined = False
        self._at = ASSIGNED

    def _hang_up(self) -> None:
        shown = self.shown
        self._talk.conversation.hang_up()
        assert shown not in self._history.audit().members
        self.reconnect()

    def _join(self) -> None:
        request = JoinGroup(TOPIC, GROUP, "", bound=True, must_exist=True, group_number=NUMBER)
        assert isinstance(self._talk.ask(request), GroupJoined)
        self._joined = True
        assert self.shown in self._history.audit().members

    def _leave(self) -> None:
        left = self._talk.ask(LeaveGroup(TOPIC, GROUP, "", group_number=NUMBER))
        assert isinstance(left, GroupLeft), left
        self._forget()
        assert self.shown not in self._history.audit().members

    def _poll(self) -> None:
        history = self._history
        truth = history.audit()
        commits = self._random.random() < 0.5
        polled = self._talk.ask(
            Fetch(
                TOPIC,
                ASSIGNED,
                whence=Whence.COMMITTED,
                records_max=self._random.randint(1, 5),
                group=GROUP,
                auto_commit=commits,
                group_number=NUMBER,
            )
        )
        if not self._joined:
            assert isinstance(polled, Failure)
            assert polled.code is ErrorCode.UNKNOWN_MEMBER, polled
            return
        assert isinstance(polled, Fetched), polled
        self._at = polled.partition
        self._polled_in = truth.generation
        if polled.partition == ASSIGNED:
            assert self.shown not in truth.owners.values()
            return
        assert truth.owners[polled.partition] == self.shown
        first = history.committed.get(polled.partition, 0)
        self._held = (first, first)
        if polled.count:
            assert polled.start_offset == first
            self._held = (first, polled.next_offset)
            if commits:
                self._stored()

    def _store(self) -> None:
        """Stores what it read last; the number before the first record cannot be said."""
        history = self._history
        following = self._held[1]
        if not following:
            return
        truth = history.audit()
        told = self._talk.ask(
            CommitOffset(TOPIC, GROUP, ((ASSIGNED, following),), group_number=NUMBER)
        )
        owns = self._joined and truth.owners.get(self._at) == self.shown
        if owns and truth.generation != self._polled_in and isinstance(told, Failure):
            owns = False  # the partition went and came back, and it was not polled since
        check_commit(history, told, set() if owns else _REFUSALS)
        if owns:
            self._stored()

    def _stored(self) -> None:
        self._history.took(self._at, *self._held)


def check_commit(history: History, told: Reply | Failure, expected: set[ErrorCode]) -> None:
    """A commit was accepted, or refused for one of these reasons."""
    if expected:
        assert isinstance(told, Failure), f"a commit was accepted that had to be refused: {told}"
        assert told.code in expected, told
        history.refused += 1
    else:
        assert told == OffsetCommitted(1), told
