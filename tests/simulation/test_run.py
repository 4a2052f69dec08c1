"""One run and its report: what is told of a run that held and of one that did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.engine import Engine
from dragoman.core.storage.options import Durability
from dragoman.simulation.run import Simulation, run
from dragoman.simulation.server import Stop

if TYPE_CHECKING:
    from dragoman.core.clock import Now


class Mute(Engine):
    """An engine whose clock stands still: nothing expires and no long poll ends."""

    def tick(self, now: Now) -> None:
        raise RuntimeError("the clock stands still")


def test_a_run_that_held_is_told_in_one_line() -> None:
    report = run(1, 100)
    assert report.held
    assert report.line().startswith("seed 1: held (")
    assert report.counts["lives"] >= 2
    assert report.counts["records"] > 0


def test_other_seeds_are_other_runs() -> None:
    assert run(1, 30).digest != run(2, 30).digest


def test_a_broken_run_tells_the_rule_its_last_steps_and_how_to_see_it_again() -> None:
    report = run(1, 50, make_engine=Mute)
    assert report.broken == "FAULT"
    story = report.story()
    assert "the clock stands still" in story
    assert "dragoman sim --seed 1 --operations 50 --trace" in story
    assert 0 < len(report.last_steps) <= 40


def test_every_step_is_told_to_who_wants_it() -> None:
    lines: list[str] = []
    report = run(1, 20, echo=lines.append)
    assert len(lines) == report.counts["steps"]


def test_an_engine_that_fails_behind_a_session_is_a_fault() -> None:
    class Failing(Engine):
        def handle(self, request: Any, client: Any, now: Now) -> Any:
            raise RuntimeError("not today")

    report = run(1, 20, make_engine=Failing)
    assert report.broken == "FAULT"
    assert "not today" in report.detail


@pytest.mark.parametrize("durability", [Durability.OS, Durability.INTERVAL])
def test_power_is_cut_only_where_nothing_promised_may_be_lost(durability: Durability) -> None:
    seeds = (Simulation(seed) for seed in range(100))
    found = next(one for one in seeds if one.weather.durability is durability)
    assert found.weather.power_cuts == 0
    found.server.start()
    found.stop(Stop.POWER)
    assert found.stops[Stop.KILL] == 1
