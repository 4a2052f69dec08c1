"""Which journal groups count after a stop."""

from __future__ import annotations

from dragoman.core.storage.group import GroupAt
from dragoman.core.storage.replay import Replay, plan_replay


def group(number: int, *, incarnation: int = 1, synced: int | None = None) -> GroupAt:
    """Group n holds sequences 10n+1 to 10n+10."""
    known = number - 1 if synced is None else synced
    return GroupAt(0, 4096 * number, incarnation, number, 10 * number + 1, known, 10, 1, 100)


def plan(*groups: GroupAt, after: int = 0, give_up_from: int | None = None) -> Replay:
    return plan_replay(
        groups,
        sequence=10 * after + 10,
        group=after,
        incarnation=1,
        give_up_from=give_up_from,
    )


def numbers(replay: Replay) -> list[tuple[int, int]]:
    return [(found.incarnation, found.number) for found in replay.groups]


def test_groups_are_taken_in_the_order_of_their_sequences() -> None:
    replay = plan(group(3), group(1), group(2))
    assert numbers(replay) == [(1, 1), (1, 2), (1, 3)]
    assert (replay.sequence, replay.group, replay.damage) == (40, 3, "")


def test_groups_that_the_catalog_holds_are_passed_over() -> None:
    assert numbers(plan(group(1), group(2), group(3), after=2)) == [(1, 3)]


def test_a_torn_tail_ends_the_replay_without_complaint() -> None:
    replay = plan(group(1), group(3, synced=1))
    assert numbers(replay) == [(1, 1)]
    assert replay.damage == ""


def test_a_missing_group_that_was_durable_is_damage() -> None:
    replay = plan(group(1), group(3), group(4))
    assert numbers(replay) == [(1, 1)]
    assert "group 2 (from sequence 21)" in replay.damage


def test_damage_can_be_given_up_by_name() -> None:
    replay = plan(group(1), group(3), give_up_from=21)
    assert numbers(replay) == [(1, 1)]
    assert replay.damage == ""
    assert numbers(plan(group(1), group(2), group(3), give_up_from=25)) == [(1, 1)]


def test_a_later_life_wins_over_what_an_earlier_one_left_behind() -> None:
    torn_away = group(3, synced=1)
    replay = plan(group(1), torn_away, group(2, incarnation=2), group(3, incarnation=2))
    assert numbers(replay) == [(1, 1), (2, 2), (2, 3)]
    assert numbers(plan(group(1), torn_away, group(2, incarnation=2))) == [(1, 1), (2, 2)]


def test_a_later_life_that_does_not_join_on_is_damage() -> None:
    assert "damaged" in plan(group(1), group(3, incarnation=2)).damage


def test_an_earlier_life_never_goes_on_after_a_later_one() -> None:
    replay = plan_replay([group(1)], sequence=10, group=0, incarnation=2)
    assert (replay.groups, replay.damage, replay.incarnation) == ([], "", 2)
