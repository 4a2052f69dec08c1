"""Groups: what members may be told, and which commits may be accepted."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.simulation.membership import Membership
from dragoman.simulation.rule import Broken, Rule


def group() -> Membership:
    """A group in generation 2, of which a owns partitions 0 and 2, b partition 1."""
    group = Membership("g")
    group.joined("a", 1, (0, 1, 2), before=0, count=3)
    group.joined("b", 2, (1,), before=1, count=3)
    group.joined("a", 2, (0, 2), before=2, count=3)
    return group


def breaks(rule: Rule) -> Any:
    return pytest.raises(Broken, match=f"^{rule.name}: ")


def test_members_are_told_the_same_again() -> None:
    known = group()
    known.joined("a", 2, (0, 2), before=2, count=3)
    assert known.generation == 2


def test_a_partition_has_one_owner_in_a_generation() -> None:
    with breaks(Rule.OWNER):
        group().joined("c", 2, (1,), before=2, count=3)


def test_what_a_member_owns_stays_within_a_generation() -> None:
    with breaks(Rule.OWNER):
        group().joined("a", 2, (0,), before=2, count=3)


def test_a_member_owns_partitions_that_there_are() -> None:
    with breaks(Rule.OWNER):
        group().joined("a", 3, (0, 3), before=2, count=3)


def test_generations_do_not_fall() -> None:
    with breaks(Rule.GENERATION):
        group().joined("a", 1, (0, 1, 2), before=2, count=3)


def test_an_owner_commits() -> None:
    group().committed("b", 2, 1, before=2)


def test_a_commit_of_an_old_generation_is_not_accepted() -> None:
    with breaks(Rule.FENCED):
        group().committed("a", 1, 0, before=2)


def test_a_commit_for_the_partition_of_another_is_not_accepted() -> None:
    with breaks(Rule.FENCED):
        group().committed("a", 2, 1, before=2)
