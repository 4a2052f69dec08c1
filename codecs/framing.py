"""What is kept of a frame between two reads, for dialects whose frames begin with their length.

A half-arrived frame is never parsed again: its pieces are held as they came and joined once, when
the codec has said how many bytes it needs and they are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer

PIECE_BYTES_MIN = 16 * 1024
"""Smaller pieces share a buffer: an object for each byte of a trickled frame costs gigabytes."""


class Reassembly:
    """The unread rest of a stream.

    Attributes:
        held: Bytes that wait for more.
    """

    __slots__ = ("_needed", "_parts", "held")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        self._needed = 0
        self.held = 0

    def add(self, data: Buffer) -> bytes | None:
        """Takes what arrived; returns everything unread, or None while the frame needs more."""
        if not self.held:
            return bytes(data)
        if len(data) >= PIECE_BYTES_MIN:
            self._parts.append(bytes(data))
        elif type(last := self._parts[-1]) is bytearray:
            last += data
        else:
            self._parts.append(bytearray(data))
        self.held += len(data)
        if self.held < self._needed:
            return None
        joined = b"".join(self._parts)
        self._parts.clear()
        self.held = 0
        return joined

    def keep(self, rest: bytes, needed: int) -> None:
        """Holds the beginning of a frame (maybe nothing) until `needed` bytes of it are there."""
        if rest:
            self._parts = [rest]
            self.held = len(rest)
            self._needed = needed

    @property
    def wanted(self) -> int:
        """Bytes still missing of the current frame; 0 where none has begun."""
        return self._needed - self.held if self.held else 0
