"""Compressions stand beside each other only where they can be told apart."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from dragoman.codecs import compression
from dragoman.codecs.compression import (
    BadCompression,
    BadRegistration,
    Compression,
    Registry,
    chosen,
    register,
    registry,
)


def one(name: str = "mine", magic: bytes = b"\xf0\x01") -> Compression:
    """A compression that leaves everything as it is, behind its magic."""
    return Compression(
        name, magic, lambda data: magic + data, lambda data, limit: data[len(magic) :]
    )


def test_what_is_registered_is_found_by_name_and_by_magic() -> None:
    there = Registry()
    mine, plain = one(), one("plain", b"")
    there.register(mine)
    there.register(plain)
    assert there.names() == ("mine", "plain")
    assert there.named("mine") is mine
    assert there.sniff(b"\xf0\x01data") is mine
    assert there.sniff(b"\xf0\x02data") is None
    assert there.sniff(b"\xf0") is None
    assert there.sniff(b"") is None


def test_two_that_begin_with_the_same_byte_are_told_apart() -> None:
    there = Registry()
    there.register(one("a", b"\xf0\x01"))
    there.register(one("b", b"\xf0\x02"))
    found = [there.sniff(magic + b"x") for magic in (b"\xf0\x01", b"\xf0\x02")]
    assert [named.name for named in found if named] == ["a", "b"]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (one("gzip", b"\xf0\x01"), "there is a compression 'gzip' already"),
        (one("none", b""), "not called 'none'"),
        (one("", b""), "not called ''"),
        (one("Gzip", b""), "not called 'Gzip'"),
        (one("a b", b""), "not called 'a b'"),
        (one("a" * 33, b""), "1 to 32 of a-z"),
        (one("a", b"\x1f"), "has 1 bytes; 2 to 16"),
        (one("a", b"\x1f" * 17), "has 17 bytes; 2 to 16"),
        (one("a", b"\x1f\x8b"), "1f 8b of compression 'a' cannot be told from 1f 8b of 'gzip'"),
        (one("a", b"\x1f\x8b\x08"), "cannot be told from 1f 8b of 'gzip'"),
        (one("a", b"\x28\xb5"), "cannot be told from 28 b5 2f fd of 'zstd'"),
        (one("a", b"\x00\x05"), "begins like a frame that is not compressed"),
        (one("a", b"BZh"), "begins like a frame that is not compressed"),
        (one("a", b"\n\x05"), "begins like a frame that is not compressed"),
        (one("a", b"\xba\x7c\x01"), "begins like a frame that is not compressed"),
    ],
)
def test_what_cannot_be_told_apart_is_refused_with_a_sentence(
    added: Compression, said: str
) -> None:
    there = Registry()
    for built_in in ("gzip", "zstd"):
        there.register(registry().named(built_in))
    with pytest.raises(BadRegistration, match=said):
        there.register(added)
    assert there.names() == ("gzip", "zstd")
    assert there.sniff(b"\xf0\x01") is None


def test_the_built_in_ones_are_there() -> None:
    assert registry().names()[:5] == ("gzip", "lz4", "snappy", "snappy-block", "zstd")


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"no compression 'rar'; there are .*gzip, lz4"):
        registry().named("rar")
    with pytest.raises(ValueError, match=r"one of none, gzip, lz4, .*, not 'rar'"):
        chosen("rar")
    with pytest.raises(ValueError, match="not 7"):
        chosen(7)


def test_none_is_chosen_by_its_name() -> None:
    assert chosen("none") is None
    assert chosen("zstd") is registry().named("zstd")


def test_a_decompressor_that_makes_more_than_it_may_is_caught() -> None:
    assert one().open(b"\xf0\x01abc", 3) == b"abc"
    with pytest.raises(BadCompression, match="more than 2 bytes come out of the mine data"):
        one().open(b"\xf0\x01abc", 2)


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's registry is made anew for this test, and again behind it."""
    monkeypatch.setattr(compression, "registry", compression.registry.__wrapped__)


def test_an_installed_package_brings_its_own(
    monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    entry = EntryPoint("mine", f"{__name__}:offered", "dragoman.compressions")
    monkeypatch.setattr(EntryPoint, "load", lambda _: one())
    monkeypatch.setattr(compression, "entry_points", lambda group: [entry])
    assert compression.registry().names()[-1] == "mine"


def test_an_installed_package_that_clashes_stops_the_start_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> None:
    entry = EntryPoint("zstd", f"{__name__}:offered", "dragoman.compressions")
    monkeypatch.setattr(EntryPoint, "load", lambda _: one("zstd"))
    monkeypatch.setattr(compression, "entry_points", lambda group: [entry])
    with pytest.raises(ValueError, match="there is a compression 'zstd' already"):
        chosen("zstd")


def test_a_program_registers_its_own_with_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Registry()
    monkeypatch.setattr(compression, "registry", lambda: there)
    register(one())
    assert chosen("mine") is there.named("mine")
