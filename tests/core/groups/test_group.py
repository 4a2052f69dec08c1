"""The table of what can happen to a group: complete, true of the engine, printed in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.calls import (
    ASSIGNED,
    AddPartitions,
    Assignor,
    CommitOffset,
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
    DescribeGroup,
    Fetch,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    UpdateTopic,
)
from dragoman.core.change import GroupDropped, GroupPut
from dragoman.core.error import Failure
from dragoman.core.groups.group import (
    GENERATIONS,
    NEVER_US,
    TABLE,
    Effect,
    Event,
    Group,
    Member,
    Standing,
)
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.outcome import Client
from support.log import Log

if TYPE_CHECKING:
    from dragoman.core.calls import Request
    from dragoman.core.catalog import GroupState

BOUND_EVENTS = {Event.POLL, Event.DISCONNECT, Event.RESTART_BOUND}
MINE, OTHERS_OWN = Client(7, "mine"), Client(8, "other")


class House:
    """A group `g` on topic `t` that stands to member `m` as asked for; `a` is somebody else."""

    def __init__(self, standing: Standing, *, bound: bool) -> None:
        self.log = Log()
        self.bound = bound
        self.topic = "t"
        self.log.ask(CreateTopic("t", 3))
        self.log.ask(CreateTopic("u", 3))
        match standing:
            case Standing.ELSEWHERE:
                self.log.ask(JoinGroup("u", "g", "a"), OTHERS_OWN)
            case Standing.EMPTY:
                self.log.ask(CreateGroup("t", "g"))
            case Standing.OTHERS:
                self.join("a")
            case Standing.ALONE:
                self.join("m")
            case Standing.AMONG:
                self.join("a")
                self.join("m")
        self.journaled: list[Any] = []
        self.spy()

    def join(self, member: str) -> None:
        request = JoinGroup("t", "g", member, bound=self.bound and member == "m")
        self.log.ask(request, MINE if member == "m" else OTHERS_OWN)

    def spy(self) -> None:
        """Notes every change that is journaled from here on."""
        append = self.log.store.append

        def noting(change: Any) -> int:
            self.journaled.append(change)
            return append(change)

        self.log.store.append = noting  # type: ignore[method-assign]

    def ask(self, request: Request) -> Failure | None:
        reply = self.log.ask(request, MINE)
        return reply if isinstance(reply, Failure) else None

    @property
    def group(self) -> Group | None:
        home = self.log.engine._groups.home(DEFAULT_NAMESPACE_NUMBER, self.topic)
        return None if home is None else home.by_name.get("g")

    @property
    def state(self) -> GroupState | None:
        groups = self.log.store.catalog.groups
        return groups.get((DEFAULT_NAMESPACE_NUMBER, self.topic), {}).get("g")

    @property
    def generation(self) -> int:
        group = self.group
        return 0 if group is None else group.generation

    @property
    def deadline_us(self) -> int | None:
        group = self.group
        member = None if group is None else group.members.get("m")
        return None if member is None else member.deadline_us

    @property
    def standing(self) -> Standing:
        group = self.group
        if group is not None:
            return group.standing("m")
        namesake = self.log.engine._groups.namesake(DEFAULT_NAMESPACE_NUMBER, "g")
        return Standing.MISSING if namesake is None else Standing.ELSEWHERE

    def happen(self, event: Event) -> Failure | None:
        """Makes it happen; returns the refusal."""
        generation = self.generation
        own = CommitOffset("t", "g", ((0, 1),), member="m", generation=generation)
        if self.standing is Standing.AMONG:
            own.offsets = ((1, 1),)
        foreign = CommitOffset("t", "g", ((99, 1),), member="m", generation=generation)
        requests: dict[Event, Request] = {
            Event.CREATE: CreateGroup("t", "g"),
            Event.JOIN: JoinGroup("t", "g", "m"),
            Event.JOIN_REPLAN: JoinGroup("t", "g", "m", assignor=Assignor.RANGE),
            Event.JOIN_KNOWN: JoinGroup("t", "g", "m", must_exist=True),
            Event.HEAR: Heartbeat("t", "g", "m", generation),
            Event.COMMIT: own,
            Event.COMMIT_FOREIGN: foreign,
            Event.LEAVE: LeaveGroup("t", "g", "m", generation),
            Event.READ: Fetch("t", 0, group="g", member="m", generation=generation),
            Event.STALE: SyncGroup("t", "g", "m", generation + 1),
            Event.POLL: Fetch("t", ASSIGNED, group="g"),
            Event.RESIZE: AddPartitions("t", 1),
            Event.RENAME: UpdateTopic("t", name="renamed"),
            Event.DROP: DeleteTopic("t"),
            Event.DELETE: DeleteGroup("t", "g"),
            Event.DESCRIBE: DescribeGroup("t", "g"),
        }
        match event:
            case Event.SILENCE:
                self.log.now = self.log.now._replace(mono_us=self.log.now.mono_us + 9_000_000)
                if self.standing in (Standing.OTHERS, Standing.AMONG):
                    self.log.ask(Heartbeat("t", "g", "a"), OTHERS_OWN)
                elif self.standing is Standing.ELSEWHERE:
                    self.log.ask(Heartbeat("u", "g", "a"), OTHERS_OWN)
                self.log.pass_time(2)
            case Event.DISCONNECT:
                self.log.engine.disconnected(MINE, self.log.now)
            case Event.RESTART | Event.RESTART_BOUND:
                self.log.store = self.log.store.restarted()
                self.spy()
                self.log = Log(self.log.store)
            case _:
                request = requests[event]
                if event is Event.RENAME:
                    self.topic = "renamed"
                return self.ask(request)
        return None


def test_the_table_has_every_pair_and_no_more() -> None:
    assert set(TABLE) == set(Event)
    for row in TABLE.values():
        assert set(row) == set(Standing)
    assert set(GENERATIONS) == {Effect.DEAL, Effect.DEAL_TWICE}


def test_what_is_refused_changes_nothing() -> None:
    for row in TABLE.values():
        for standing, rule in row.items():
            if rule.refusal is not None:
                assert (rule.standing, rule.effect) == (standing, Effect.NOTHING)


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("event", Event)
def test_the_engine_does_what_the_table_says(event: Event, standing: Standing) -> None:
    rule = TABLE[event][standing]
    house = House(standing, bound=event in BOUND_EVENTS)
    assert house.standing is standing
    house.log.now = house.log.now._replace(mono_us=house.log.now.mono_us + 1_000_000)
    generation, deadline_us = house.generation, house.deadline_us

    failure = house.happen(event)

    assert (failure and failure.code) == rule.refusal
    assert house.standing is rule.standing
    puts = [change for change in house.journaled if isinstance(change, (GroupPut, GroupDropped))]
    raised = house.generation - generation
    state = house.state
    match rule.effect:
        case Effect.NOTHING:
            assert (puts, raised) == ([], 0)
            if event is not Event.RESTART:
                assert house.deadline_us == deadline_us
        case Effect.HEAR:
            assert (puts, raised) == ([], 0)
            assert house.deadline_us is not None
            assert deadline_us is not None
            assert house.deadline_us == deadline_us + 1_000_000
        case Effect.MAKE:
            assert [put.generation for put in puts] == [0]
        case Effect.DEAL | Effect.DEAL_TWICE:
            assert raised == GENERATIONS[rule.effect]
            assert [put.generation for put in puts] == [house.generation]
            assert state is not None
            assert state.generation == house.generation
        case Effect.MOVE:
            assert (puts, raised) == ([], 0)
            assert state is not None
        case Effect.FORGET:
            assert state is None
            assert house.log.code(DescribeGroup("u", "g")) is not None
    if state is not None and (group := house.group) is not None:
        assert (state.generation, state.partitions) == (group.generation, group.partition_count)
        assert {row[0] for row in state.members} == set(group.members)
        owned = sorted(p for member in group.members.values() for p in member.partitions)
        assert owned == (list(range(group.partition_count)) if group.members else [])


def rendered() -> str:
    """The table as the architecture page shows it."""
    lines = ["| event | " + " | ".join([standing.name for standing in Standing]) + " |"]
    lines.append("|---" * (len(Standing) + 1) + "|")
    for event, row in TABLE.items():
        cells = []
        for standing, rule in row.items():
            if rule.refusal is not None:
                cells.append(f"*{rule.refusal.name}*")
            elif rule.standing is standing:
                cells.append(rule.effect.value)
            else:
                cells.append(f"{rule.effect.value} → {rule.standing.name}")
        lines.append(f"| {event.value} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def test_the_docs_show_the_table_as_it_is() -> None:
    page = Path(__file__).parents[3] / "docs" / "ARCHITECTURE.md"
    assert rendered() in page.read_text()


def polled(member: Member, count: int) -> list[int | None]:
    return [member.take_turn() for _ in range(count)]


def test_polls_go_round_what_the_member_owns() -> None:
    member = Member("m")
    member.partitions = range(1, 8, 3)
    assert polled(member, 5) == [1, 4, 7, 1, 4]
    member.partitions = range(0)
    assert polled(member, 2) == [None, None]


def test_polls_go_on_behind_the_last_partition_after_a_new_deal() -> None:
    member = Member("m")
    member.partitions = range(4)
    assert polled(member, 2) == [0, 1]
    member.partitions = range(0, 4, 2)
    assert polled(member, 3) == [2, 0, 2]
    member.partitions = range(3, 4)
    assert polled(member, 2) == [3, 3]
    member.partitions = range(2)
    assert polled(member, 2) == [0, 1]


def test_a_group_without_heartbeating_members_never_has_a_silent_one() -> None:
    group = Group("g", 1, Assignor.ROUND_ROBIN, 3)
    member = group.members["m"] = Member("m")
    member.client = MINE
    assert group.silent(1 << 60) == ([], NEVER_US)
