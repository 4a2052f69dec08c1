"""Numbers of namespaces and topics."""

from __future__ import annotations

from dragoman.core.number import next_number


def test_the_next_number_follows_the_highest_ever_given() -> None:
    assert next_number(0, (), 10) == 1
    assert next_number(7, {2}, 10) == 8
    assert next_number(9, (), 10) == 10


def test_past_the_last_number_the_first_free_one_is_taken() -> None:
    assert next_number(10, {1, 2, 10}, 10) == 3
