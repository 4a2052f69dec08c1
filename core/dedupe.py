"""The window of payloads: of publishes with the same payload within a topic's time, one is kept.

It lives in memory alone and is bounded: after a restart it begins anew. A payload is known by its
topic and its blake2b-128, so that no two payloads are taken for one. Only single records are
looked at.
"""

from __future__ import annotations

from hashlib import blake2b
from heapq import merge
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dragoman.core.calls import Produce
    from dragoman.core.clock import Now
    from dragoman.core.column import Buffer
    from dragoman.core.options import EngineOptions
    from dragoman.core.partition import Partition, Topic

DIGEST_BYTES = 16
ENTRIES_PER_TICK = 10_000
"""What one tick forgets at most: a few milliseconds."""
SHARDS = 16
HASHED_HERE_MAX = 256 * 1024
"""Larger payloads have their digest in the request (`Produce.digest`): a codec makes it where it
takes large frames apart, in a thread."""


class Original(NamedTuple):
    """Where a payload was appended, and until when its window lasts (`Now.mono_us`)."""

    until_us: int
    partition: Partition
    offset: int


def digest_of(payload: Buffer) -> bytes:
    """The blake2b-128 of a payload: about 2 ms a MiB."""
    return blake2b(payload, digest_size=DIGEST_BYTES).digest()


class Dedupe:
    """Remembers payloads.

    Attributes:
        hits: Publishes that were duplicates.
        evicted: Payloads that made room before their window had passed.
        cleanups: Looks that found something to forget.
    """

    def __init__(self, options: EngineOptions) -> None:
        self._default_ms = options.dedupe_ms
        self._entries_max = options.dedupe_entries_max
        self._check_us = options.dedupe_check_us
        # By the length of the window, so that within one the oldest are always the first to leave;
        # and in shards, since a dictionary of a million entries takes 45 ms to grow.
        self._windows: dict[tuple[int, int], dict[bytes, Original]] = {}
        self._count = 0
        self._look_at_us = 0
        self._has_forgotten = False
        self.hits = 0
        self.evicted = 0
        self.cleanups = 0

    def __len__(self) -> int:
        return self._count

    def window_ms(self, topic: Topic) -> int:
        """The window of a topic: its own, or else the server's; 0 where it has none."""
        return int(topic.state.config.get("dedupe_ms", 0)) or self._default_ms

    def key_of(self, request: Produce, topic_id: int) -> bytes:
        """What a request is known by; empty where it is not a single record with a value."""
        batch = request.batch
        if batch.count != 1 or batch.values.validity is not None:
            return b""
        digest = request.digest or digest_of(batch.values.blob)
        return digest + topic_id.to_bytes(8, "little")

    def find(self, key: bytes, window_ms: int, now: Now) -> Original | None:
        """The original of a payload within its window, if there is one that was not dropped."""
        original = self._windows.get((window_ms, key[0] % SHARDS), {}).get(key)
        if original is None or original.until_us <= now.mono_us or original.partition.dropped:
            return None
        self.hits += 1
        return original

    def put(
        self, key: bytes, window_ms: int, now: Now, *, partition: Partition, offset: int
    ) -> None:
        """The payload was appended; its window begins."""
        shard = window_ms, key[0] % SHARDS
        self._forget(shard, (key,))
        if self._count >= self._entries_max:
            self._make_room()
        window = self._windows.setdefault(shard, {})
        window[key] = Original(now.mono_us + 1000 * window_ms, partition, offset)
        self._count += 1

    def tick(self, now: Now) -> None:
        """Forgets the next few whose window has passed, once a look is due."""
        if now.mono_us < self._look_at_us:
            return
        left = ENTRIES_PER_TICK
        for shard, window in list(self._windows.items()):
            passed = takewhile(_until(now.mono_us), window.items())
            keys = [key for key, _ in islice(passed, left)]
            self._forget(shard, keys)
            left -= len(keys)
            if keys and not self._has_forgotten:
                self._has_forgotten = True
                self.cleanups += 1
            if not left:
                return
        self._has_forgotten = False
        self._look_at_us = now.mono_us + self._check_us

    def _make_room(self) -> None:
        """Forgets the oldest; some at once, since all windows are looked at to find them."""
        oldest = merge(*[_by_age(shard, window) for shard, window in self._windows.items()])
        for _, shard, key in list(islice(oldest, max(self._entries_max // 1024, 1))):
            self._forget(shard, (key,))
            self.evicted += 1

    def _forget(self, shard: tuple[int, int], keys: Iterable[bytes]) -> None:
        window = self._windows.get(shard)
        if window is None:
            return
        for key in keys:
            if window.pop(key, None) is not None:
                self._count -= 1
        if not window:
            del self._windows[shard]


def _until(now_us: int) -> Callable[[tuple[bytes, Original]], bool]:
    return lambda entry: entry[1].until_us <= now_us


def _by_age(
    shard: tuple[int, int], window: dict[bytes, Original]
) -> Iterator[tuple[int, tuple[int, int], bytes]]:
    """The entries of a window's shard by the time at which they came, oldest first."""
    for key, original in window.items():
        yield original.until_us - 1000 * shard[0], shard, key
