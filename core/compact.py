"""Compaction by key as a pure function over batches: which records stay, and in which batches.

A pass has two readings of the same closed part of a log, always from its beginning. The first notes
the newest offset of each key (`Latest`), the second lets through what is newest (`Thinning`).
Records without a key stay. A record with a key and no value, a tombstone, stays while it is younger
than the grace period; after that it goes too, and nothing older of its key is left that it hid,
because that goes in the same pass. What a pass let through is clean: each key has one record there,
so the next pass notes only what came after it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.select import DELTA_MAX, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.core.batch import RecordBatch
    from dragoman.core.column import Buffer

KEY_BYTES_MAX = 32
"""Longer keys are noted by a digest that is longer than this, so the two never meet."""
PARTS = 64
"""The map is in so many parts: each grows and goes in a time that nobody notices."""


def is_due(
    *, dirty_bytes: int, clean_bytes: int, tombstone_us: int, tombstones_before_us: int
) -> bool:
    """Whether a pass over the closed part of a log is worth it.

    Args:
        dirty_bytes, clean_bytes: What was closed since the last pass, and what that pass left.
        tombstone_us: The newest tombstone that it left; 0 for none.
    """
    return dirty_bytes > clean_bytes or 0 < tombstone_us < tombstones_before_us


class Latest:
    """The newest offset of each key that was noted."""

    def __init__(self) -> None:
        self._parts: list[dict[bytes, int]] = [{} for _ in range(PARTS)]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def note(self, batch: RecordBatch) -> None:
        """Takes a batch; batches come in the order of their offsets."""
        if batch.keys is None:
            return
        parts = self._parts
        for key, offset in zip(batch.keys, _offsets(batch), strict=True):
            if key is not None:
                short = _short(key)
                parts[hash(short) % PARTS][short] = offset

    def of(self, key: bytes) -> int:
        """The newest offset of this key, -1 where it was not noted."""
        short = _short(key)
        return self._parts[hash(short) % PARTS].get(short, -1)

    def forget(self) -> Iterator[None]:
        """Lets go of everything, one part a step."""
        while self._parts:
            self._parts.pop()
            yield


class Thinned(NamedTuple):
    """A batch that stays.

    Attributes:
        raw: Its bytes at rest, where it is what it was.
        tombstone_us: The newest tombstone in it; 0 for none.
    """

    batch: RecordBatch
    raw: Buffer | None
    tombstone_us: int


class Thinning:
    """Lets through the records that stay.

    What went from between two batches is added to the range of the one before, so that batches
    still touch and a missing one is known for missing.

    Args:
        reach: Records from here on were not noted, and all stay.
        tombstones_before_us: Tombstones that are older go.

    Attributes:
        dropped: Records that did not stay.
    """

    def __init__(self, latest: Latest, *, reach: int, tombstones_before_us: int) -> None:
        self._latest = latest
        self._reach = reach
        self._tombstones_before_us = tombstones_before_us
        self._held: Thinned | None = None
        self.dropped = 0

    def add(self, batch: RecordBatch, raw: Buffer | None = None) -> Thinned | None:
        """Takes the next batch; returns the one before, once it is known where it ends."""
        kept, tombstone_us = self._kept(batch)
        self.dropped += batch.count - len(kept)
        if not kept:
            return None
        if len(kept) < batch.count:
            batch, raw = select(batch, kept, batch.next_offset), None
        done = self.end(batch.base_offset)
        self._held = Thinned(batch, raw, tombstone_us)
        return done

    def end(self, next_offset: int) -> Thinned | None:
        """The last batch, which ends here."""
        held, self._held = self._held, None
        if held is None or held.batch.next_offset == next_offset:
            return held
        batch = held.batch
        next_offset = min(next_offset, batch.base_offset + DELTA_MAX + 1)
        batch = select(batch, range(batch.count), next_offset)
        return Thinned(batch, None, held.tombstone_us)

    def _kept(self, batch: RecordBatch) -> tuple[range | list[int], int]:
        """The indices of the records that stay, and the newest tombstone's time."""
        if batch.keys is None or batch.base_offset >= self._reach:
            return range(batch.count), 0
        values, latest, reach = batch.values, self._latest, self._reach
        may_be_absent = values.validity is not None
        newest_us = 0
        kept = []
        pairs = zip(batch.keys, _offsets(batch), strict=True)
        for index, (key, offset) in enumerate(pairs):
            if key is not None and offset < reach:
                if latest.of(key) > offset:
                    continue
                if may_be_absent and not values.is_present(index):
                    stamped_us = batch.timestamp_at(index)
                    if stamped_us < self._tombstones_before_us:
                        continue
                    newest_us = max(newest_us, stamped_us)
            kept.append(index)
        return kept, newest_us


def _short(key: bytes) -> bytes:
    if len(key) <= KEY_BYTES_MAX:
        return key
    return blake2b(key, digest_size=KEY_BYTES_MAX + 1).digest()


def _offsets(batch: RecordBatch) -> range | list[int]:
    base, deltas = batch.base_offset, batch.offset_deltas
    if deltas is None:
        return range(base, base + batch.count)
    return [base + delta for delta in deltas]
