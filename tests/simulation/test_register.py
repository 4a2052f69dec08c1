"""Committed offsets: which reads some order of effects explains, and which none does."""

from __future__ import annotations

import pytest

from dragoman.simulation.model import Topic
from dragoman.simulation.register import ANY, Register, Registers
from dragoman.simulation.rule import Broken


def test_nothing_is_committed_at_first() -> None:
    register = Register("r")
    register.reads((None,), 1, 2)
    with pytest.raises(Broken):
        register.reads((5,), 1, 2)


def test_an_acknowledged_commit_is_read_by_whoever_asks_afterwards() -> None:
    register = Register("r")
    register.asks(5, 1).done = 2
    register.reads((5,), 3, 4)
    with pytest.raises(Broken):
        register.reads((None,), 3, 4)


def test_who_asks_while_a_commit_is_under_way_may_be_told_either() -> None:
    register = Register("r")
    register.asks(5, 2).done = 6
    register.reads((None,), 1, 4)
    register.reads((5,), 1, 4)


def test_a_commit_without_an_answer_may_count_or_not_until_it_was_read() -> None:
    register = Register("r")
    register.asks(5, 1)
    register.reads((None,), 2, 3)
    register.reads((5,), 4, 5)
    with pytest.raises(Broken):
        register.reads((None,), 6, 7)


def test_a_commit_that_was_followed_by_another_is_over() -> None:
    register = Register("r")
    register.asks(5, 1).done = 2
    register.asks(6, 3).done = 4
    with pytest.raises(Broken):
        register.reads((5,), 5, 6)


def test_of_two_commits_at_once_either_may_be_the_last() -> None:
    register = Register("r")
    first, second = register.asks(5, 1), register.asks(6, 2)
    first.done, second.done = 4, 3
    register.reads((5,), 5, 6)
    register.reads((6,), 5, 6)


def test_a_commit_whose_connection_is_over_counts_no_later_than_that() -> None:
    register = Register("r")
    lost = register.asks(5, 1)
    lost.until = 2
    register.reads((5,), 3, 4)
    register.asks(6, 5).done = 6
    with pytest.raises(Broken):
        register.reads((5,), 7, 8)


def test_a_commit_of_the_server_itself_may_be_of_any_offset() -> None:
    register = Register("r")
    register.asks(ANY, 1)
    register.reads((77,), 2, 3)


def test_a_refused_commit_never_counts() -> None:
    register = Register("r")
    register.forget(register.asks(5, 1))
    with pytest.raises(Broken):
        register.reads((5,), 2, 3)


def test_a_topic_that_is_made_again_begins_without_commits() -> None:
    registers, topic = Registers(), Topic("t")
    topic.made(1)
    registers.of(topic, "group", "g", 0).asks(5, 1).done = 2
    topic.going()
    registers.of(topic, "group", "g", 0).reads((None,), 3, 4)
    assert len(registers) == 2
