"""Ready outcomes find their sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.session import Session


def deliver(engine: LogEngine, now: Now) -> list[Session]:
    """Lets every session whose outcomes became ready answer; returns each of them once.

    The carrier of each returned session then sends its outbox.
    """
    sessions: dict[Session, None] = {}
    for outcome in engine.take_ready():
        owner = outcome.owner
        if owner is not None:
            if outcome.follows:
                owner.woken(outcome)
            sessions[owner] = None
    for session in sessions:
        session.advance(now)
    return list(sessions)
