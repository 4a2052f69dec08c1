"""What codecs keep of a stored batch: its bytes in a dialect, so that fan-out costs a slice.

A rendering hangs on the batch it was made of and is counted here; the oldest go first when the
budget is passed. It holds every record of the batch, with the end of each, so that any range is one
slice.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.batch import RecordBatch

Buffer = bytes | memoryview


class Rendering:
    """One batch in one dialect.

    Attributes:
        data: The bytes of all its records, one after the other.
        ends: `ends[i]` is where record i ends in `data`; or None where every record has `stride`
            bytes.
        stride: The size of every record, or 0.
        inexact: Records of this batch that the dialect cannot say exactly.
    """

    __slots__ = ("data", "ends", "inexact", "stride")

    def __init__(
        self, data: bytes, ends: Sequence[int] | None, stride: int = 0, inexact: int = 0
    ) -> None:
        self.data = data
        self.ends = ends
        self.stride = stride
        self.inexact = inexact

    def end(self, index: int) -> int:
        """Where record `index` - 1 ends, which is where record `index` begins."""
        if self.ends is None:
            return self.stride * index
        return self.ends[index - 1] if index else 0

    def slice(self, first: int, last: int, count: int) -> Buffer:
        """The bytes of records `first` to `last` (exclusive) of a batch of `count`."""
        if first == 0 and last == count:
            return self.data
        return memoryview(self.data)[self.end(first) : self.end(last)]


class RenderingCache:
    """Bounds the bytes of all renderings together, first in, first out.

    Args:
        bytes_max: The budget; a rendering larger than a quarter of it is not kept.

    Attributes:
        inexact: Records that were rendered otherwise than exactly, by the key of the rendering.
    """

    def __init__(self, bytes_max: int = 64 * 1024 * 1024) -> None:
        self.bytes_max = bytes_max
        self.bytes_held = 0
        self.inexact: Counter[str] = Counter()
        self._order: deque[tuple[RecordBatch, str, int]] = deque()

    def get(self, batch: RecordBatch, key: str) -> Rendering | None:
        """The rendering of `batch` under `key` (the dialect, or one of its layouts), if it is
        kept."""
        kept = batch.renderings
        return None if kept is None else kept.get(key)

    def put(self, batch: RecordBatch, key: str, rendering: Rendering) -> None:
        """Counts a rendering, and keeps it as long as the budget allows."""
        if rendering.inexact:
            self.inexact[key] += rendering.inexact
        size = len(rendering.data) + (0 if rendering.ends is None else 8 * batch.count) + 200
        if size > self.bytes_max // 4:
            return
        if batch.renderings is None:
            batch.renderings = {}
        batch.renderings[key] = rendering
        self._order.append((batch, key, size))
        self.bytes_held += size
        while self.bytes_held > self.bytes_max:
            old, old_key, old_size = self._order.popleft()
            if old.renderings is not None:
                old.renderings.pop(old_key, None)
            self.bytes_held -= old_size
