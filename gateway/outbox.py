"""What a connection has yet to send: buffers in order, unjoined, and the sum of their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer


class Outbox:
    """Buffers on their way out.

    Attributes:
        buffers: In the order in which they leave. The carrier may read it, only `add` and `sent`
            change it.
        size: The bytes of all of them.
    """

    __slots__ = ("buffers", "size")

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.size = 0

    def add(self, buffers: Sequence[Buffer]) -> None:
        """Appends what a codec rendered; empty buffers are left out."""
        for buffer in buffers:
            if count := len(buffer):
                self.buffers.append(buffer)
                self.size += count

    def sent(self, count: int) -> None:
        """The first `count` bytes have left; a buffer that left in part goes on as a view."""
        if count >= self.size:
            self.buffers.clear()
            self.size = 0
            return
        self.size -= count
        whole = 0
        for buffer in self.buffers:
            if count < len(buffer):
                break
            count -= len(buffer)
            whole += 1
        del self.buffers[:whole]
        if count:
            self.buffers[0] = memoryview(self.buffers[0])[count:]

    def clear(self) -> None:
        """Forgets everything: the connection is gone."""
        self.buffers.clear()
        self.size = 0

    def take(self, bytes_max: int | None = None) -> bytes:
        """Everything, or the first bytes, as one piece, for carriers that cannot gather."""
        size = self.size
        if bytes_max is None or size <= bytes_max:
            joined = b"".join(self.buffers)
            self.clear()
            return joined
        taken: list[Buffer] = []
        missing = bytes_max
        for buffer in self.buffers:
            taken.append(memoryview(buffer)[:missing])
            missing -= len(taken[-1])
            if not missing:
                break
        self.sent(bytes_max)
        return b"".join(taken)
