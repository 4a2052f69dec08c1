"""What writing needs that both batches and text commands share: acks, single records, the hash."""

from __future__ import annotations

from typing import Final

from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn

_CURSUS: Final = Origin.CURSUS
ACKS: Final[dict[bytes, calls.Acks]] = {
    b"": calls.Acks.LEADER,
    b"1": calls.Acks.LEADER,
    b"0": calls.Acks.NONE,
    b"-1": calls.Acks.ALL,
    b"all": calls.Acks.ALL,
}
"""What `acks` may be, and means."""


def one_record(
    value: bytes, key: bytes = b"", *, producer: bytes = b"", epoch: int = 0, sequence: int = 0
) -> RecordBatch:
    """A batch of one record; what is empty or 0 is absent."""
    return RecordBatch(
        1,
        VarColumn.single(value),
        origin=_CURSUS,
        keys=VarColumn.single(key) if key else None,
        producers=(producer,) if producer else (),
        producer_epoch=epoch or None,
        base_sequence=sequence or None,
    )
