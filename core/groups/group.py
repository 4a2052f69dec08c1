"""A consumer group, and the table of all that can happen to it.

`TABLE` is the specification: for every event and for every way in which a group can stand to the
member that the event is about, what the group does and how it stands afterwards, or why the event
is refused. `core.groups.coordinator` looks its requests up there; a test walks every pair.

A group deals its partitions at once, without waiting for members to come together: a change of
membership, assignor or partition count is one generation more, and who asks with an older one is
told so and asks again.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.calls import Assignor, MemberDescription
from dragoman.core.change import GroupPut
from dragoman.core.error import ErrorCode
from dragoman.core.groups.assignor import shares

if TYPE_CHECKING:
    from dragoman.core.catalog import GroupState
    from dragoman.core.outcome import Client

NEVER_US = 1 << 62
"""A deadline of what time cannot end (`Now.mono_us`)."""


class Standing(Enum):
    """How a group stands to the member that an event is about."""

    MISSING = "there is no such group"
    ELSEWHERE = "only another topic of the namespace has a group of this name"
    EMPTY = "it has no members"
    OTHERS = "it has members, but not this one"
    ALONE = "the member is its only one"
    AMONG = "the member is one of several"


class Event(Enum):
    """What can happen."""

    CREATE = "it is made by request"
    JOIN = "the member joins, or joins again"
    JOIN_REPLAN = "the same, naming another assignor than the group's"
    JOIN_KNOWN = "the same, but only if there is such a group"
    HEAR = "the member syncs or sends a heartbeat"
    COMMIT = "the member commits what it owns"
    COMMIT_FOREIGN = "the member commits what it does not own"
    LEAVE = "the member leaves"
    READ = "the member reads what its group may give to others"
    STALE = "the member syncs, sends a heartbeat, commits, leaves or reads in another generation"
    POLL = "the member's connection polls, or commits, where it is assigned"
    SILENCE = "the member is silent for more than its session timeout"
    DISCONNECT = "the connection that the member is bound to ends"
    RESIZE = "the topic has more or fewer partitions than were dealt"
    RENAME = "the topic is renamed"
    DROP = "the topic or its namespace is deleted"
    DELETE = "the group is deleted by request"
    DESCRIBE = "somebody asks how it stands"
    RESTART = "the server starts again; the member lives by heartbeats"
    RESTART_BOUND = "the server starts again; the member was bound to a connection"


class Effect(Enum):
    """What the group does; all but the first two is journaled before anybody learns of it."""

    NOTHING = "nothing"
    HEAR = "the member's time begins anew"
    MAKE = "made, generation 0"
    DEAL = "generation + 1, dealt anew"
    DEAL_TWICE = "generation + 2, dealt anew"
    MOVE = "goes with the topic"
    FORGET = "gone, with its committed offsets"


class Rule(NamedTuple):
    """One cell of the table.

    Attributes:
        standing: How the group stands afterwards.
        refusal: Why the event is refused; `effect` is NOTHING then.
    """

    standing: Standing
    effect: Effect = Effect.NOTHING
    refusal: ErrorCode | None = None


_MISSING, _ELSEWHERE, _EMPTY, _OTHERS, _ALONE, _AMONG = Standing
_NOTHING, _HEAR, _MAKE, _DEAL, _DEAL_TWICE, _MOVE, _FORGET = Effect
_NO_GROUP, _MISMATCH = ErrorCode.UNKNOWN_GROUP, ErrorCode.GROUP_TOPIC_MISMATCH
_NO_MEMBER, _STALE = ErrorCode.UNKNOWN_MEMBER, ErrorCode.STALE_GENERATION
_EXISTS, _NOT_OWNER = ErrorCode.GROUP_EXISTS, ErrorCode.NOT_OWNER

_Cell = tuple[Effect, Standing] | Effect | ErrorCode
"""An effect and the standing after it; an effect alone, or a refusal, leaves the standing as it
is."""


def _row(*cells: _Cell) -> dict[Standing, Rule]:
    row = {}
    for standing, cell in zip(Standing, cells, strict=True):
        if isinstance(cell, tuple):
            row[standing] = Rule(cell[1], cell[0])
        elif isinstance(cell, Effect):
            row[standing] = Rule(standing, cell)
        else:
            row[standing] = Rule(standing, refusal=cell)
    return row


_ALIKE = (_NOTHING,) * 6

# fmt: off
TABLE: dict[Event, dict[Standing, Rule]] = {
    #                          MISSING               ELSEWHERE             EMPTY                  OTHERS                 ALONE                AMONG  # noqa: E501
    Event.CREATE:         _row((_MAKE, _EMPTY),      (_MAKE, _EMPTY),      _EXISTS,               _EXISTS,               _EXISTS,             _EXISTS),  # noqa: E501
    Event.JOIN:           _row((_DEAL, _ALONE),      (_DEAL, _ALONE),      (_DEAL, _ALONE),       (_DEAL, _AMONG),       _HEAR,               _HEAR),  # noqa: E501
    Event.JOIN_REPLAN:    _row((_DEAL, _ALONE),      (_DEAL, _ALONE),      (_DEAL_TWICE, _ALONE), (_DEAL_TWICE, _AMONG), _DEAL,               _DEAL),  # noqa: E501
    Event.JOIN_KNOWN:     _row(_NO_GROUP,            _NO_GROUP,            (_DEAL, _ALONE),       (_DEAL, _AMONG),       _HEAR,               _HEAR),  # noqa: E501
    Event.HEAR:           _row(_NO_GROUP,            _MISMATCH,            _NO_MEMBER,            _NO_MEMBER,            _HEAR,               _HEAR),  # noqa: E501
    Event.COMMIT:         _row(_NO_GROUP,            _MISMATCH,            _NO_MEMBER,            _NO_MEMBER,            _NOTHING,            _NOTHING),  # noqa: E501
    Event.COMMIT_FOREIGN: _row(_NO_GROUP,            _MISMATCH,            _NO_MEMBER,            _NO_MEMBER,            _NOT_OWNER,          _NOT_OWNER),  # noqa: E501
    Event.LEAVE:          _row(_NO_GROUP,            _MISMATCH,            _NOTHING,              _NOTHING,              (_DEAL, _EMPTY),     (_DEAL, _OTHERS)),  # noqa: E501
    Event.READ:           _row(_NO_GROUP,            _MISMATCH,            _NO_MEMBER,            _NO_MEMBER,            _NOTHING,              _NOTHING),  # noqa: E501
    Event.STALE:          _row(_NO_GROUP,            _MISMATCH,            _STALE,                _STALE,                _STALE,              _STALE),  # noqa: E501
    Event.POLL:           _row(_NO_GROUP,            _NO_GROUP,            _NO_MEMBER,            _NO_MEMBER,            _NOTHING,            _NOTHING),  # noqa: E501
    Event.SILENCE:        _row(_NOTHING,             _NOTHING,             _NOTHING,              _NOTHING,              (_DEAL, _EMPTY),     (_DEAL, _OTHERS)),  # noqa: E501
    Event.DISCONNECT:     _row(_NOTHING,             _NOTHING,             _NOTHING,              _NOTHING,              (_DEAL, _EMPTY),     (_DEAL, _OTHERS)),  # noqa: E501
    Event.RESIZE:         _row(_NOTHING,             _NOTHING,             _NOTHING,              _DEAL,                 _DEAL,               _DEAL),  # noqa: E501
    Event.RENAME:         _row(_NOTHING,             _NOTHING,             _MOVE,                 _MOVE,                 _MOVE,               _MOVE),  # noqa: E501
    Event.DROP:           _row(_NOTHING,             _NOTHING,             (_FORGET, _MISSING),   (_FORGET, _MISSING),   (_FORGET, _MISSING), (_FORGET, _MISSING)),  # noqa: E501
    Event.DELETE:         _row(_NO_GROUP,            _NO_GROUP,            (_FORGET, _MISSING),   (_FORGET, _MISSING),   (_FORGET, _MISSING), (_FORGET, _MISSING)),  # noqa: E501
    Event.DESCRIBE:       _row(_NO_GROUP,            _NO_GROUP,            _NOTHING,              _NOTHING,              _NOTHING,            _NOTHING),  # noqa: E501
    Event.RESTART:        _row(*_ALIKE),
    Event.RESTART_BOUND:  _row(_NOTHING,             _NOTHING,             _NOTHING,              _NOTHING,              (_DEAL, _EMPTY),     (_DEAL, _OTHERS)),  # noqa: E501
}
# fmt: on

GENERATIONS = {Effect.DEAL: 1, Effect.DEAL_TWICE: 2}
"""By how much an effect raises the generation."""


class Member:
    """One member of one group.

    Attributes:
        client: The connection that a bound member lives by; None for one that lives by heartbeats.
        joined_by: The number of the connection that asked for it last (`Client.number`); 0 where
            that is not known, as after a restart.
        heard_us: When it was last heard of (`Now.wall_us`); 0 where that is not known.
        deadline_us: It is silent for too long after this (`Now.mono_us`); None where its time
            begins at the next look, as after a restart.
        partitions: What it owns.
        current: The partition of its last poll where it was assigned; None before the first.
        is_lost: `current` is not its own any more since then.
    """

    __slots__ = (
        "client",
        "current",
        "deadline_us",
        "dialect",
        "heard_us",
        "id",
        "is_lost",
        "joined_by",
        "partitions",
        "timeout_us",
    )

    def __init__(self, member: str) -> None:
        self.id = member
        self.dialect = ""
        self.timeout_us = 0
        self.client: Client | None = None
        self.joined_by = 0
        self.heard_us = 0
        self.deadline_us: int | None = None
        self.partitions = range(0)
        self.current: int | None = None
        self.is_lost = False

    def lives_as(self, dialect: str, timeout_us: int, client: Client | None) -> bool:
        """Whether this is what is known of it already."""
        return self.timeout_us == timeout_us and self.client is client and self.dialect == dialect

    def take_turn(self) -> int | None:
        """The partition to poll now: the next after the last one; None where it owns none."""
        own = self.partitions
        self.is_lost = False
        if not own:
            self.current = None
            return None
        last = self.current
        if last is None or last < own.start:
            self.current = own.start
        else:
            turn = (last - own.start) // own.step + 1
            self.current = own[turn if turn < len(own) else 0]
        return self.current


class Group:
    """One group of one topic.

    Attributes:
        number: What numbering dialects call it.
        generation: 0 until somebody joins.
        partition_count: How many the generation was dealt.
        members: By id.
        due_us: No member is silent for too long before this (`Now.mono_us`).
        dealt_us: When its generation began (`Now.wall_us`, to 50 ms); 0 where that is not known.
        sequence: Of the newest change of it in the journal.
    """

    __slots__ = (
        "assignor",
        "dealt_us",
        "due_us",
        "generation",
        "members",
        "name",
        "number",
        "partition_count",
        "sequence",
    )

    def __init__(self, name: str, number: int, assignor: Assignor, partition_count: int) -> None:
        self.name = name
        self.number = number
        self.generation = 0
        self.assignor = assignor
        self.partition_count = partition_count
        self.members: dict[str, Member] = {}
        self.due_us = NEVER_US
        self.dealt_us = 0
        self.sequence = 0

    @classmethod
    def recovered(cls, name: str, state: GroupState) -> Group:
        """The group as it was at rest. Bound members are gone with their connections; for the
        others a new session timeout begins at the first look."""
        group = cls(name, state.number, Assignor(state.assignor), state.partitions)
        group.generation = state.generation
        for member, dialect, timeout_us, is_bound in state.members:
            if not is_bound:
                known = Member(str(member))
                known.dialect, known.timeout_us = str(dialect), int(timeout_us)
                group.members[known.id] = known
                group.due_us = -1
        group._share()
        return group

    def standing(self, member: str) -> Standing:
        """How it stands to this member."""
        members = self.members
        if member in members:
            return _ALONE if len(members) == 1 else _AMONG
        return _OTHERS if members else _EMPTY

    def made_of(self, stem: str, joined_by: int) -> Member | None:
        """The member whose id was made of a name, by `-` and digits: the one that a connection
        joined as, else the one that joined last."""
        start = f"{stem}-"
        found = None
        for member in self.members.values():
            if member.id.startswith(start) and member.id[len(start) :].isdecimal():
                if member.joined_by == joined_by:
                    return member
                found = member
        return found

    def deal(self, partition_count: int, generations: int = 1) -> None:
        """Begins a new generation: every partition has one owner again."""
        self.generation += generations
        self.partition_count = partition_count
        self._share()

    def silent(self, now_us: int) -> tuple[list[Member], int]:
        """The members that were silent for too long, and when the next of the others may be."""
        silent = []
        due_us = NEVER_US
        for member in self.members.values():
            if member.client is not None:
                continue
            if member.deadline_us is None:
                member.deadline_us = now_us + member.timeout_us
            if now_us > member.deadline_us:
                silent.append(member)
            elif member.deadline_us < due_us:
                due_us = member.deadline_us
        return silent, due_us

    def at_rest(self, namespace_number: int, topic: str) -> GroupPut:
        """The group as the journal holds it."""
        return GroupPut(
            namespace_number,
            topic,
            self.name,
            self.number,
            self.generation,
            self.assignor.value,
            self.partition_count,
            [
                [member.id, member.dialect, member.timeout_us, member.client is not None]
                for member in self.members.values()
            ],
        )

    def described(self) -> list[MemberDescription]:
        """Its members, by id."""
        return [
            MemberDescription(
                member.id,
                member.dialect,
                tuple(member.partitions),
                member.client is not None,
                member.heard_us,
            )
            for _, member in sorted(self.members.items())
        ]

    def _share(self) -> None:
        # Code points sort as their UTF-8 bytes do.
        ordered = sorted(self.members)
        owned = shares(self.assignor, len(ordered), self.partition_count)
        for name, partitions in zip(ordered, owned, strict=True):
            member = self.members[name]
            member.partitions = partitions
            if member.current is not None and member.current not in partitions:
                member.is_lost = True
