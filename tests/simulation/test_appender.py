"""Writers of streams of events in a run, and what they hold against the answers."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.calls import CreateTopic, IfExists, Snapshot, TopicConfig
from dragoman.core.events.eventing import Eventing
from dragoman.simulation.appender import KEYS, Appender
from dragoman.simulation.audit import Auditor
from dragoman.simulation.rule import Broken
from dragoman.simulation.run import Simulation
from dragoman.simulation.server import Stop


def staged() -> tuple[Simulation, list[Appender]]:
    """A run with two writers of the streams of one topic."""
    simulation = Simulation(1)
    simulation.server.start()
    auditor = Auditor(simulation)
    auditor.prepare()
    world = simulation.world
    pair = [Appender(f"a{number}", world, "v0") for number in (1, 2)]
    simulation.actors = [*pair]
    pair[0].act()
    if not world.eventful:
        world.eventful = ["v0"]
        config = TopicConfig(event_sourcing=True)
        request = CreateTopic("v0", 2, config=config, if_exists=IfExists.GROW)
        pair[0].client.ask(request, lambda reply: None)
    simulation.exchange()
    return simulation, pair


def act(simulation: Simulation, pair: list[Appender], times: int = 60) -> None:
    for _ in range(times):
        for appender in pair:
            appender.act()
        simulation.exchange()
        simulation.server.tick(10_000)


def test_two_writers_append_to_the_same_streams_through_a_kill() -> None:
    simulation, pair = staged()
    act(simulation, pair)
    before = [simulation.world.aggregate("v0", key).version for key in KEYS]
    assert min(before) > 3
    simulation.server.crash(Stop.KILL)
    simulation.server.start()
    simulation.exchange()
    act(simulation, pair)
    after = [simulation.world.aggregate("v0", key).version for key in KEYS]
    assert min(after) > max(before) // 2
    Auditor(simulation).conclude()


def test_a_state_that_is_shown_is_the_one_of_its_version() -> None:
    simulation, pair = staged()
    known = simulation.world.aggregate("v0", "k0")
    with pytest.raises(Broken, match="SNAPSHOT"):
        pair[0]._is_shown(known, Snapshot(2, b"1:7"), 0)
    with pytest.raises(Broken, match="SNAPSHOT"):
        pair[0]._is_shown(known, Snapshot(1, b"1:7"), 0)


def test_an_engine_that_checks_no_versions_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(self: Eventing, partition: Any, key: bytes) -> Any:
        yield from ()
        return 0

    simulation, pair = staged()
    monkeypatch.setattr(Eventing, "_version", blind)
    with pytest.raises(Broken, match="EVENT"):
        act(simulation, pair)
