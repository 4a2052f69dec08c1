"""Streams of events as a run knows them: which event has which version, and which state is kept.

A payload is sent once, for one version, so that it stands for its event. Who writes names the
version that it believes to be the next, and may be wrong: then somebody else was faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.simulation.register import Register
from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence


class Aggregate:
    """One stream.

    Attributes:
        version: Whoever asks from now on is told of an event of this version, or a later one.
        asked_max: The largest version that anybody asked to append.
        snapshots: By their numbers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sent: dict[bytes, int] = {}
        self._events: dict[int, bytes] = {}
        self.version = 0
        self.asked_max = 0
        self.snapshots = Register(f"the snapshot of {name}", Rule.SNAPSHOT)

    def sends(self, version: int, payload: bytes) -> None:
        """Somebody is about to append an event."""
        self._sent[payload] = version
        self.asked_max = max(self.asked_max, version)

    def appended(self, version: int, payload: bytes, told: int, before: int) -> None:
        """An event was acknowledged.

        Args:
            told: The version that it has, as the answer says.
            before: The version that was known when it was asked for.
        """
        if told != version or version <= before:
            raise Broken(
                Rule.EVENT, f"{self._name}: an event for {version} is {told}, {before} was there"
            )
        self._place(version, payload)
        self.version = max(self.version, version)

    def stands_at(self, version: int, before: int) -> None:
        """Somebody was told the version of the newest event."""
        if not before <= version <= self.asked_max:
            raise Broken(
                Rule.EVENT,
                f"{self._name} is at {version}; it was at {before}, {self.asked_max} was asked for",
            )
        self.version = max(self.version, version)

    def conflicted(self, version: int, current: int, before: int) -> None:
        """An event was refused because the stream is at another version."""
        if version == current + 1:
            raise Broken(Rule.EVENT, f"{self._name}: {version} is refused after {current}")
        self.stands_at(current, before)

    def read(self, first: int, events: Sequence[tuple[int, bytes]], before: int) -> None:
        """Somebody read all events from a version on."""
        versions = [version for version, _ in events]
        if versions != list(range(first, first + len(versions))):
            raise Broken(Rule.EVENT, f"{self._name} reads {versions[:50]} from {first} on")
        for version, payload in events:
            self._place(version, payload)
        if events or first <= before:
            self.stands_at(first + len(events) - 1, before)

    def _place(self, version: int, payload: bytes) -> None:
        known = self._events.setdefault(version, payload)
        if known != payload or self._sent.get(payload) != version:
            raise Broken(
                Rule.EVENT,
                f"{self._name}: event {version} is {payload[:24]!r}, sent for "
                f"{self._sent.get(payload)}, and was {known[:24]!r}",
            )
