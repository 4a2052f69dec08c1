"""What the carriers of a session have in common: when it was last heard, and what is overdue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.gateway.session import Session

LINGER_US = 1_000_000
"""How long a refused peer is read after our last word, so that a reset does not eat that word."""
SLOW_READER_US = 30_000_000
"""Who asked for records and takes nothing of them for so long is closed."""
REPLIES_STALLED_US = 300_000_000
"""Any other peer that takes nothing of its replies and is not heard for so long is closed. It may
be one that only sends and never reads what it is told, and loses nothing by it."""


@dataclass(slots=True)
class Pulse:
    """The signs of life of one connection, in microseconds of the monotonic clock.

    Attributes:
        heard_us: When bytes last came, or a reply last left.
        stalled_us: Since when the peer takes nothing of what waits for it; 0: it does.
    """

    heard_us: int
    stalled_us: int = 0


class _Nobody:
    """Carries what is left to say to a connection that is gone: nothing."""

    def flush(self, now: Now) -> None:
        """Does nothing."""


NOBODY = _Nobody()


def overdue(session: Session, pulse: Pulse, idle_us: int, slow_reader_us: int, now: Now) -> str:
    """Why a connection should be closed now, or "".

    Args:
        idle_us: The listener's idle timeout; 0 never. It counts only while nothing is owed.
        slow_reader_us: How long a reader may take nothing of what waits for it.
    """
    if pulse.stalled_us:
        if session.follows:
            is_over = now.mono_us - pulse.stalled_us >= slow_reader_us
        else:
            last_us = max(pulse.stalled_us, pulse.heard_us)
            patience_us = slow_reader_us if session.reads else REPLIES_STALLED_US
            is_over = now.mono_us - last_us >= patience_us
        return "stopped reading" if is_over else ""
    if idle_us and now.mono_us - pulse.heard_us >= idle_us and not session.busy:
        return "idle"
    return ""
