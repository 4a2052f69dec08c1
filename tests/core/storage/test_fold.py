"""Folding: the same catalog as if every entry had been applied in its turn."""

from __future__ import annotations

from random import Random

from dragoman.core import change as ch
from dragoman.core.catalog import Catalog
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.flush import Appended
from dragoman.core.storage.fold import Folding, apply_fold


def entries(random: Random, count: int) -> list[ch.Change | Appended]:
    made: list[ch.Change | Appended] = []
    for n in range(count):
        kind = random.randrange(18)
        if kind < 5:
            made.append(Appended(1, random.randrange(3), n, n))
        elif kind < 9:
            group = random.choice("ab")
            made.append(ch.OffsetPut(1, "group", group, random.randrange(3), n))
        elif kind < 11:
            group = random.choice("ab")
            made.append(
                ch.GroupPut(DEFAULT_NAMESPACE_NUMBER, "t", group, 1, n, "range", 3, [["m", "v1"]])
            )
        elif kind < 15:
            first = n * random.choice((1, 1, 2))
            producer, epoch = random.choice("pq"), n // 15
            made.append(
                ch.ProducerPut(1, random.randrange(3), producer, epoch, first, first + 1, n, n)
            )
        elif kind == 15:
            made.append(
                random.choice(
                    (
                        ch.ProducersExpired(1, 0, n // 2),
                        ch.RolePut(1, 1, bool(n % 2)),
                        ch.GroupDropped(DEFAULT_NAMESPACE_NUMBER, "t", "a"),
                    )
                )
            )
        elif kind == 16:
            made.append(ch.Trimmed(1, random.randrange(3), n // 2))
        else:
            partitions = [1] * random.randint(1, 3)
            made.append(ch.TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "t", 1, partitions, {}))
    return made


def test_folding_gives_what_applying_one_by_one_gives() -> None:
    for seed in range(200):
        steps = entries(Random(seed), 40)
        plain, folded, folding = Catalog(), Catalog(), Folding()
        for step in steps:
            apply_fold(plain, step)
        folding.add(steps[:25])
        folding.add(steps[25:])
        folding.apply(folded)
        assert folded.to_json() == plain.to_json(), seed
        assert folding.steps == 0


def test_what_only_its_newest_state_counts_of_takes_no_more_room_however_often_they_change() -> (
    None
):
    folding = Folding()
    for n in range(1000):
        folding.add(
            [
                ch.OffsetPut(1, "group", "g", 0, n),
                Appended(1, 0, n, n),
                ch.GroupPut(1, "t", "g", 1, n, "range", 3, []),
                ch.ProducerPut(1, 0, "p", 1, 2 * n, 2 * n, n, n),
            ]
        )
    assert folding.steps == 4
