"""Stored batches as V1 writes them, `<offset>:<value>,` a record, kept per batch and cut to
size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from dragoman.codecs.rendering import Rendering
from dragoman.codecs.v1.escape import escape, is_plain, may_need_escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.rendering import Buffer, RenderingCache
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice


class Items(Rendering):
    """One batch's items, each with its comma.

    Attributes:
        escaped: The offsets of the records whose values are escaped, rising.
    """

    __slots__ = ("escaped",)

    def __init__(self, data: bytes, ends: Sequence[int], escaped: Sequence[int]) -> None:
        super().__init__(data, ends, inexact=len(escaped))
        self.escaped = escaped


def render(batch: RecordBatch, *, spaces: bool) -> Items:
    """Renders every record of a batch; an absent value is written as an empty one.

    Args:
        spaces: Spaces inside values are escaped as well.
    """
    count = batch.count
    values = batch.values.slices(0, count)
    escaped: list[int] = []
    if may_need_escape(bytes(batch.values.blob)):
        for index, value in enumerate(values):
            if not is_plain(value, spaces=spaces):
                values[index] = escape(value)
                escaped.append(batch.offset_at(index))
    if batch.offset_deltas is None:
        offsets: Sequence[int] = range(batch.base_offset, batch.base_offset + count)
    else:
        offsets = [batch.offset_at(index) for index in range(count)]
    items = [b"%d:%b," % pair for pair in zip(offsets, values, strict=True)]
    return Items(b"".join(items), list(accumulate(map(len, items))), escaped)


class Renderer:
    """Writes the records of a read, at most so many bytes of them.

    Args:
        kept: Where renderings are kept for all connections.
        reply_bytes_max: The reply is cut before the record that would pass this; the first always
            comes.
        spaces: As in `render`; the two forms are kept apart.
    """

    def __init__(self, kept: RenderingCache, *, reply_bytes_max: int, spaces: bool) -> None:
        self._kept = kept
        self._reply_bytes_max = reply_bytes_max
        self._spaces = spaces
        self._key = "v1 spaces" if spaces else "v1"

    def items(self, batch: RecordBatch) -> Items:
        """The kept rendering of a batch, made where there is none."""
        found = self._kept.get(batch, self._key)
        if found is None:
            found = render(batch, spaces=self._spaces)
            self._kept.put(batch, self._key, found)
        assert isinstance(found, Items)
        return found

    def records(self, slices: Sequence[BatchSlice]) -> tuple[list[Buffer], list[int]]:
        """The items of these slices without the last comma, and the offsets of the escaped ones."""
        buffers: list[Buffer] = []
        escaped: list[int] = []
        room = self._reply_bytes_max
        for batch, first, last in slices:
            items = self.items(batch)
            start = items.end(first)
            if items.end(last) - start > room:
                assert items.ends is not None
                fitting = bisect_right(items.ends, start + room, first, last)
                last = max(fitting, first if buffers else first + 1)
                room = 0
            if last > first:
                piece = items.slice(first, last, batch.count)
                room -= len(piece)
                buffers.append(piece)
                if items.escaped:
                    low = bisect_left(items.escaped, batch.offset_at(first))
                    high = bisect_right(items.escaped, batch.offset_at(last - 1))
                    escaped += items.escaped[low:high]
            if room <= 0:
                break
        if buffers:
            buffers[-1] = memoryview(buffers[-1])[:-1]
        return buffers, escaped
