"""Changes at rest."""

from __future__ import annotations

from typing import get_args

import pytest

from dragoman.core import change as ch
from dragoman.core.change import Change, decode_change, encode_change

EXAMPLES: list[Change] = [
    ch.NamespacePut(3, "größe", 5),
    ch.NamespaceDropped(3),
    ch.TopicPut(1, 3, 2, "t", 5, [5, 6], {"retention_ms": 7, "idempotent": True}),
    ch.TopicDropped(1),
    ch.Trimmed(1, 0, 2**62),
    ch.OffsetPut(1, "group", "g", 0, -(2**63)),
    ch.GroupPut(3, "t", "g", 1, 2, "range", 3, [["m", "v1", 10_000_000, False]]),
    ch.GroupDropped(3, "t", "g"),
    ch.ProducerPut(1, 0, "p\xff", 2**62, 0, 2**64 - 1, 5, 7),
    ch.ProducersExpired(1, 0, 9),
    ch.RolePut(1, 0, True),
    ch.EpochRaised(4),
]


@pytest.mark.parametrize("change", EXAMPLES)
def test_what_is_written_is_read_back(change: Change) -> None:
    assert decode_change(encode_change(change)) == change
    assert type(decode_change(memoryview(encode_change(change)))) is type(change)


def test_every_change_has_a_name_at_rest() -> None:
    assert {type(change) for change in EXAMPLES} == set(get_args(Change))


@pytest.mark.parametrize(
    "data", [b'["unknown", 1]', b'["topic-drop"]', b'["topic-drop", 1, 2]', b"nonsense", b""]
)
def test_what_is_not_a_change_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - orjson words some of them
        decode_change(data)
