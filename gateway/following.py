"""A Follow as its session keeps it: what it is answered with, and when it last said something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.core.calls import Follow
    from dragoman.core.clock import Now
    from dragoman.core.outcome import Outcome


class Following:
    """An active Follow.

    Attributes:
        place: Namespace, topic and partition, or the group that assigns them; a connection may
            follow each once.
        due: The engine may have something to push.
    """

    __slots__ = ("_idle_us", "due", "last_us", "outcome", "place", "tag")

    def __init__(self, tag: Any, outcome: Outcome, request: Follow, now: Now) -> None:
        self.tag = tag
        self.outcome = outcome
        self._idle_us = request.idle_us
        which = request.partition
        self.place = (request.namespace, request.topic, request.group if which < 0 else which)
        self.last_us = now.mono_us
        self.due = True

    def is_silent(self, now: Now) -> bool:
        """Whether it is time for a keep-alive."""
        return bool(self._idle_us) and now.mono_us - self.last_us >= self._idle_us
