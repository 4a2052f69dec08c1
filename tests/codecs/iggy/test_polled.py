from __future__ import annotations

from array import array
from zlib import crc32

from dragoman.codecs.iggy import polled, wire
from dragoman.codecs.iggy.polled import batch_of, render
from dragoman.codecs.kernels import iggy_poll
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.header import Header, HeaderKind, decode_headers, encode_headers

NOW = 1_700_000_000_000_000


def foreign(
    *values: bytes | None,
    keys: list[bytes | None] | None = None,
    headers: list[bytes | None] | None = None,
) -> RecordBatch:
    batch = RecordBatch(
        len(values),
        VarColumn.of(values),
        origin=Origin.CURSUS,
        keys=None if keys is None else VarColumn.of(keys),
        headers=None if headers is None else VarColumn.of(headers),
    )
    batch.place(base_offset=7, timestamp_us=NOW, log_epoch=0)
    return batch


def shown(batch: RecordBatch) -> list[wire.Any]:
    rendering = render(batch)
    data = bytes(rendering.data)
    found = wire.POLLED_MESSAGES.parse(bytes(16) + data).messages
    sizes = [len(wire.POLLED_MESSAGE.build(one)) for one in found]
    assert [rendering.end(i) for i in range(len(found) + 1)] == [
        sum(sizes[:i]) for i in range(len(found) + 1)
    ]
    return list(found)


def test_records_are_shown_with_offset_time_and_checksum() -> None:
    first, second = shown(foreign(b"one", b"three"))
    assert (first.offset, first.timestamp_us, first.payload) == (7, NOW, b"one")
    assert (second.offset, second.state, second.checksum) == (8, 1, crc32(b"three"))


def test_a_record_without_an_id_shows_id_zero() -> None:
    assert shown(foreign(b"x"))[0].id == bytes(16)


def test_gaps_in_offsets_are_kept() -> None:
    batch = foreign(b"a", b"b")
    batch.offset_deltas = array("I", (0, 5))
    assert [one.offset for one in shown(batch)] == [7, 12]


def test_a_time_of_its_own_is_shown_for_each_record() -> None:
    batch = foreign(b"a", b"b")
    batch.timestamps = array("q", (NOW, NOW + 3))
    assert [one.timestamp_us for one in shown(batch)] == [NOW, NOW + 3]


def test_a_record_without_bytes_never_ends_within_45_bytes() -> None:
    for batch in (foreign(b""), foreign(None), foreign(b"x", b"", None), foreign(b"", b"")):
        for one in shown(batch):
            raw = wire.POLLED_MESSAGE.build(one)
            assert len(raw) > 45
            headers = {each.key: each for each in decode_headers(one.headers)}
            assert (polled.EMPTY_HEADER in headers) is (one.payload == b"")


def test_only_a_tombstone_is_counted_as_inexact() -> None:
    assert render(foreign(b"x", b"", None)).inexact == 1


def test_a_key_is_shown_as_a_header() -> None:
    (one,) = shown(foreign(b"x", keys=[b"\xffk"]))
    assert list(decode_headers(one.headers)) == [Header("dragoman.key", HeaderKind.RAW, b"\xffk")]


def test_keys_that_fit_no_header_are_left_out_and_counted() -> None:
    batch = foreign(b"a", b"b", b"c", b"d", keys=[b"", b"k" * 256, None, b"k" * 255])
    rendering = render(batch)
    assert rendering.inexact == 2
    assert [bool(one.headers) for one in shown(batch)] == [False, False, False, True]


def test_headers_that_the_wire_cannot_carry_are_left_out_and_counted() -> None:
    raw = encode_headers(
        [
            Header("keep", HeaderKind.STRING, b"v"),
            Header("empty", HeaderKind.RAW, b""),
            Header("long", HeaderKind.RAW, bytes(256)),
            Header("k" * 256, HeaderKind.RAW, b"v"),
        ]
    )
    batch = foreign(b"a", b"b", headers=[raw, None])
    assert render(batch).inexact == 1
    assert [each.key for each in decode_headers(shown(batch)[0].headers)] == ["keep"]


def test_a_key_of_this_dialect_is_not_echoed() -> None:
    batch = foreign(b"x", keys=[b"k"])
    batch.origin = Origin.IGGY
    assert shown(batch)[0].headers == b""


def test_a_client_sees_keys_and_empty_values_again() -> None:
    raw = encode_headers([Header("h", HeaderKind.UINT8, b"\1")])
    batch = foreign(b"a", b"", b"c", keys=[b"k", None, None], headers=[raw, None, None])
    batch.timestamps = array("q", (NOW, NOW + 1, NOW + 2))
    data = bytes(16) + bytes(render(batch).data)
    _, columns = iggy_poll.decode(data, 0, len(data))
    again = batch_of(columns)
    assert [(r.offset, r.timestamp_us, r.value, r.key, r.headers) for r in again.records()] == [
        (7, NOW, b"a", b"k", raw),
        (8, NOW + 1, b"", None, None),
        (9, NOW + 2, b"c", None, None),
    ]
