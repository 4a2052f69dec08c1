from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from dragoman.codecs.framing import PIECE_BYTES_MIN, Reassembly


def test_what_arrives_whole_is_handed_on_as_it_came() -> None:
    rest = Reassembly()
    data = b"whole"
    assert rest.add(data) is data
    assert (rest.held, rest.wanted) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_are_joined_once_all_are_there(seed: int) -> None:
    dice = Random(seed)
    frame = dice.randbytes(5 * PIECE_BYTES_MIN)
    cuts = sorted(dice.sample(range(1, len(frame)), dice.randint(1, 40)))
    rest = Reassembly()
    rest.keep(frame[: cuts[0]], len(frame))
    for start, end in pairwise([*cuts, len(frame)]):
        assert rest.wanted == len(frame) - start
        joined = rest.add(frame[start:end])
        assert (joined is None) == (end < len(frame))
    assert joined == frame
    assert rest.wanted == 0


def test_a_frame_that_comes_byte_by_byte_is_held_in_two_pieces() -> None:
    rest = Reassembly()
    rest.keep(b"x", 10_000)
    for _ in range(9_998):
        assert rest.add(b"y") is None
    assert len(rest._parts) == 2
    assert rest.held == 9_999


def test_keeping_nothing_waits_for_nothing() -> None:
    rest = Reassembly()
    rest.keep(b"", 4)
    assert rest.wanted == 0
