"""Acknowledgements, whole and in part, held against what was sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.acknowledged import acknowledged
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure


def produce(*, base: int | None = 5, acks: calls.Acks = calls.Acks.LEADER) -> calls.Produce:
    """Three records of producer `p`, epoch 9, numbered from `base`."""
    batch = RecordBatch(3, VarColumn.of([b"a", b"b", b"c"]), origin=Origin.NONE)
    if base is not None:
        batch.producers, batch.producer_epoch, batch.base_sequence = (b"p",), 9, base
    return calls.Produce("t", batch, 1, acks=acks)


def heard(request: calls.Produce, **answer: Any) -> Any:
    return acknowledged(request, orjson.dumps({"status": "OK", "last_offset": 12} | answer))


WHOLE = calls.Produced(1, 10, 3)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"seq_start": 5, "seq_end": 7, "producer_id": "p", "producer_epoch": 9},
        {"seq_start": 0, "seq_end": 0, "producer_id": "", "producer_epoch": 0},
        {"leader": "", "error": ""},
        {"leader": None, "seq_end": None},
    ],
)
def test_much_and_little_told_are_one_acknowledgement(more: dict[str, Any]) -> None:
    assert heard(produce(), **more) == WHOLE


def test_the_leader_is_told_along() -> None:
    assert heard(produce(), leader="h:1").leader == "h:1"


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (7, calls.Produced(1, 10, 3)),
        (6, calls.Produced(1, 11, 2)),
        (5, calls.Produced(1, 12, 1)),
        (4, calls.Produced(1, -1, 0)),
        (0, calls.Produced(1, -1, 0)),
    ],
)
def test_a_part_is_counted_by_its_last_sequence(end: int, expected: calls.Produced) -> None:
    assert heard(produce(), status="PARTIAL", seq_end=end) == expected


def test_a_part_of_records_without_sequences_is_nothing_to_build_on() -> None:
    reply = heard(produce(base=None), status="PARTIAL", seq_end=6)
    assert isinstance(reply, Failure)
    assert reply.code is ErrorCode.INTERNAL


@pytest.mark.parametrize(
    "other",
    [
        {"seq_end": 4},
        {"seq_end": 8},
        {"status": "PARTIAL", "seq_end": 8},
        {"producer_id": "q"},
        {"producer_id": "p", "producer_epoch": 8},
    ],
)
def test_what_acknowledges_something_else_breaks_the_protocol(other: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        heard(produce(), **other)


def test_a_bare_ok_counts_where_nothing_more_was_asked() -> None:
    unasked = produce(acks=calls.Acks.NONE)
    assert acknowledged(unasked, b"OK") == calls.Produced(1, -1, 3)
    with pytest.raises(ProtocolError):
        acknowledged(produce(), b"OK")


def test_a_refusal_is_one_whatever_it_leaves_out() -> None:
    reply = acknowledged(produce(), b'{"status":"ERROR"}')
    assert isinstance(reply, Failure)
    moved = acknowledged(produce(), b'{"status":"ERROR","error":"NOT_LEADER","leader":"h:1"}')
    assert isinstance(moved, Failure)
    assert (moved.code, moved.facts["leader"]) == (ErrorCode.NOT_LEADER, "h:1")
