"""Compressed frames are opened within bounds."""

from __future__ import annotations

import gzip
import zlib

import pytest

from dragoman.codecs.cursus import inflate
from dragoman.codecs.cursus.inflate import ALWAYS_BYTES, RATIO_MAX, BadFrame


@pytest.mark.parametrize("body", [b"", b"x", b"some text" * 1000, bytes(ALWAYS_BYTES)])
def test_one_whole_member_is_opened(body: bytes) -> None:
    assert inflate.inflate(gzip.compress(body)) == body


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 20])
def test_a_cut_off_member_is_refused(cut: int) -> None:
    data = gzip.compress(b"some text" * 100)
    with pytest.raises(BadFrame):
        inflate.inflate(data[:-cut])


def test_a_damaged_member_is_refused() -> None:
    data = bytearray(gzip.compress(b"some text" * 100))
    data[-6] ^= 1
    with pytest.raises(BadFrame):
        inflate.inflate(bytes(data))


def test_a_second_member_is_refused() -> None:
    with pytest.raises(BadFrame):
        inflate.inflate(gzip.compress(b"a") + gzip.compress(b"b"))


def test_what_grows_beyond_the_ratio_is_refused() -> None:
    data = gzip.compress(bytes(ALWAYS_BYTES + 1))
    assert RATIO_MAX * len(data) < ALWAYS_BYTES
    with pytest.raises(BadFrame, match="are allowed"):
        inflate.inflate(data)


def test_a_member_that_declares_less_than_it_holds_is_refused_before_it_is_out() -> None:
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(bytes(50_000_000)) + packer.flush()
    with pytest.raises(BadFrame):
        inflate.inflate(data[:-4] + (100).to_bytes(4, "little"))


def test_a_frame_too_short_for_gzip_declares_nothing() -> None:
    assert inflate.declared_bytes(b"\x1f\x8b\xff\xff\xff\xff") == 0
