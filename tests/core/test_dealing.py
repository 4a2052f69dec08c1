"""The records of one request reach their partitions in order, and every one is accounted for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.batch import Origin
from dragoman.core.calls import Acks, ProduceMany
from dragoman.core.dealing import deal


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=6)), min_size=1, max_size=40),
    st.integers(1, 9),
)
def test_every_record_is_dealt_once_to_the_partition_of_its_hash_in_order(
    rows: list[tuple[int, bytes]], partitions: int
) -> None:
    hashes, values = zip(*rows, strict=True)
    keys = [b"%d" % index for index in range(len(rows))]
    request = ProduceMany("t", values, keys, hashes, Origin.V1, acks=Acks.ALL)
    parts, places = deal(request, partitions)
    taken = [0] * len(parts)
    for index, place in enumerate(places):
        part = parts[place]
        assert part.route == hashes[index] % partitions
        assert part.batch.values[taken[place]] == values[index]
        assert part.batch.keys is not None
        assert part.batch.keys[taken[place]] == keys[index]
        taken[place] += 1
    assert taken == [part.batch.count for part in parts]
    assert len({part.route for part in parts}) == len(parts)
    assert all(part.acks is Acks.ALL and part.topic == "t" for part in parts)
