"""Subscribers of a group: each record once, to one of them, in order, and none left out."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.simulation.audience import Audience
from dragoman.simulation.clock import SimClock
from dragoman.simulation.model import Model, Stream
from dragoman.simulation.rule import Broken, Rule

VALUES = [b"a", b"b", b"c", b"d"]


class Line:
    """As much of a connection as an audience looks at."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_gone = False


class House:
    """An audience of a topic with one partition, into which the four values were sent."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.model = Model(self.clock)
        self.topic = self.model.topic("t")
        self.topic.made(1)
        self.audience = Audience("group g of t", self.topic, self.model, self.clock)
        self.lines: list[Any] = [Line(1), Line(2)]

    def subscribe(self, at: int = 0) -> None:
        self.audience.subscribed(self.lines[at])

    def send(self) -> None:
        self.clock.advance(1)
        stream = Stream("one")
        for value in VALUES:
            self.model.sends(value, self.topic, 0, stream)

    def push(self, values: bytes, at: int = 0) -> None:
        for value in values:
            self.audience.pushed(self.lines[at], bytes([value]))

    def check(self) -> None:
        """All values are read back, in their order, and held against what was pushed."""
        rows = list(enumerate(VALUES))
        self.model.read_records(self.model.moment(self.topic, 0), 0, rows, len(rows))
        self.audience.check()


@pytest.fixture
def house() -> House:
    made = House()
    made.subscribe()
    made.send()
    return made


def breaks(rule: Rule) -> Any:
    return pytest.raises(Broken, match=f"^{rule.name}: ")


def test_subscribers_share_what_comes(house: House) -> None:
    house.subscribe(1)
    house.push(b"ac")
    house.push(b"bd", 1)
    house.audience.rest()
    house.check()
    assert house.audience.count == 4


def test_a_record_is_pushed_once(house: House) -> None:
    house.subscribe(1)
    house.push(b"ab")
    with breaks(Rule.PUSHED):
        house.push(b"b", 1)


def test_a_record_is_pushed_once_even_where_all_had_left_between(house: House) -> None:
    house.push(b"ab")
    house.lines[0].is_gone = True
    house.subscribe(1)
    with breaks(Rule.PUSHED):
        house.push(b"b", 1)


def test_records_come_in_their_order(house: House) -> None:
    house.push(b"ba")
    with breaks(Rule.PUSHED):
        house.check()


def test_none_is_left_out_between_two_that_came(house: House) -> None:
    house.subscribe(1)
    house.push(b"a")
    house.lines[0].is_gone = True
    house.push(b"c", 1)
    with breaks(Rule.PUSHED):
        house.check()


def test_what_was_sent_to_subscribers_that_stayed_came_to_one_of_them(house: House) -> None:
    house.push(b"abc")
    house.audience.rest()
    with breaks(Rule.PUSHED):
        house.check()


def test_who_left_need_not_have_had_everything(house: House) -> None:
    house.push(b"ab")
    house.lines[0].is_gone = True
    house.audience.rest()
    house.check()


def test_while_nobody_is_there_records_are_passed_over(house: House) -> None:
    house.push(b"a")
    house.lines[0].is_gone = True
    house.subscribe(1)
    house.push(b"d", 1)
    house.check()


def test_what_was_sent_before_a_subscription_need_not_come() -> None:
    house = House()
    house.send()
    house.subscribe()
    house.audience.rest()
    house.check()


def test_what_is_deleted_need_not_come(house: House) -> None:
    house.push(b"ad")
    house.model.deletes(house.topic, 0, 3)
    house.audience.rest()
    house.check()


def test_who_has_not_subscribed_is_pushed_nothing(house: House) -> None:
    with breaks(Rule.PUSHED):
        house.push(b"a", 1)
    house.audience.ended(house.lines[0])
    with breaks(Rule.PUSHED):
        house.push(b"a")


def test_what_nobody_sent_is_a_phantom(house: House) -> None:
    with breaks(Rule.PHANTOM):
        house.push(b"z")


def test_what_was_pushed_is_there_for_ever(house: House) -> None:
    house.push(b"a")
    with breaks(Rule.LOST):
        house.model.check_kept(house.topic)
