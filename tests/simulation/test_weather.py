"""What runs have to live through, over many seeds."""

from __future__ import annotations

from dataclasses import fields
from random import Random

from dragoman.core.storage.options import Durability
from dragoman.simulation.weather import Weather

DRAWN = [Weather.drawn(Random(seed)) for seed in range(300)]


def test_every_trouble_comes_in_some_runs_and_not_in_others() -> None:
    for field in fields(Weather):
        values = {getattr(weather, field.name) for weather in DRAWN}
        assert len(values) > 1, field.name


def test_power_is_cut_only_where_acknowledgements_are_synced() -> None:
    relaxed = [weather for weather in DRAWN if weather.durability is not Durability.FSYNC]
    assert relaxed
    assert not any(weather.power_cuts for weather in relaxed)


def test_most_runs_keep_every_promise_through_power_cuts() -> None:
    assert sum([bool(weather.power_cuts) for weather in DRAWN]) > 100


def test_troubles_leave_room_for_a_step_without_one() -> None:
    for weather in DRAWN:
        chances = weather.kills + weather.power_cuts + weather.stops + weather.sync_failures
        assert chances + weather.full_disks + weather.hang_ups + weather.jumps <= 80
