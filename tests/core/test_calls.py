"""The vocabulary: requests and replies are pairs."""

from __future__ import annotations

from typing import get_args

from dragoman.core import calls
from dragoman.core.calls import (
    BatchSlice,
    Fetched,
    PartitionDescription,
    TopicConfig,
    TopicDescription,
)
from dragoman.core.clock import Now
from dragoman.core.outcome import Outcome
from support.log import batch


def test_every_request_and_reply_is_a_class_of_this_module() -> None:
    for found in (*get_args(calls.Request), *get_args(calls.Reply)):
        assert getattr(calls, found.__name__) is found
        assert found.__doc__


def test_a_fetched_reply_counts_its_records() -> None:
    one = batch(b"a", b"b", b"c")
    reply = Fetched("default", "t", 0, [BatchSlice(one, 1, 3), BatchSlice(one, 0, 1)], 0, 3, 3, 0)
    assert reply.count == 3
    assert [piece.record_count for piece in reply.slices] == [2, 1]


def test_a_topic_sums_its_partitions() -> None:
    partitions = [PartitionDescription(n, 0, 2, 9, 7, 100, 1) for n in range(3)]
    topic = TopicDescription("default", "t", 1, 0, TopicConfig(), partitions)
    assert (topic.size_bytes, topic.records) == (300, 15)


def test_an_outcome_is_ready_unless_it_is_promised() -> None:
    assert Outcome(calls.Ponged()).ready
    assert not Outcome(None, 5, ready=False).ready


def test_now_is_two_clocks() -> None:
    assert Now(1, 2) == (1, 2)
