"""The vocabulary: requests and replies are pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from dragoman.core import calls, event, group, topology
from dragoman.core.calls import BatchSlice, Fetched
from dragoman.core.clock import Now
from dragoman.core.outcome import Outcome
from support.log import batch

if TYPE_CHECKING:
    from types import ModuleType


def test_every_request_and_reply_is_a_class_of_this_module() -> None:
    for found in (*get_args(calls.Request), *get_args(calls.Reply)):
        assert getattr(calls, found.__name__) is found
        assert found.__doc__


@pytest.mark.parametrize("vocabulary", [topology, group, event])
def test_every_class_of_the_other_vocabularies_is_found_here(vocabulary: ModuleType) -> None:
    own = [each for each in vars(vocabulary).values() if isinstance(each, type)]
    for found in own:
        if found.__module__ == vocabulary.__name__:
            assert getattr(calls, found.__name__) is found


def test_a_fetched_reply_counts_its_records() -> None:
    one = batch(b"a", b"b", b"c")
    reply = Fetched("default", "t", 0, [BatchSlice(one, 1, 3), BatchSlice(one, 0, 1)], 0, 3, 3, 0)
    assert reply.count == 3
    assert [piece.record_count for piece in reply.slices] == [2, 1]


def test_an_outcome_is_ready_unless_it_is_promised() -> None:
    assert Outcome(calls.Ponged()).ready
    assert not Outcome(None, 5, ready=False).ready


def test_now_is_two_clocks() -> None:
    assert Now(1, 2) == (1, 2)
