"""How records are asked to be appended in dialects that differ in who chooses the partition."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from dragoman.clients.error import RequestRefused
from dragoman.clients.task import describe_topic
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.clients.task import Task
    from dragoman.core.calls import Produced


def produce(
    name: str,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    partition: int | None = None,
    *,
    acks: calls.Acks = calls.Acks.LEADER,
    turn: int = 0,
) -> Task[list[Produced]]:
    """Appends records, in as few requests as the dialect allows.

    Without a partition the server chooses: by key, or in turn. Where it leaves that to its clients,
    the partition is chosen here, by FNV-1a of the key or in turn.

    Args:
        turn: The number of produces so far, for choosing in turn.
    """
    rows = rows_of(values, keys)
    if not rows:
        return []
    if partition is not None:
        return (yield from _produce_all([produce_request(name, rows, partition, acks)]))
    reasons: list[str] = []
    for way in WAYS:
        try:
            requests = yield from way(name, rows, acks, turn)
            return (yield from _produce_all(requests))
        except Unsayable as error:
            reasons.append(str(error))
    raise Unsayable("; ".join(filter(None, dict.fromkeys(reasons))))


Rows = list[tuple[bytes | None, bytes | None]]
"""Values with their keys."""


def rows_of(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None) -> Rows:
    """Each value with its key."""
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys for {len(values)} values")
    return [*zip(values, keys or [None] * len(values), strict=True)]


def batch_of(rows: Rows) -> RecordBatch:
    """The records as columns."""
    keys = [key for _, key in rows]
    return RecordBatch(
        len(rows),
        VarColumn.of([value for value, _ in rows]),
        origin=Origin.NONE,
        keys=VarColumn.of(keys) if any(key is not None for key in keys) else None,
    )


def produce_request(
    name: str, rows: Rows, route: calls.Route, acks: calls.Acks = calls.Acks.LEADER
) -> calls.Produce:
    """The request that appends these records to one partition."""
    namespace, topic = split_flat(name)
    return calls.Produce(topic, batch_of(rows), route, namespace, acks)


def _produce_all(requests: list[calls.Produce]) -> Task[list[Produced]]:
    replies = yield tuple(requests)
    produced: list[Produced] = []
    for reply in replies:
        for part in reply.parts if isinstance(reply, calls.ProducedMany) else [reply]:
            if isinstance(part, Failure):
                raise RequestRefused(part)
            produced.append(part)
    return produced


def _whole(name: str, rows: Rows, acks: calls.Acks, turn: int) -> Task[list[calls.Produce]]:
    """One request, the server chooses the partition."""
    return [produce_request(name, rows, calls.ROUND_ROBIN, acks)]
    yield ()


def _chosen_here(name: str, rows: Rows, acks: calls.Acks, turn: int) -> Task[list[calls.Produce]]:
    """A request a partition: the dialect leaves the choice to its clients."""
    try:
        count = len((yield from describe_topic(name)).partitions)
    except Unsayable:
        raise Unsayable from None  # so it is no dialect that leaves the choice to its clients
    if not count:
        raise RequestRefused(Failure(ErrorCode.NO_PARTITIONS, f"{name} has no partition"))
    dealt: dict[int, Rows] = {}
    for row in rows:
        key = row[1]
        dealt.setdefault((turn if key is None else fnv1a_64(key)) % count, []).append(row)
    return [produce_request(name, share, partition, acks) for partition, share in dealt.items()]


def _by_key(name: str, rows: Rows, acks: calls.Acks, turn: int) -> Task[list[calls.Produce]]:
    """A request for each run of one key."""
    return [
        produce_request(name, list(run), calls.ROUND_ROBIN, acks)
        for _, run in groupby(rows, key=lambda row: row[1])
    ]
    yield ()


def _singly(name: str, rows: Rows, acks: calls.Acks, turn: int) -> Task[list[calls.Produce]]:
    """A request a record."""
    return [produce_request(name, [row], calls.ROUND_ROBIN, acks) for row in rows]
    yield ()


WAYS = (_whole, _chosen_here, _by_key, _singly)
"""How records that name no partition are asked for, the best way first."""
