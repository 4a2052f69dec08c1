"""How much may come out of a frame is decided here, not by who sent it."""

from __future__ import annotations

import pytest

from dragoman.codecs.compression import registry
from dragoman.codecs.cursus.inflate import ALWAYS_BYTES, RATIO_MAX, bound_of, pack
from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("size", "bound"),
    [
        (0, 4 * MIB),
        (41_943, 4 * MIB),
        (41_944, 4_194_400),
        (100_000, 10_000_000),
        (671_088, 67_108_800),
        (671_089, 64 * MIB),
        (64 * MIB, 64 * MIB),
    ],
)
def test_the_bound_is_the_larger_of_a_size_and_a_ratio_within_a_frame(
    size: int, bound: int
) -> None:
    assert bound_of(size, FRAME_BYTES_MAX) == bound


def test_a_listener_of_smaller_frames_opens_less() -> None:
    assert bound_of(100, 1000) == 1000
    assert bound_of(1_000_000, 8 * MIB) == 8 * MIB


def test_what_a_server_would_not_open_is_sent_plain() -> None:
    gzip = registry().named("gzip")
    for size in (ALWAYS_BYTES, ALWAYS_BYTES + 1):
        body = bytes(size)
        assert RATIO_MAX * len(gzip.compress(body)) < size
        packed = pack(gzip, body, FRAME_BYTES_MAX)
        assert (packed == body) is (size > ALWAYS_BYTES)


def test_what_would_grow_out_of_its_frame_is_sent_plain() -> None:
    gzip = registry().named("gzip")
    packed = gzip.compress(b"abc")
    assert pack(gzip, b"abc", len(packed)) == packed
    assert pack(gzip, b"abc", len(packed) - 1) == b"abc"
