"""Frames that carry records: a stored batch is rendered once as L3 messages, and then sliced.

The document's layout differs in the head alone, so that both share one rendering; L1, for listeners
of an older generation, has its own.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING, Final

from dragoman.codecs.cursus.batching import head_of
from dragoman.codecs.cursus.columns import render, render_l1
from dragoman.codecs.cursus.translate import Style
from dragoman.codecs.cursus.wire import COUNT_MAX, FRAME_BYTES_MAX
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.codecs.cursus.translate import Tag
    from dragoman.codecs.rendering import Rendering, RenderingCache
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import BatchSlice, Fetched

    _Piece = tuple[RecordBatch, int, int, Rendering]
    """Records of a batch from an index to another, and their rendering."""

LENGTH: Final = Struct(">I").pack
_L1: Final = Style.L1
RENDERING: Final = "cursus"
RENDERING_L1: Final = "cursus-l1"
HEAD_BYTES_MAX: Final = 1024
"""More than any head of a reply: names are at most 255 bytes."""


def frame(text: str | bytes) -> bytes:
    """One frame with this body."""
    body = text.encode() if isinstance(text, str) else text
    return LENGTH(len(body)) + body


def rendering_of(batch: RecordBatch, renderings: RenderingCache, style: Style) -> Rendering:
    """The batch's messages, kept where there is room."""
    key = RENDERING_L1 if style is _L1 else RENDERING
    kept = renderings.get(batch, key)
    if kept is None:
        kept = render_l1(batch) if style is _L1 else render(batch)
        renderings.put(batch, key, kept)
    return kept


def batch_frames(
    slices: Sequence[BatchSlice], tag: Tag, renderings: RenderingCache, *, only_first: bool
) -> list[Buffer]:
    """Records as batch frames, none larger than a frame may be; an empty one for no records.

    Args:
        only_first: Stop at the end of the first frame: who asked will ask for the rest.
    """
    buffers: list[Buffer] = []
    taken: list[_Piece] = []
    size = 0
    room = FRAME_BYTES_MAX - HEAD_BYTES_MAX
    count = 0
    style = tag.style
    for batch, first, last in slices:
        rendering = rendering_of(batch, renderings, style)
        while first < last:
            end = last
            start = rendering.end(first)
            if rendering.end(last) - start > room - size or count + last - first > COUNT_MAX:
                end = _fitting(rendering, first, last, room - size, COUNT_MAX - count)
            if end > first:
                taken.append((batch, first, end, rendering))
                size += rendering.end(end) - start
                count += end - first
                first = end
            if first < last:
                buffers += _batch_frame(taken, tag, size)
                if only_first:
                    return buffers
                taken, size, count = [], 0, 0
    if taken or not buffers:
        buffers += _batch_frame(taken, tag, size)
    return buffers


def _fitting(rendering: Rendering, first: int, last: int, room: int, count: int) -> int:
    """The last record from `first` on with which the records still fit."""
    start = rendering.end(first)
    last = min(last, first + count)
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        if rendering.end(middle) - start <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _batch_frame(pieces: list[_Piece], tag: Tag, size: int) -> list[Buffer]:
    seq_start = seq_end = count = 0
    buffers: list[Buffer] = [b""]
    if pieces:
        batch, at, last, _ = pieces[0]
        seq_start = batch.sequence_at(at) or 0
        for batch, first, last, rendering in pieces:
            count += last - first
            buffers.append(rendering.slice(first, last, batch.count))
        seq_end = batch.sequence_at(last - 1) or 0
    head = head_of(tag.topic.encode(), tag.partition, seq_start, seq_end, count, tag.style)
    buffers[0] = LENGTH(len(head) + size) + head
    return buffers


def matching_frames(
    parts: Sequence[Fetched], tag: Tag, renderings: RenderingCache, *, apart: bool
) -> list[Buffer]:
    """What was read of the topics of a pattern.

    Args:
        apart: A frame for each topic, under its own name, instead of one under the pattern.
    """
    if not apart:
        slices = [piece for part in parts for piece in part.slices]
        return batch_frames(slices, tag, renderings, only_first=True)
    buffers: list[Buffer] = []
    for part in parts:
        named = replace(tag, topic=flat_name(part.namespace, part.topic))
        buffers += batch_frames(part.slices, named, renderings, only_first=True)
    return buffers


def payload_frames(slices: Sequence[BatchSlice]) -> list[Buffer]:
    """Records as the message-flow document sends them: a frame each, with the payload alone."""
    buffers: list[Buffer] = []
    for batch, first, last in slices:
        values = batch.values.slices(first, last)
        parts = [b""] * (2 * len(values))
        parts[::2] = map(LENGTH, map(len, values))
        parts[1::2] = values
        buffers.append(b"".join(parts))
    return buffers
