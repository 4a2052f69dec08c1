"""Messages into columns and back: what the same dialect reads is what it wrote."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest

from dragoman.codecs.cursus import columns
from dragoman.codecs.cursus.wire import BATCH_L3
from dragoman.codecs.kernels import cursus_l3
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.header import Header, HeaderKind, encode_headers
from support.cursus import batch, message, random_messages

FIELDS = tuple(message())


def stored(messages: list[dict[str, Any]]) -> RecordBatch:
    data = batch(messages)
    found = cursus_l3.decode(data, 0, len(data))[1]
    return columns.to_batch(found, columns.headers_of(found))


def shown(record_batch: RecordBatch, **options: Any) -> list[dict[str, Any]]:
    rendering = columns.render(record_batch, **options)
    head = cursus_l3.encode_head(b"t", 0, b"1", False, 0, 0, record_batch.count)
    found = BATCH_L3.parse(head + rendering.data).messages
    assert rendering.end(record_batch.count) == len(rendering.data)
    return [{name: row[name] for name in FIELDS} for row in found]


def test_every_field_of_any_batch_reads_back_exactly() -> None:
    dice = random.Random("cursus columns")
    for _ in range(300):
        messages = random_messages(dice)
        if not messages:
            continue
        record_batch = stored(messages)
        record_batch.place(base_offset=70, timestamp_us=1, log_epoch=0)
        expected = [row | {"offset": 70 + index} for index, row in enumerate(messages)]
        assert shown(record_batch) == expected
        assert columns.render(record_batch).inexact == 0


def test_every_slice_of_a_rendering_holds_whole_messages() -> None:
    sizes = (0, 3, 3, 9)
    record_batch = stored([message(seq_num=n, payload=b"x" * n) for n in sizes])
    record_batch.place(base_offset=0, timestamp_us=1, log_epoch=0)
    rendering = columns.render(record_batch)
    for first in range(4):
        for last in range(first + 1, 5):
            head = cursus_l3.encode_head(b"t", 0, b"1", False, 0, 0, last - first)
            found = BATCH_L3.parse(head + bytes(rendering.slice(first, last, 4))).messages
            assert [row.offset for row in found] == list(range(first, last))


def test_an_empty_key_is_no_key_and_a_zero_sequence_none() -> None:
    record_batch = stored([message(seq_num=0, key=b""), message(seq_num=0, key=b"k")])
    assert record_batch.keys is not None
    assert list(record_batch.keys) == [None, b"k"]
    assert record_batch.sequence_at(0) is None
    assert stored([message(), message(seq_num=2)]).keys is None


def test_batches_without_event_fields_have_no_headers() -> None:
    assert stored([message(), message(seq_num=2)]).headers is None


def test_event_fields_are_typed_headers_where_they_say_something() -> None:
    record_batch = stored([message(event_type=b"E", schema_version=2), message(metadata=b"\xff")])
    assert record_batch.headers is not None
    assert list(record_batch.headers) == [
        encode_headers(
            [
                Header("cursus.event_type", HeaderKind.STRING, b"E"),
                Header("cursus.schema_version", HeaderKind.UINT32, b"\2\0\0\0"),
            ]
        ),
        encode_headers([Header("cursus.metadata", HeaderKind.RAW, b"\xff")]),
    ]


def foreign(values: list[bytes | None], **given: Any) -> RecordBatch:
    record_batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.IGGY, **given)
    record_batch.place(base_offset=5, timestamp_us=1, log_epoch=0)
    return record_batch


def test_foreign_records_have_no_producer_and_sequence_0() -> None:
    (row,) = shown(foreign([b"x"]))
    assert row == message(offset=5, seq_num=0, producer_id=b"")


def test_an_absent_value_shows_as_empty_and_is_counted() -> None:
    record_batch = foreign([None, b"", b"x"])
    assert [row["payload"] for row in shown(record_batch)] == [b"", b"", b"x"]
    assert columns.render(record_batch).inexact == 1


def test_keys_that_the_wire_cannot_say_are_left_out_and_counted() -> None:
    keys = VarColumn.of([b"", b"k" * 65_536, b"k", None])
    record_batch = foreign([b"x"] * 4, keys=keys)
    assert [row["key"] for row in shown(record_batch)] == [b"", b"", b"k", b""]
    assert columns.render(record_batch).inexact == 2


def test_long_producers_are_left_out() -> None:
    record_batch = foreign([b"x", b"y"], producers=(b"p" * 65_536, b"q"))
    record_batch.producer_index = array("I", (0, 1))
    assert [row["producer_id"] for row in shown(record_batch)] == [b"", b"q"]


@pytest.mark.parametrize(
    "header",
    [
        Header("other", HeaderKind.STRING, b"x"),
        Header("cursus.schema_version", HeaderKind.STRING, b"1"),
        Header("cursus.aggregate_version", HeaderKind.UINT64, b"1"),
        Header("cursus.event_type", HeaderKind.STRING, b"x" * 65_536),
    ],
)
def test_headers_that_are_not_this_dialects_are_counted(header: Header) -> None:
    raw = encode_headers([header])
    record_batch = foreign([b"x", b"y"], headers=VarColumn.of([raw, None]))
    assert columns.render(record_batch).inexact == 1
    assert shown(record_batch)[0] == message(offset=5, seq_num=0, producer_id=b"")


def test_headers_that_are_none_are_passed_over() -> None:
    record_batch = foreign([b"x"], headers=VarColumn.of([b"\xff\xff\xff\xff\xff"]))
    assert columns.render(record_batch).inexact == 1
    assert shown(record_batch) == [message(offset=5, seq_num=0, producer_id=b"")]


def test_offsets_with_gaps_are_shown_as_they_are() -> None:
    record_batch = foreign([b"x", b"y"])
    record_batch.offset_deltas = array("I", (0, 7))
    assert [row["offset"] for row in shown(record_batch)] == [5, 12]


def test_a_client_writes_offset_0_everywhere() -> None:
    assert [row["offset"] for row in shown(foreign([b"x", b"y"]), offsets=0)] == [0, 0]


def test_more_unlike_events_than_are_remembered_are_all_kept() -> None:
    count = 5000
    messages = [message(seq_num=n + 1, event_type=b"%d" % n) for n in range(count)]
    record_batch = stored(messages)
    record_batch.place(base_offset=0, timestamp_us=1, log_epoch=0)
    assert [row["event_type"] for row in shown(record_batch)] == [b"%d" % n for n in range(count)]


def test_l1_has_all_but_the_event_fields_and_counts_who_had_some() -> None:
    dice = random.Random("cursus l1")
    for _ in range(100):
        messages = random_messages(dice)
        if not messages:
            continue
        record_batch = stored(messages)
        record_batch.place(base_offset=3, timestamp_us=1, log_epoch=0)
        rendering = columns.render_l1(record_batch)
        expected = [row | {"offset": 3 + index} for index, row in enumerate(messages)]
        assert batch(expected, layout="l1").endswith(rendering.data)
        assert rendering.end(len(messages)) == len(rendering.data)
        events = ("event_type", "schema_version", "aggregate_version", "metadata")
        assert rendering.inexact == sum([any(row[name] for name in events) for row in messages])
