"""The slow walk that names what is wrong."""

from __future__ import annotations

import pytest

from dragoman.codecs.malformed import Malformed, Part, diagnose, walk

PLAN = (
    Part("magic", size=2, constant=b"OK"),
    Part("name", prefix=">H", text=True),
    Part("number", size=4),
)


def test_a_sound_structure_is_walked_to_its_end() -> None:
    assert walk(PLAN, b"..OK\x00\x01xNNNN..", 2, 11) == 11


@pytest.mark.parametrize(
    ("data", "path", "at"),
    [
        (b"O", "magic", 0),
        (b"KO\x00\x00NNNN", "magic", 0),
        (b"OK\x00", "name", 2),
        (b"OK\x00\x09short", "name", 2),
        (b"OK\x00\x01\xffNNNN", "name", 2),
        (b"OK\x00\x01xNNN", "number", 5),
    ],
)
def test_the_first_field_that_does_not_fit_is_named(data: bytes, path: str, at: int) -> None:
    with pytest.raises(Malformed) as refusal:
        walk(PLAN, data, 0, len(data))
    assert (refusal.value.path, refusal.value.at) == (path, at)


@pytest.mark.parametrize(
    ("count", "path", "at"),
    [
        (3, "rows", 0),
        (-1, "rows", 0),
        (2, "rows[1].name", 11),
        (1, "", 9),
        (None, "rows[1].name", 11),
    ],
)
def test_structures_are_counted(count: int | None, path: str, at: int) -> None:
    data = b"OK\x00\x01xNNNNOK\x00\x07NNNN"
    with pytest.raises(Malformed) as refusal:
        diagnose(PLAN, data, 0, len(data), "rows", count, 8)
    assert (refusal.value.path, refusal.value.at) == (path, at)
