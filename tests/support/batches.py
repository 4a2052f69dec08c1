"""Hypothesis strategies for record batches of every shape that a dialect can make."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import strategies as st

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)


def columns(count: int, max_size: int = 12) -> st.SearchStrategy[VarColumn]:
    """Columns of `count` values, some of them absent."""
    value = st.none() | st.binary(max_size=max_size)
    return st.lists(value, min_size=count, max_size=count).map(VarColumn.of)


@st.composite
def batches(draw: st.DrawFn, count_max: int = 6) -> RecordBatch:
    """A batch that has not been placed."""
    count = draw(st.integers(1, count_max))
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["keys"] = draw(columns(count))
    if draw(st.booleans()):
        fields["headers"] = draw(columns(count))
    if draw(st.booleans()):
        fields["ids"] = draw(st.binary(min_size=16 * count, max_size=16 * count))
    if draw(st.booleans()):
        fields["producer_timestamps"] = array("q", [draw(INT64) for _ in range(count)])
    if draw(st.booleans()):
        names = draw(st.lists(st.binary(max_size=5), min_size=1, max_size=3, unique=True))
        fields["producers"] = tuple(names)
        if len(names) > 1:
            at = st.integers(0, len(names) - 1)
            fields["producer_index"] = array("I", [draw(at) for _ in range(count)])
    match draw(st.integers(0, 2)):
        case 1:
            fields["producer_epoch"] = draw(INT64)
        case 2:
            fields["epochs"] = array("q", [draw(INT64) for _ in range(count)])
    match draw(st.integers(0, 2)):
        case 1:
            fields["base_sequence"] = draw(st.integers(0, 2**64 - 1 - count_max))
        case 2:
            fields["sequences"] = array("Q", [draw(UINT64) for _ in range(count)])
    origin = draw(st.sampled_from(list(Origin)))
    return RecordBatch(count, draw(columns(count)), origin=origin, **fields)


@st.composite
def placed_batches(draw: st.DrawFn, base_offset: int | None = None) -> RecordBatch:
    """A batch as the engine has placed it."""
    batch = draw(batches())
    base = draw(st.integers(0, 2**63)) if base_offset is None else base_offset
    batch.place(
        base_offset=base,
        timestamp_us=draw(INT64),
        log_epoch=draw(st.integers(0, 2**32 - 1)),
    )
    return batch
