"""Patterns of topic names."""

from __future__ import annotations

from itertools import product
from time import perf_counter

import pytest

from dragoman.core.pattern import compiled, is_pattern


def simply(pattern: str, name: str) -> bool:
    """Whether a pattern means a name, by trying everything."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(simply(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and simply(pattern[1:], name[1:])


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("log-*", "log-1", True),
        ("log-*", "log-", True),
        ("log-*", "Log-1", False),
        ("log-?", "log-10", False),
        ("*", "", True),
        ("a.b*", "axb", False),
        ("?", "é", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("t", "t\n", False),
        ("[ab]*", "a", False),
    ],
)
def test_a_pattern_means_whole_names(pattern: str, name: str, *, expected: bool) -> None:
    assert (compiled(pattern).match(name) is not None) is expected


def test_every_short_pattern_means_what_trying_everything_finds() -> None:
    names = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]
    for size in range(5):
        for letters in product("ab*?", repeat=size):
            pattern = "".join(letters)
            found = [name for name in names if compiled(pattern).match(name)]
            assert found == [name for name in names if simply(pattern, name)], pattern


def test_no_pattern_takes_long() -> None:
    begun = perf_counter()
    assert compiled("*a" * 100 + "*b").match("a" * 255) is None
    assert perf_counter() - begun < 0.5


def test_only_stars_and_question_marks_make_a_pattern() -> None:
    assert is_pattern("a*")
    assert is_pattern("?")
    assert not is_pattern("a.b-c_d")
