"""The parts of a line."""

from __future__ import annotations

import pytest

from dragoman.codecs.v1.line import has_space, integer, open_envelope, split_arguments, trimmed


def test_white_space_beyond_ascii_separates_and_is_trimmed() -> None:
    assert split_arguments("a\u3000b\u00a0\u2003c".encode()) == [b"a", b"b", b"c"]
    assert trimmed("\u2028 a b\u0085".encode()) == b"a b"
    assert trimmed(b"\xff\xc2\x85") == b"\xff"


def test_separator_controls_are_no_white_space() -> None:
    assert split_arguments(b"a\x1cb\x1fc") == [b"a\x1cb\x1fc"]
    assert trimmed("\x1cé\x1f".encode()) == "\x1cé\x1f".encode()


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (b"+7", 7),
        (b"-0", 0),
        (b"0" * 5000 + b"9", 9),
        (b"9" * 5000, None),
        (b"-9223372036854775808", -(1 << 63)),
        (b"9223372036854775808", None),
        (b"", None),
        (b"1_0", None),
        (b"\xd9\xa1", None),
        (b"7\n", None),
    ],
)
def test_integers_are_those_of_64_bits_in_ascii_digits(word: bytes, number: int | None) -> None:
    assert integer(word) == number


def test_the_first_fault_of_an_envelope_is_named() -> None:
    assert open_envelope(b"V2||") == "expected format V1|<correlation_id>|<command>|<args>"
    assert open_envelope(b"V2|||") == "unsupported version"
    assert open_envelope(b"V1|||") == "correlation id required"
    assert open_envelope(b"V1|1||") == "command required"


def test_only_one_argument_has_no_space() -> None:
    assert not has_space(b"a|b")
    assert has_space(b"")
    assert has_space("a\u2003".encode())


def test_a_line_of_white_space_is_read_in_linear_time() -> None:
    assert open_envelope(b"V1|1|X|" + b" \xc2\xa0" * 300_000 + b"a")[2] == [b"a"]
