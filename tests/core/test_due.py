"""What is due comes out in order, what is forgotten costs nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.due import Due
from dragoman.core.outcome import Outcome


def outcome() -> Outcome:
    return Outcome(None, ready=False)


def test_what_is_due_comes_out_in_the_order_of_its_time() -> None:
    deadlines: Due[Outcome] = Due()
    late, early = outcome(), outcome()
    deadlines.put(late, 20)
    deadlines.put(early, 10)
    assert deadlines.take_due(9) == []
    assert deadlines.take_due(20) == [early, late]
    assert deadlines.take_due(99) == []


def test_no_more_is_taken_than_asked_for() -> None:
    deadlines: Due[Outcome] = Due()
    first, second = outcome(), outcome()
    deadlines.put(first, 1)
    deadlines.put(second, 2)
    assert deadlines.take_due(9, 1) == [first]
    assert deadlines.take_due(9, 1) == [second]


def test_what_is_forgotten_is_never_due() -> None:
    deadlines: Due[Outcome] = Due()
    one = outcome()
    deadlines.put(one, 10)
    deadlines.forget(one)
    deadlines.forget(one)
    assert deadlines.take_due(10) == []


def test_what_is_put_again_is_due_once_at_its_new_time() -> None:
    deadlines: Due[Outcome] = Due()
    one = outcome()
    deadlines.put(one, 10)
    deadlines.put(one, 20)
    assert deadlines.take_due(15) == []
    assert deadlines.take_due(25) == [one]


def test_forgotten_entries_do_not_pile_up() -> None:
    deadlines: Due[Outcome] = Due()
    for due in range(10_000):
        one = outcome()
        deadlines.put(one, due)
        deadlines.forget(one)
    assert len(deadlines._heap) < 200


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=60), st.integers(0, 50))
def test_exactly_what_is_due_and_not_forgotten_comes_out(
    entries: list[tuple[int, bool]], now: int
) -> None:
    deadlines: Due[Outcome] = Due()
    expected = []
    for due, is_forgotten in entries:
        one = outcome()
        deadlines.put(one, due)
        if is_forgotten:
            deadlines.forget(one)
        elif due <= now:
            expected.append((due, one))
    expected.sort(key=lambda entry: entry[0])
    assert deadlines.take_due(now) == [one for _, one in expected]
