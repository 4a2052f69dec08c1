"""Assignors: every partition has exactly one owner, and nobody has much more than another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.calls import Assignor
from dragoman.core.groups.assignor import contiguous, round_robin, shares


@pytest.mark.parametrize(
    ("assignor", "members", "partitions", "expected"),
    [
        (Assignor.ROUND_ROBIN, 2, 3, [[0, 2], [1]]),
        (Assignor.ROUND_ROBIN, 3, 3, [[0], [1], [2]]),
        (Assignor.ROUND_ROBIN, 3, 1, [[0], [], []]),
        (Assignor.ROUND_ROBIN, 1, 0, [[]]),
        (Assignor.RANGE, 2, 5, [[0, 1, 2], [3, 4]]),
        (Assignor.RANGE, 3, 2, [[0], [1], []]),
        (Assignor.RANGE, 3, 8, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (Assignor.RANGE, 0, 3, []),
    ],
)
def test_shares_are_as_documented(
    assignor: Assignor, members: int, partitions: int, expected: list[list[int]]
) -> None:
    assert [list(share) for share in shares(assignor, members, partitions)] == expected


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(Assignor), st.integers(1, 40), st.integers(0, 200))
def test_every_partition_is_owned_once_and_shares_differ_by_one_at_most(
    assignor: Assignor, members: int, partitions: int
) -> None:
    dealt = shares(assignor, members, partitions)
    assert sorted(partition for share in dealt for partition in share) == list(range(partitions))
    sizes = [len(share) for share in dealt]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 40), st.integers(0, 200))
def test_round_robin_goes_by_remainder_and_range_by_neighbourhood(
    members: int, partitions: int
) -> None:
    for place in range(members):
        assert all(p % members == place for p in round_robin(place, members, partitions))
        assert contiguous(place, members, partitions).step == 1
