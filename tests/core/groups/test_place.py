"""Which group a request is about."""

from __future__ import annotations

import pytest

from dragoman.core.calls import CreateGroup, CreateTopic
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.groups.group import Event
from dragoman.core.groups.place import Place, find, rule
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from support.log import Log


@pytest.fixture
def log() -> Log:
    """Group g with number 5 on topic t."""
    made = Log()
    made.ask(CreateTopic("t", 3))
    made.ask(CreateTopic("u", 3))
    made.ask(CreateGroup("t", "g", 5))
    return made


def where(log: Log, topic: str | int, name: str, number: int = 0, **rest: bool) -> Place:
    engine = log.engine
    return find(engine._directory, engine._groups, "default", topic, name, number, **rest)


def test_a_group_is_found_by_name_and_by_number(log: Log) -> None:
    for place in (where(log, "t", "g"), where(log, "t", "ignored", 5), where(log, 1, "g")):
        assert place.group is not None
        assert (place.topic, place.name, place.group.number) == ("t", "g", 5)


def test_a_number_that_no_group_has_is_the_name_of_one_to_come(log: Log) -> None:
    place = where(log, "t", "ignored", 6)
    assert (place.name, place.group) == ("6", None)


def test_a_number_that_is_only_a_name_finds_the_group_of_that_name(log: Log) -> None:
    log.ask(CreateGroup("t", "5"))
    log.ask(CreateGroup("t", "8", 9))
    assert where(log, "t", "", 5).name == "g"
    assert where(log, "t", "", 8).name == "8"


def test_a_namesake_on_another_topic_is_named(log: Log) -> None:
    place = where(log, "u", "g")
    assert place.group is None
    assert place.namesake is not None
    assert place.namesake.topic == "t"
    assert where(log, "u", "x").namesake is None


def test_a_namespace_that_is_missing_has_no_groups_where_that_will_do(log: Log) -> None:
    engine = log.engine
    place = find(engine._directory, engine._groups, "x", "t", "g", lenient=True)
    assert (place.home, place.group, place.namesake) == (None, None, None)
    with pytest.raises(EngineError) as refused:
        find(engine._directory, engine._groups, "x", "t", "g")
    assert refused.value.code is ErrorCode.UNKNOWN_NAMESPACE


def test_refusals_name_what_they_are_about(log: Log) -> None:
    place = where(log, "t", "g")
    for event, number, facts in (
        (Event.CREATE, 0, {"group": "g"}),
        (Event.HEAR, 0, {"group": "g", "member": "m", "generation": 0}),
        (Event.STALE, 7, {"current": 0, "requested": 7}),
    ):
        with pytest.raises(EngineError) as refused:
            rule(place, "m", event, number)
        assert refused.value.facts == facts
    assert place.namespace_number == DEFAULT_NAMESPACE_NUMBER
