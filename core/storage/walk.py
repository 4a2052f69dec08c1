"""Walking the batches of a segment, and finding the next intact one after damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.batch import HEADER_BYTES, MAGIC, BatchError, BatchHead, is_intact, read_head
from dragoman.core.column import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator

Read = Callable[[int, int], Buffer]
"""`read(length, position)`: so many bytes of the file, fewer only at its end."""

WINDOW_BYTES = 1024 * 1024
_MAGIC_BYTES = MAGIC.to_bytes(4, "little")


class Intact(NamedTuple):
    """A batch that verifies; `data` is its bytes at rest."""

    position: int
    head: BatchHead
    data: memoryview


class Broken(NamedTuple):
    """A stretch that does not verify.

    Attributes:
        position, end: Its bytes.
        first: The first offset that is lost.
        last: The last one, or None where nothing intact follows.
    """

    position: int
    end: int
    first: int
    last: int | None
    reason: str


class _Window:
    """A file read in large pieces and looked at in small ones."""

    def __init__(self, read: Read, size: int, window: int) -> None:
        self._read = read
        self._window = window
        self._data = memoryview(b"")
        self._at = 0
        self.size = size

    def view(self, position: int, length: int) -> memoryview:
        """The bytes from `position`, `length` of them or as many as there are."""
        start = position - self._at
        if start < 0 or start + length > len(self._data):
            wanted = min(max(length, self._window), self.size - position)
            self._data = memoryview(self._read(wanted, position))
            self._at = position
            start = 0
        return self._data[start : start + length]

    def rest(self, position: int) -> memoryview:
        """What is at hand from `position` on, at least one header's worth where there is one."""
        self.view(position, min(HEADER_BYTES, self.size - position))
        return self._data[position - self._at :]


def walk(
    read: Read,
    size: int,
    topic_id: int,
    partition: int,
    *,
    offset: int,
    at: int = 0,
    window: int = WINDOW_BYTES,
) -> Iterator[Intact | Broken]:
    """Yields the batches of a segment in order, and what is damaged between them.

    Args:
        size: Where to stop.
        offset: The offset of the batch that stands at position `at`.
        window: How much is read at once.
    """
    source = _Window(read, size, window)
    while at < size:
        found = _batch_at(source, at, topic_id, partition)
        if isinstance(found, str):
            following = _next_intact(source, at + 8, topic_id, partition, offset)
            if following is None:
                yield Broken(at, size, offset, None, found)
                return
            yield Broken(at, following.position, offset, following.head.base_offset - 1, found)
            at, found = following.position, following
            offset = found.head.base_offset
        base = found.head.base_offset
        if base != offset:
            reason = f"offset {base} stands where {offset} belongs"
            yield Broken(at, at, offset, max(base, offset) - 1, reason)
        if base >= offset:
            yield found
            offset = base + found.head.last_offset_delta + 1
        at += found.head.length


def _batch_at(source: _Window, at: int, topic_id: int, partition: int) -> Intact | str:
    """The batch at `at`, or what is wrong with it."""
    try:
        head = read_head(source.view(at, HEADER_BYTES))
    except BatchError as error:
        return str(error)
    if at + head.length > source.size:
        return "the batch is cut off"
    data = source.view(at, head.length)
    if len(data) < head.length:
        return "the batch is cut off"
    if not is_intact(head, data, topic_id, partition):
        return "the batch's checksum does not match"
    return Intact(at, head, data)


def _next_intact(
    source: _Window, at: int, topic_id: int, partition: int, offset: int
) -> Intact | None:
    """The next batch from `at` on that verifies and belongs after `offset`."""
    while at + HEADER_BYTES <= source.size:
        rest = bytes(source.rest(at))
        if len(rest) < HEADER_BYTES:
            return None
        hit = rest.find(_MAGIC_BYTES)
        while hit >= 0:
            position = at + hit
            if position % 8 == 0:
                found = _batch_at(source, position, topic_id, partition)
                if isinstance(found, Intact) and found.head.base_offset >= offset:
                    return found
            hit = rest.find(_MAGIC_BYTES, hit + 1)
        at += ((len(rest) - 4) // 8 + 1) * 8
    return None
