"""The declaration against bytes that the published encoders wrote."""

from __future__ import annotations

import pytest
from construct import ConstructError

from dragoman.codecs.cursus.wire import BATCH_L1, BATCH_L2, BATCH_L3, LAYOUTS
from support.cursus import batch, message

EVENT = bytes.fromhex(
    "ba7c00017400000002022d31010000000000000009000000000000000900000001000000000000000500000000"
    "000000090002703100016b00000000000000070000000368c3a900014500000001000000000000000300027b7d"
)
TWO = bytes.fromhex(
    "ba7c00066f7264657273000000000131000000000000000001000000000000000200000002000000000000000000"
    "0000000000000100017000000000000000000000000000016100000000000000000000000000000000000000000000"
    "0000000000000000000200017000000000000000000000000000016200000000000000000000000000000000"
)
EMPTY = bytes.fromhex("ba7c000174000000000131000000000000000000000000000000000000000000")


def test_the_golden_message_has_these_values_and_bytes() -> None:
    found = BATCH_L3.parse(EVENT)
    (only,) = found.messages
    assert (found.topic, found.partition, found.acks, found.idempotent) == (b"t", 2, b"-1", True)
    assert (only.offset, only.seq_num, only.producer_id, only.key) == (5, 9, b"p1", b"k")
    assert (only.epoch, only.payload, only.event_type) == (7, "hé".encode(), b"E")
    assert (only.schema_version, only.aggregate_version, only.metadata) == (1, 3, b"{}")
    assert BATCH_L3.build(found) == EVENT


@pytest.mark.parametrize("golden", [TWO, EMPTY])
def test_golden_batches_survive_both_directions(golden: bytes) -> None:
    assert BATCH_L3.build(BATCH_L3.parse(golden)) == golden


def test_a_head_without_messages_takes_32_bytes() -> None:
    assert len(batch([])) == 32


def test_the_older_layouts_are_the_newest_without_its_last_members() -> None:
    newest = batch([message(key=b"k", payload=b"value")])
    event_bytes = 16
    assert batch([message(key=b"k", payload=b"value")], layout="l2") == newest[:-event_bytes]
    without_flag = newest[:11] + newest[12:-event_bytes]
    assert batch([message(key=b"k", payload=b"value")], layout="l1") == without_flag


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cut_off_batch_is_none_in_any_layout(layout: str) -> None:
    whole = batch([message()], layout=layout)
    for size in range(len(whole)):
        with pytest.raises(ConstructError):
            LAYOUTS[layout].parse(whole[:size])


def test_lengths_are_unsigned() -> None:
    data = BATCH_L2.build(BATCH_L2.parse(batch([], layout="l2")))
    for declared in (BATCH_L1, BATCH_L2, BATCH_L3):
        with pytest.raises(ConstructError):
            declared.parse(data[:2] + b"\xff\xff" + data[4:])
