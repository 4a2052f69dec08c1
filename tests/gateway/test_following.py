from __future__ import annotations

from dragoman.core.calls import ASSIGNED, Follow
from dragoman.core.clock import Now
from dragoman.core.outcome import Outcome
from dragoman.gateway.following import Following


def following(idle_us: int) -> Following:
    return Following("tag", Outcome(None), Follow("t", 2, 0, idle_us=idle_us), Now(0, 1000))


def test_it_is_silent_once_its_interval_is_over() -> None:
    one = following(500)
    assert not one.is_silent(Now(0, 1499))
    assert one.is_silent(Now(0, 1500))
    one.last_us = 1500
    assert not one.is_silent(Now(0, 1500))


def test_without_an_interval_it_never_is() -> None:
    assert not following(0).is_silent(Now(0, 10**15))


def test_it_begins_with_something_to_pull_from_its_own_place() -> None:
    one = following(0)
    assert one.due
    assert one.place == ("default", "t", 2)


def test_follows_of_what_two_groups_assign_have_two_places() -> None:
    places = {
        Following("tag", Outcome(None), Follow("t", ASSIGNED, group=group), Now(0, 0)).place
        for group in ("g", "h", "g")
    }
    assert places == {("default", "t", "g"), ("default", "t", "h")}
