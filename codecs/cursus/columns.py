"""Between the columns of a Cursus batch and those of core, both ways, without a row in between.

What a message has and core has no column for (event type, schema version, aggregate version,
metadata) becomes typed headers under names that begin with `cursus.`, and only where it says
something: most batches have none. An empty key is no key; an empty producer is none.
"""

from __future__ import annotations

from array import array
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.codecs.kernels import cursus_l1, cursus_l3
from dragoman.codecs.rendering import Rendering
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.events.field import (
    FIELD_BYTES_MAX,
    NO_EVENT,
    Event,
    event_headers,
    event_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.codecs.columnar import Ints, IntsIn, Vars
    from dragoman.codecs.kernels import cursus_document, cursus_l2
    from dragoman.core.column import Int64s

    WithEvents = cursus_l3.Columns | cursus_document.Columns
    WithoutEvents = cursus_l2.Columns | cursus_l1.Columns

SHORT_MAX: Final = FIELD_BYTES_MAX
"""Bytes of the longest string of a message but its payload."""
MESSAGE_BYTES: Final = 48
"""A message whose strings and payload are empty."""

_CURSUS: Final = Origin.CURSUS
_KNOWN_MAX = 4096
"""Different headers of one batch that are remembered at a time."""

# ---------------------------------------------------------------- from the wire


def to_batch(columns: WithEvents | WithoutEvents, headers: VarColumn | None) -> RecordBatch:
    """The record batch of decoded messages; their own offsets mean nothing here.

    Args:
        headers: Their event fields (`headers_of`), for layouts that have them.
    """
    count = columns.count
    producers: tuple[bytes, ...] = ()
    producer_index = None
    if columns.producer_id:
        producers, producer_index = _producers(columns.producer_id)
    epoch = columns.epoch
    base_sequence, sequences = _sequences(columns.seq_num, count)
    return RecordBatch(
        count,
        columns.payload,
        origin=_CURSUS,
        keys=_keys(columns.key, count) if columns.key else None,
        headers=headers,
        producers=producers,
        producer_index=producer_index,
        producer_epoch=(epoch or None) if isinstance(epoch, int) else None,
        epochs=None if isinstance(epoch, int) else array("q", epoch),
        base_sequence=base_sequence,
        sequences=sequences,
    )


def headers_of(columns: WithEvents) -> VarColumn | None:
    """The event fields of decoded messages as headers at rest; None where no message has any."""
    event_type, metadata = columns.event_type, columns.metadata
    schema, aggregate = columns.schema_version, columns.aggregate_version
    if not (event_type or metadata or schema or aggregate):
        return None
    count = columns.count
    if (
        isinstance(event_type, bytes)
        and isinstance(metadata, bytes)
        and isinstance(schema, int)
        and isinstance(aggregate, int)
    ):
        raw = event_headers(Event(event_type, schema, aggregate, metadata)) or b""
        return VarColumn.uniform(raw * count, len(raw), count)
    known: dict[Event, bytes | None] = {}
    found = []
    for row in zip(
        _values(event_type, count),
        _numbers(schema, count),
        _numbers(aggregate, count),
        _values(metadata, count),
        strict=True,
    ):
        event = Event(*row)
        raw_or_none = known.get(event)
        if raw_or_none is None:
            if len(known) >= _KNOWN_MAX:
                known.clear()
            raw_or_none = known[event] = event_headers(event)
        found.append(raw_or_none)
    return VarColumn.of(found)


def _values(values: Vars, count: int) -> Iterable[bytes]:
    return repeat(values, count) if isinstance(values, bytes) else values.slices(0, count)


def _numbers(values: Ints, count: int) -> Iterable[int]:
    return repeat(values, count) if isinstance(values, int) else values


def _producers(ids: Vars) -> tuple[tuple[bytes, ...], array[int] | None]:
    if isinstance(ids, bytes):
        return (ids,), None
    places: dict[bytes, int] = {}
    index = array("I", [places.setdefault(name, len(places)) for name in ids.slices(0, len(ids))])
    return tuple(places), index


def _sequences(values: Ints, count: int) -> tuple[int | None, Int64s | None]:
    """The base sequence, or the sequence of each; neither where no message has one."""
    if isinstance(values, range):
        return values.start, None
    if not isinstance(values, int):
        return None, values
    if not values:
        return None, None
    return (values, None) if count == 1 else (None, array("Q", [values]) * count)


def _keys(keys: Vars, count: int) -> VarColumn:
    """The keys, an empty one as absent."""
    if isinstance(keys, bytes):
        return VarColumn.uniform(keys * count, len(keys), count)
    if keys.stride is not None:
        return keys
    offsets = keys.offsets
    empty = [index for index, (start, end) in enumerate(pairwise(offsets)) if start == end]
    if not empty:
        return keys
    bits = bytearray(b"\xff" * ((count + 7) // 8))
    for index in empty:
        bits[index >> 3] &= ~(1 << (index & 7))
    if count & 7:
        bits[-1] &= (1 << (count & 7)) - 1
    return VarColumn(keys.blob, offsets, bytes(bits))


# ---------------------------------------------------------------- to the wire


def _common(batch: RecordBatch) -> tuple[IntsIn, Vars, Vars, IntsIn]:
    """The columns that messages have in every layout: sequences, producers, keys and epochs."""
    seq_num: IntsIn = 0
    if batch.sequences is not None:
        seq_num = batch.sequences
    elif batch.base_sequence is not None:
        seq_num = range(batch.base_sequence, batch.base_sequence + batch.count)
    epoch: IntsIn = batch.producer_epoch or 0
    if batch.epochs is not None:
        epoch = batch.epochs
    return seq_num, _producer_column(batch), _key_column(batch), epoch


def render(batch: RecordBatch, *, offsets: IntsIn | None = None) -> Rendering:
    """Every record of a batch as an L3 message.

    Args:
        offsets: What to show as offsets; the batch's own where it is missing.
    """
    seq_num, producer, key, epoch = _common(batch)
    payload = batch.values
    if offsets is None:
        offsets = _offsets(batch)
    events, inexact = _events(batch) if batch.headers is not None else (NO_EVENTS, 0)
    inexact += _unsaid(batch, key)
    if batch.count == 1:
        data = cursus_l3.encode_one(
            offset=_first(offsets),
            seq_num=_first(seq_num),
            producer_id=_only(producer),
            key=_only(key),
            epoch=_first(epoch),
            payload=payload[0] or b"",
            event_type=_only(events.event_type),
            schema_version=_first(events.schema_version),
            aggregate_version=_first(events.aggregate_version),
            metadata=_only(events.metadata),
        )
        return Rendering(data, None, len(data), inexact)
    rendering = cursus_l3.encode_records(
        batch.count,
        offset=offsets,
        seq_num=seq_num,
        producer_id=producer,
        key=key,
        epoch=epoch,
        payload=payload,
        event_type=events.event_type,
        schema_version=events.schema_version,
        aggregate_version=events.aggregate_version,
        metadata=events.metadata,
    )
    rendering.inexact = inexact
    return rendering


def render_l1(batch: RecordBatch) -> Rendering:
    """Every record of a batch as an L1 message, which has no event fields."""
    seq_num, producer, key, epoch = _common(batch)
    inexact = _unsaid(batch, key)
    if batch.headers is not None:
        inexact += sum([bool(raw) for raw in batch.headers])
    rendering = cursus_l1.encode_records(
        batch.count,
        offset=_offsets(batch),
        seq_num=seq_num,
        producer_id=producer,
        key=key,
        epoch=epoch,
        payload=batch.values,
    )
    rendering.inexact = inexact
    return rendering


class Events(NamedTuple):
    """The event fields of all messages, by column."""

    event_type: Vars
    schema_version: IntsIn
    aggregate_version: IntsIn
    metadata: Vars


NO_EVENTS: Final = Events(b"", 0, 0, b"")


def _first(values: IntsIn) -> int:
    return values if isinstance(values, int) else values[0]


def _only(values: Vars) -> bytes:
    return values if isinstance(values, bytes) else values[0] or b""


def _offsets(batch: RecordBatch) -> IntsIn:
    base, deltas = batch.base_offset, batch.offset_deltas
    if deltas is None:
        return range(base, base + batch.count)
    return array("Q", [base + delta for delta in deltas])


def _producer_column(batch: RecordBatch) -> Vars:
    """Producer ids; one that no string of the wire can hold is left out."""
    names = batch.producers
    if not names:
        return b""
    sayable = [name if len(name) <= SHORT_MAX else b"" for name in names]
    index = batch.producer_index
    return sayable[0] if index is None else VarColumn.of([sayable[place] for place in index])


def _key_column(batch: RecordBatch) -> Vars:
    """Keys; one that no string of the wire can hold is left out."""
    keys = batch.keys
    if keys is None:
        return b""
    if len(keys.blob) <= SHORT_MAX or (keys.stride or SHORT_MAX + 1) <= SHORT_MAX:
        return keys
    return VarColumn.of([None if key is None or len(key) > SHORT_MAX else key for key in keys])


def _unsaid(batch: RecordBatch, key: Vars) -> int:
    """How many records lose something other than headers: what is absent shows as empty, and an
    empty key or one left out as none."""
    lost = 0
    if batch.values.validity is not None:
        lost += sum([not batch.values.is_present(index) for index in range(batch.count)])
    keys = batch.keys
    if keys is not None and (batch.origin != _CURSUS or key is not keys):
        lost += sum([known is not None and not 0 < len(known) <= SHORT_MAX for known in keys])
    return lost


def _events(batch: RecordBatch) -> tuple[Events, int]:
    """The event fields that are in headers, and how many records have headers of other names."""
    assert batch.headers is not None
    known: dict[bytes | None, tuple[Event, bool]] = {None: (NO_EVENT, True)}
    rows = []
    inexact = 0
    for raw in batch.headers:
        found = known.get(raw)
        if found is None:
            if len(known) >= _KNOWN_MAX:
                known = {None: (NO_EVENT, True)}
            found = known[raw] = event_of(raw or b"")
        rows.append(found[0])
        inexact += not found[1]
    first = rows[0]
    if rows.count(first) == len(rows):
        return Events(*first), inexact
    return (
        Events(
            VarColumn.of([row.event_type for row in rows]),
            array("I", [row.schema_version for row in rows]),
            array("Q", [row.aggregate_version for row in rows]),
            VarColumn.of([row.metadata for row in rows]),
        ),
        inexact,
    )
