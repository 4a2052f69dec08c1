"""Stored batches in the two forms of the RustLog wire: rendered once, kept, and sliced.

Absent values are rendered as empty ones and counted as inexact; keys, headers and the rest have no
place on this wire.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from dragoman.codecs.rendering import Rendering

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Buffer
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice

BINARY = "rustlog"
JSON = "rustlog.json"
_WHOLE_BYTES_MAX = {BINARY: 4 * 1024 * 1024, JSON: 256 * 1024}
"""Batches with more payload are not rendered as a whole for the sake of one slice."""

_HUNDREDS = bytes(48 + byte // 100 if byte > 99 else 32 for byte in range(256))
_TENS = bytes(48 + byte // 10 % 10 if byte > 9 else 32 for byte in range(256))
_ONES = bytes(48 + byte % 10 for byte in range(256))
_ABOVE_99 = bytes(range(100, 256))
_ABOVE_9 = bytes(range(10, 256))


def _inexact(batch: RecordBatch, first: int, last: int) -> int:
    """How many of these records have no value at all."""
    if batch.values.validity is None:
        return 0
    return sum(not batch.values.is_present(index) for index in range(first, last))


def render_binary(batch: RecordBatch, first: int, last: int) -> Rendering:
    """Records `first` to `last` (exclusive), each `u32be length | payload`."""
    count = last - first
    offsets = batch.values.offsets[first : last + 1].tolist()
    start, stop = offsets[0], offsets[-1]
    blob = bytes(batch.values.blob[start:stop])
    inexact = _inexact(batch, first, last)
    size = offsets[1] - start
    if (stop - start) == size * count and (
        size == 0 or offsets == list(range(start, stop + 1, size))
    ):
        head = size.to_bytes(4, "big")
        if not size:
            return Rendering(head * count, None, 4, inexact)
        pieces = [blob[at : at + size] for at in range(0, len(blob), size)]
        return Rendering(head + head.join(pieces), None, 4 + size, inexact)
    sizes = [b - a for a, b in pairwise(offsets)]
    heads = array("I", sizes)
    heads.byteswap()
    joined = heads.tobytes()
    parts: list[bytes] = [b""] * (2 * count)
    parts[0::2] = [joined[at : at + 4] for at in range(0, 4 * count, 4)]
    parts[1::2] = [blob[a - start : b - start] for a, b in pairwise(offsets)]
    ends = array("I", accumulate([4 + size for size in sizes]))
    return Rendering(b"".join(parts), ends, 0, inexact)


def json_numbers(blob: Buffer) -> bytearray:
    """Every byte as three columns of digits, blanks instead of leading zeros, and a comma.

    Three translations and four strided assignments cost 5 ns a byte, where a list of integers costs
    twice as much; the blanks go in one pass at the end.
    """
    data = bytes(blob)
    text = bytearray(b",") * (4 * len(data))
    text[0::4] = data.translate(_HUNDREDS)
    text[1::4] = data.translate(_TENS)
    text[2::4] = data.translate(_ONES)
    return text


def json_bytes(blob: Buffer) -> int:
    """How long the numbers of these bytes are in JSON, with a comma after each."""
    data = bytes(blob)
    below_100 = len(data.translate(None, _ABOVE_99))
    below_10 = len(data.translate(None, _ABOVE_9))
    return 4 * len(data) - below_100 - below_10


def render_json(batch: RecordBatch, first: int, last: int) -> Rendering:
    """Records `first` to `last` (exclusive), each `{"offset":n,"payload":[...]},`."""
    offsets = batch.values.offsets[first : last + 1].tolist()
    start = offsets[0]
    numbers = json_numbers(batch.values.blob[start : offsets[-1]])
    parts: list[Buffer] = []
    for index, (a, b) in enumerate(pairwise(offsets), first):
        parts.append(b'{"offset":%d,"payload":[' % batch.offset_at(index))
        parts.append(numbers[4 * (a - start) : max(4 * (b - start) - 1, 0)] if b > a else b"")
        parts.append(b"]},")
    data = b"".join(parts).translate(None, b" ")
    # A record holds exactly one closing brace, and its comma follows.
    ends = array("I", accumulate([len(piece) + 1 for piece in data.split(b"}")[:-1]]))
    for index, end in enumerate(ends):
        ends[index] = end + 1
    return Rendering(data, ends, 0, _inexact(batch, first, last))


_RENDER: dict[str, Callable[[RecordBatch, int, int], Rendering]] = {
    BINARY: render_binary,
    JSON: render_json,
}


def rendered(cache: RenderingCache, piece: BatchSlice, form: str) -> Buffer:
    """The bytes of a slice in a form, from what is kept of its batch where that is worth it."""
    batch, first, last = piece
    kept = cache.get(batch, form)
    if kept is None:
        whole = len(batch.values.blob) <= _WHOLE_BYTES_MAX[form]
        if not whole and (first, last) != (0, batch.count):
            return _RENDER[form](batch, first, last).data
        kept = _RENDER[form](batch, 0, batch.count)
        if whole:
            cache.put(batch, form, kept)
    return kept.slice(first, last, batch.count)
