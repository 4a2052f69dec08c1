from __future__ import annotations

import pytest

from dragoman.codecs.iggy.xxhash import xxh32


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 1426945110),
        (b"\1\0\0\0", 4089149075),
        (b"key-1", 962816521),
        ((7).to_bytes(8, "little"), 3913589855),
        (b"hello world", 3468387874),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
    ids=repr,
)
def test_the_hash_is_that_of_published_programs(data: bytes, expected: int) -> None:
    assert xxh32(data) == expected
