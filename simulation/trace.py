"""What happened in a run, step by step: a digest of all of it and the text of its end.

Two runs of one seed have the same digest, on any machine and in any process.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LINES_KEPT = 40


class Trace:
    """Takes a line a step.

    Args:
        echo: Also told every line, as it happens.

    Attributes:
        step: How many lines there were; also the time by which the model orders what it hears.
        lines: The last ones.
    """

    def __init__(self, echo: Callable[[str], None] | None = None) -> None:
        self._digest = blake2b(digest_size=16)
        self._echo = echo
        self.step = 0
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)

    def add(self, line: str) -> None:
        """Something happened."""
        self.step += 1
        line = f"{self.step:5} {line}"
        self._digest.update(line.encode())
        self.lines.append(line)
        if self._echo is not None:
            self._echo(line)

    @property
    def digest(self) -> str:
        """Stands for all lines together."""
        return self._digest.hexdigest()
