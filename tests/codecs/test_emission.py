"""What code is written for what is known of a body."""

from __future__ import annotations

import construct as con
import pytest

from dragoman.codecs.declaration import Body, Undeclarable
from dragoman.codecs.emission import Source
from dragoman.codecs.emission_mixed import MixedEmission
from dragoman.codecs.emission_records import RecordsEmission
from dragoman.codecs.kernel_list import Kernel

BYTES = con.Prefixed(con.Int16ub, con.GreedyBytes)
BODY = con.Struct(
    "rows"
    / con.PrefixedArray(con.Int32ub, con.Struct("at" / con.Int64ub, "a" / BYTES, "b" / BYTES))
)


def loop(**hints: tuple[str, ...]) -> str:
    """The part of a module that reads records of mixed sizes."""
    emission = MixedEmission(Kernel("k", "toy:k", **hints), Body(BODY))
    emission.mixed()
    return "\n".join(emission.out.lines)


def test_lines_are_indented_as_blocks_open_and_close() -> None:
    out = Source()
    out.indent("if x:")
    out("y")
    out()
    out.dedent()
    out("z")
    assert out.lines == ["if x:", "    y", "", "z"]


def test_fixed_neighbours_and_the_next_length_are_read_by_one_struct() -> None:
    emission = RecordsEmission(Kernel("k", "toy:k"), Body(BODY))
    emission.decode_records()
    assert set(emission.unpackers) == {"QH", "H"}


def test_nothing_is_guessed_where_every_size_varies() -> None:
    text = loop(varying=("a", "b"))
    assert "_shape" not in text
    assert "guesses" not in text


def test_steady_neighbours_are_compared_as_one_run_of_bytes() -> None:
    text = loop(varying=("a",), steady=("b",))
    assert "!= k2:" in text
    assert "l2.extend(repeat(l2[-1], more))" in text


def test_members_that_are_not_there_are_refused_as_hints() -> None:
    with pytest.raises(Undeclarable, match=r"no record member \['c'\]"):
        loop(varying=("c",))
