"""How the records of one ProduceMany are dealt to partitions. It knows counts, not partitions."""

from __future__ import annotations

from operator import itemgetter

from dragoman.core.batch import RecordBatch
from dragoman.core.calls import Produce, ProduceMany
from dragoman.core.column import VarColumn


def deal(request: ProduceMany, partition_count: int) -> tuple[list[Produce], list[int]]:
    """Splits a request into one Produce a partition; each part keeps the order of its records.

    Args:
        partition_count: Of the topic as it stands, at least 1.

    Returns:
        The parts in the order of their first records, and for each record the index of its part.
    """
    members: dict[int, list[int]] = {}
    places: list[int] = []
    part_of: dict[int, int] = {}
    for index, number in enumerate([value % partition_count for value in request.hashes]):
        place = part_of.get(number)
        if place is None:
            place = part_of[number] = len(part_of)
            members[number] = []
        places.append(place)
        members[number].append(index)
    parts = []
    for number, indices in members.items():
        if len(indices) == 1:
            values = VarColumn.single(request.values[indices[0]])
            keys = VarColumn.single(request.keys[indices[0]])
        elif len(members) == 1:
            values, keys = VarColumn.of(request.values), VarColumn.of(request.keys)
        else:
            pick = itemgetter(*indices)
            values, keys = VarColumn.of(pick(request.values)), VarColumn.of(pick(request.keys))
        parts.append(
            Produce(
                request.topic,
                RecordBatch(len(indices), values, origin=request.origin, keys=keys),
                number,
                request.namespace,
                request.acks,
            )
        )
    return parts, places
