"""The actors of a run: what each of them asks, and what it holds against the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.calls import GroupJoined, OffsetFetched, Produced, TopicsListed
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.actor import SPOKEN, Actor
from dragoman.simulation.admin import Admin
from dragoman.simulation.audit import Auditor
from dragoman.simulation.committer import Committer, told_offsets
from dragoman.simulation.crew import make_crew
from dragoman.simulation.member import Member
from dragoman.simulation.poller import Poller
from dragoman.simulation.reader import Follower, Reader
from dragoman.simulation.replica import Replicator
from dragoman.simulation.retrier import Retrier
from dragoman.simulation.rule import Broken, Rule
from dragoman.simulation.run import Simulation
from dragoman.simulation.server import Stop
from dragoman.simulation.writer import Writer

if TYPE_CHECKING:
    from dragoman.simulation.operator import Operator


def staged(seed: int = 1) -> Simulation:
    """A run whose topics are made and whose actors have not begun."""
    simulation = Simulation(seed)
    simulation.server.start()
    Auditor(simulation).prepare()
    return simulation


def acts(simulation: Simulation, actor: Actor | Operator, times: int = 30) -> None:
    """Lets one actor act, and everything arrive."""
    simulation.actors = [actor]
    for _ in range(times):
        actor.act()
        simulation.exchange()
        simulation.server.tick(10_000)


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_writer_of_every_dialect_is_acknowledged(spoken: str) -> None:
    simulation = staged()
    acts(simulation, Writer("w", simulation.world, spoken))
    assert simulation.world.model.acked > 10


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_reader_of_every_dialect_reads_what_was_written(spoken: str) -> None:
    simulation = staged()
    acts(simulation, Writer("w", simulation.world, "cursus"))
    acts(simulation, Reader("r", simulation.world, spoken))
    assert simulation.world.model.read > 10


def test_a_follower_is_idle_once_it_has_everything() -> None:
    simulation = staged()
    follower = Follower("f", simulation.world)
    follower.act()
    acts(simulation, Writer("w", simulation.world, "rustlog"))
    simulation.actors = [follower]
    simulation.exchange()
    assert follower.is_idle
    assert simulation.world.model.read > 0


def test_a_producer_sends_again_what_it_has_not_heard_of_and_it_is_there_once() -> None:
    simulation = staged()
    retrier = Retrier("p", simulation.world, "s0")
    acts(simulation, retrier, 5)
    retrier.do()
    assert not retrier.is_idle
    simulation.server.crash(Stop.KILL)
    simulation.server.start()
    simulation.rest()
    assert retrier.is_idle
    Auditor(simulation).conclude()


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_committer_of_every_dialect_commits_and_reads_back(spoken: str) -> None:
    simulation = staged()
    acts(simulation, Writer("w", simulation.world, "cursus"))
    acts(simulation, Committer("c", simulation.world, spoken))
    assert len(simulation.world.registers) > 1


def test_what_a_dialect_tells_of_nothing_may_be_nothing() -> None:
    assert told_offsets("v1", 0) == (None, 0)
    assert told_offsets("iggy", None) == (None, 0, 1)
    assert told_offsets("rustlog", 0) == (0,)


@pytest.mark.parametrize("spoken", ["v1", "cursus"])
def test_a_member_joins_and_commits_what_it_owns(spoken: str) -> None:
    simulation = staged()
    member = Member("m", simulation.world, spoken, "s0", "21")
    acts(simulation, member, 60)
    group = simulation.world.group("s0", "21")
    assert group.generation >= 1
    assert group.owners


def test_a_poller_shares_its_group_with_members_of_other_dialects() -> None:
    simulation = staged()
    acts(simulation, Writer("w", simulation.world, "cursus"), 60)
    member = Member("m", simulation.world, "v1", "s0", "21")
    poller = Poller("p", simulation.world, "s0", "21")
    simulation.actors = [member, poller]
    for _ in range(40):
        poller.act()
        member.act()
        simulation.exchange()
    assert simulation.world.group("s0", "21").generation >= 2


def test_replicas_report_and_a_partition_that_is_led_elsewhere_takes_no_records() -> None:
    simulation = staged()
    topic = simulation.world.model.topic("s0")
    topic.is_replicated = True
    writer = Writer("w", simulation.world, "cursus")
    replicator = Replicator("r", simulation.world, "s0")
    simulation.actors = [writer, replicator]
    for _ in range(60):
        writer.act()
        replicator.act()
        simulation.exchange()
        simulation.server.tick(10_000)
    writer.act()
    moment = simulation.world.model.moment(topic, 0)
    topic.following.add(0)
    with pytest.raises(Broken, match="ROLE"):
        writer._answered(Produced(0, 0, 1), moment, [b"x"], False, frozenset({0}))


@pytest.mark.parametrize("spoken", ["cursus", "iggy"])
def test_an_admin_makes_and_deletes_its_own_topics(spoken: str) -> None:
    simulation = staged()
    simulation.world.fleeting = ["e0"]
    acts(simulation, Admin("a", simulation.world, spoken, ["e0"]), 80)
    assert simulation.world.model.topic("e0").epoch > 0


def test_a_list_without_a_topic_that_is_there_is_a_loss() -> None:
    simulation = staged()
    admin = Admin("a", simulation.world, "cursus", [])
    admin.act()
    topic = simulation.world.model.topic("s0")
    with pytest.raises(Broken, match="LOST"):
        admin._listed(TopicsListed([]), [(topic, topic.epoch)])


def test_a_refusal_has_a_reason() -> None:
    simulation = staged()
    writer = Writer("w", simulation.world, "cursus")
    writer.act()
    refusal = Failure(ErrorCode.OVERLOADED)
    with pytest.raises(Broken, match="REFUSED"):
        writer.is_refused(refusal, None)
    assert writer.is_refused(refusal, None, frozenset({ErrorCode.OVERLOADED}))
    simulation.server.life.is_impaired = True
    assert writer.is_refused(refusal, None)
    assert not writer.is_refused(Produced(0, 0, 1), None)


def test_nobody_is_told_what_it_does_not_follow() -> None:
    simulation = staged()
    writer = Writer("w", simulation.world, "cursus")
    with pytest.raises(Broken, match=Rule.ANSWER.name):
        writer.pushed(None)


def test_a_crew_is_of_mixed_dialects() -> None:
    spoken: set[str] = set()
    kinds: set[type] = set()
    for seed in range(20):
        crew = make_crew(staged(seed).world)
        kinds.update(map(type, crew))
        spoken.update([actor.spoken for actor in crew if isinstance(actor, Actor)])
    assert spoken == set(SPOKEN)
    assert kinds > {Admin, Committer, Follower, Member, Poller, Reader, Retrier, Writer}


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (lambda reply: GroupJoined("other", 1, (0, 1, 2, 3, 4, 5, 6, 7)), "OWNER"),
        (lambda reply: GroupJoined("m", -1, ()), "GENERATION"),
    ],
)
def test_a_member_holds_what_it_is_told_against_the_group(broken: Any, rule: str) -> None:
    simulation = staged()
    member = Member("m", simulation.world, "v1", "s0", "21")
    member.act()
    with pytest.raises(Broken, match=rule):
        member._joined(broken(None), 0)


def test_an_offset_that_nobody_committed_is_found_out() -> None:
    simulation = staged()
    committer = Committer("c", simulation.world, "rustlog")
    committer.act()
    topic = simulation.world.model.topic("s0")
    register = simulation.world.registers.of(topic, "group", "7", 0)
    with pytest.raises(Broken, match="COMMIT"):
        committer._fetched(
            OffsetFetched(0, 99, 0), simulation.world.model.moment(topic, 0), register, 0
        )
