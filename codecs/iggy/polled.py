"""Records as a poll's answer shows them: a stored batch is rendered once, whole, and then sliced.

What other dialects wrote is shown as far as this one can say it: a key as header `dragoman.key`, a
record without bytes with header `dragoman.empty`, so that the record never ends in the 45 bytes
that a client takes for the end of the answer.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final
from zlib import crc32

from dragoman.codecs.iggy.command import FIELD_BYTES_MAX, STATE_AVAILABLE
from dragoman.codecs.iggy.message import NO_ID
from dragoman.codecs.kernels import iggy_poll
from dragoman.codecs.rendering import Rendering
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.header import Header, HeaderKind, decode_headers, encode_headers

if TYPE_CHECKING:
    from collections.abc import Iterator


POLLED_BYTES: Final = 45
"""A polled message without headers and payload."""
KEY_HEADER: Final = "dragoman.key"
EMPTY_HEADER: Final = "dragoman.empty"
_EMPTY = Header(EMPTY_HEADER, HeaderKind.BOOL, b"\1")
SHOWN_BYTES_MAX: Final = POLLED_BYTES + len(
    encode_headers([_EMPTY, Header(KEY_HEADER, HeaderKind.RAW, b"")])
)
"""The most bytes that a record takes besides its value, key and headers at rest."""


def render(batch: RecordBatch) -> Rendering:
    """Every record of a batch as a polled message."""
    headers, inexact = _headers(batch)
    if batch.count == 1:
        value = batch.values[0] or b""
        shown = iggy_poll.encode_one(
            offset=batch.base_offset,
            state=STATE_AVAILABLE,
            timestamp_us=batch.timestamp_at(0),
            id=NO_ID if batch.ids is None else bytes(batch.ids),
            checksum=crc32(value),
            headers=headers if isinstance(headers, bytes) else headers[0] or b"",
            payload=value,
        )
        return Rendering(shown, None, len(shown), inexact)
    deltas = batch.offset_deltas
    base = batch.base_offset
    rendering = iggy_poll.encode_records(
        batch.count,
        offset=range(base, base + batch.count)
        if deltas is None
        else array("Q", [base + delta for delta in deltas]),
        state=STATE_AVAILABLE,
        timestamp_us=batch.base_timestamp_us if batch.timestamps is None else batch.timestamps,
        id=NO_ID if batch.ids is None else memoryview(batch.ids),
        checksum=array("I", map(crc32, batch.values.slices(0, batch.count))),
        headers=headers,
        payload=batch.values,
    )
    rendering.inexact = inexact
    return rendering


def _headers(batch: RecordBatch) -> tuple[bytes | VarColumn, int]:
    """The header bytes of all records (bytes: the same for all), and how many are not exact."""
    own = batch.origin == Origin.IGGY
    values = batch.values
    keys = None if own else batch.keys
    full = values.validity is None and (values.stride or len(set(values.offsets)) > batch.count)
    if batch.headers is None and keys is None and full:
        return b"", 0
    if own and full and batch.headers is not None and batch.headers.validity is None:
        return batch.headers, 0
    known: dict[bytes | None, tuple[bytes, bool]] = {None: (b"", True)}
    shown = []
    inexact = 0
    for index, value in enumerate(values):
        raw = None if batch.headers is None else batch.headers[index]
        found = known.get(raw)
        if found is None:
            found = known[raw] = _sayable(raw or b"")
        entries, exact = found
        if keys is not None and (key := keys[index]) is not None:
            if 0 < len(key) <= FIELD_BYTES_MAX:
                entries += encode_headers([Header(KEY_HEADER, HeaderKind.RAW, key)])
            else:
                exact = False
        if not value:
            entries += encode_headers([_EMPTY])
            exact = exact and value is not None
        inexact += not exact
        shown.append(entries)
    return VarColumn.of(shown), inexact


def _sayable(raw: bytes) -> tuple[bytes, bool]:
    """The headers of one record without those that the wire cannot carry, and whether it is all."""
    headers = list(decode_headers(raw))
    said = [
        header
        for header in headers
        if 0 < len(header.key.encode()) <= FIELD_BYTES_MAX
        and 0 < len(header.value) <= FIELD_BYTES_MAX
    ]
    return (raw, True) if len(said) == len(headers) else (encode_headers(said), False)


def batch_of(columns: iggy_poll.Columns) -> RecordBatch:
    """A poll's messages as a batch of records, with the keys and empty values of other dialects."""
    count = columns.count
    keys: list[bytes | None] = [None] * count
    headers: list[bytes | None] = [None] * count
    shown = columns.headers
    for index in range(count) if shown else ():
        raw = shown if isinstance(shown, bytes) else shown[index]
        headers[index], keys[index] = _unwrapped(raw or b"")
    batch = RecordBatch(
        count,
        columns.payload,
        origin=Origin.IGGY,
        keys=VarColumn.of(keys) if any(key is not None for key in keys) else None,
        headers=VarColumn.of(headers) if any(headers) else None,
        ids=columns.id,
    )
    offsets = list(_each(columns.offset, count))
    stamps = list(_each(columns.timestamp_us, count))
    batch.place(base_offset=offsets[0], timestamp_us=stamps[0], log_epoch=0)
    if offsets[-1] != offsets[0] + count - 1:
        batch.offset_deltas = array("I", [offset - offsets[0] for offset in offsets])
        batch.last_offset_delta = offsets[-1] - offsets[0]
    if stamps[-1] != stamps[0]:
        batch.timestamps = array("q", stamps)
        batch.max_timestamp_us = max(stamps)
    return batch


def _unwrapped(raw: bytes) -> tuple[bytes | None, bytes | None]:
    """One message's headers and key as another dialect's record had them."""
    key = None
    kept = []
    for header in decode_headers(raw):
        if header.key == KEY_HEADER and header.kind is HeaderKind.RAW:
            key = header.value
        elif header != _EMPTY:
            kept.append(header)
    return (encode_headers(kept) or None), key


def _each(values: int | range | array[int], count: int) -> Iterator[int]:
    """One number a message, where one for all may be given."""
    return iter([values] * count if isinstance(values, int) else values)
