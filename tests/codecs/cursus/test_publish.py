"""The hash of text publishes, and records of their own."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.publish import one_record
from dragoman.core.route import fnv1a_64


@pytest.mark.parametrize(
    ("key", "expected"),
    [(b"", 14695981039346656037), (b"a", 12638187200555641996), (b"k1", 629957523660743873)],
)
def test_the_hash_is_that_of_the_published_brokers(key: bytes, expected: int) -> None:
    assert fnv1a_64(key) == expected


@pytest.mark.parametrize(("key", "partition"), [(b"k1", 5), (b"user-1", 8), (b"order-123", 6)])
def test_keys_go_where_the_published_brokers_put_them(key: bytes, partition: int) -> None:
    assert fnv1a_64(key) % 12 == partition


def test_what_is_empty_or_zero_is_absent() -> None:
    record = one_record(b"").record(0)
    assert (record.value, record.key, record.producer) == (b"", None, None)
    assert (record.epoch, record.sequence) == (None, None)
