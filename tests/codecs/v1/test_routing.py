"""Keys go where the V1 document's hash sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.v1 import routing
from dragoman.codecs.v1.routing import fnv1a_32, key_hash, key_hashes

if TYPE_CHECKING:
    import pytest


def test_fnv1a_is_the_published_function() -> None:
    assert fnv1a_32(b"") == 0x811C9DC5
    assert fnv1a_32(b"a") == 0xE40C292C
    assert fnv1a_32(b"foobar") == 0xBF9CF968


def test_many_hashes_are_those_of_each() -> None:
    keys = [b"k%d" % (index % 9) for index in range(40)] + [b"x" * 1000]
    expected = [fnv1a_32(key) for key in keys]
    assert key_hashes(keys) == expected
    assert key_hashes(keys) == expected


def test_remembered_hashes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_REMEMBERED_MAX", 10)
    monkeypatch.setattr(routing, "_remembered", {})
    for index in range(100):
        assert key_hash(b"%d" % index) == fnv1a_32(b"%d" % index)
        assert len(routing._remembered) <= 10


def test_long_keys_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_remembered", {})
    key_hash(b"x" * 65)
    assert not routing._remembered
