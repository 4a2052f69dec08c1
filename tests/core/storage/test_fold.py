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
        kind = random.randrange(12)
        if kind < 5:
            made.append(Appended(1, random.randrange(3), n, n))
        elif kind < 9:
            group = random.choice("ab")
            made.append(ch.OffsetPut(1, "group", group, random.randrange(3), n))
        elif kind == 9:
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


def test_offsets_and_ends_take_no_more_room_however_often_they_change() -> None:
    folding = Folding()
    for n in range(1000):
        folding.add([ch.OffsetPut(1, "group", "g", 0, n), Appended(1, 0, n, n)])
    assert folding.steps == 2
