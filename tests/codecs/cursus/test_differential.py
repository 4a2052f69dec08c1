"""The generated kernels of all layouts against the interpreted declaration, on sound and broken
frames: equal on accept, reject and value."""

from __future__ import annotations

import random
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from construct import ConstructError, Struct, Terminated
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.codecs.cursus import wire
from dragoman.codecs.kernels import cursus_document, cursus_l1, cursus_l2, cursus_l3
from dragoman.codecs.malformed import Malformed
from dragoman.core.column import VarColumn
from support.cursus import batch, message, mutated, random_messages

if TYPE_CHECKING:
    from types import ModuleType

KERNELS = {
    "l3": cursus_l3,
    "l2": cursus_l2,
    "l1": cursus_l1,
    "document": cursus_document,
}
EVENTS = ("event_type", "schema_version", "aggregate_version", "metadata")
MEMBERS = ("offset", "seq_num", "producer_id", "key", "epoch", "payload")
INPUTS_PER_LAYOUT = 5_500
"""Four layouts and what hypothesis adds: above 20,000 inputs."""


def interpreted(layout: str, data: bytes) -> tuple[Any, ...] | None:
    declared = wire.LAYOUTS[layout]
    try:
        found = Struct("body" / declared, Terminated).parse(data).body
    except ConstructError:
        return None
    names = MEMBERS + (EVENTS if layout in ("l3", "document") else ())
    rows = [tuple(record[name] for name in names) for record in found.messages]
    return (
        found.topic,
        found.partition,
        found.acks,
        found.get("idempotent", False),
        found.seq_start,
        found.seq_end,
        rows,
    )


def cell(column: Any, index: int) -> Any:
    return column[index] if isinstance(column, VarColumn | range | array) else column


def generated(layout: str, kernel: ModuleType, data: bytes) -> tuple[Any, ...] | None:
    try:
        head, columns = kernel.decode(data, 0, len(data))
    except Malformed:
        return None
    names = MEMBERS + (EVENTS if layout in ("l3", "document") else ())
    rows = [
        tuple(cell(getattr(columns, name), index) for name in names)
        for index in range(columns.count)
    ]
    return (
        head.topic,
        head.partition,
        head.acks,
        getattr(head, "idempotent", False),
        head.seq_start,
        head.seq_end,
        rows,
    )


@pytest.mark.parametrize("layout", KERNELS)
def test_both_forms_agree_on_sound_and_on_mutated_frames(layout: str) -> None:
    dice = random.Random(f"cursus {layout}")
    accepted = 0
    sound = b""
    for index in range(INPUTS_PER_LAYOUT):
        if index % 8 == 0:
            sound = data = batch(random_messages(dice), layout=layout, partition=dice.randrange(9))
        else:
            data = mutated(sound, dice)
        expected = interpreted(layout, data)
        assert generated(layout, KERNELS[layout], data) == expected, data.hex()
        accepted += expected is not None
    assert accepted > INPUTS_PER_LAYOUT // 8


def test_a_body_may_lie_inside_a_larger_buffer() -> None:
    body = batch([message(seq_num=n, payload=b"m%d" % n) for n in range(1, 20)])
    data = b"before" + body + b"after"
    inside = cursus_l3.decode(data, 6, 6 + len(body))
    assert inside[1].payload.slices(0, 19) == [b"m%d" % n for n in range(1, 20)]


MESSAGES = st.lists(
    st.builds(
        message,
        seq_num=st.integers(0, 2**64 - 1),
        epoch=st.integers(-(2**63), 2**63 - 1),
        key=st.binary(max_size=4),
        payload=st.binary(max_size=9),
        event_type=st.binary(max_size=2),
        schema_version=st.integers(0, 2**32 - 1),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES, cut=st.integers(0, 400))
def test_both_forms_agree_on_whatever_clients_may_build(
    messages: list[dict[str, Any]], cut: int
) -> None:
    data = batch(messages)
    for part in (data, data[:cut], data + data[:cut]):
        assert generated("l3", cursus_l3, part) == interpreted("l3", part)
