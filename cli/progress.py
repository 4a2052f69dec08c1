"""How far a long look at a disk has come: one line of a terminal, overwritten; else nothing."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_S = 0.1
"""A line is overwritten no more often."""
MIB = 1024 * 1024


class Progress:
    """Called with the bytes that are done and those there are in all.

    Args:
        stream: Where it is shown, if that is a terminal.
    """

    def __init__(
        self, what: str, stream: TextIO | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = self._stream.isatty()
        self._clock = clock
        self._began_s = self._last_s = clock()
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """Shows it, unless it was shown just now."""
        now_s = self._clock()
        if not self._is_shown or now_s - self._last_s < INTERVAL_S:
            return
        self._last_s = now_s
        rate = done / (now_s - self._began_s)
        self._show(
            f"{self._what} {100 * done // max(total, 1)} %, {done // MIB} of {total // MIB} MiB, "
            f"{rate / MIB:.0f} MiB/s"
        )

    def clear(self) -> None:
        """Leaves an empty line for what comes."""
        if self._width:
            self._show("")

    def _show(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(self._width)}" + ("" if text else "\r"))
        self._stream.flush()
        self._width = len(text)
