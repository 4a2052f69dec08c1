from __future__ import annotations

from dragoman.codecs.rendering import Rendering, RenderingCache
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn


def batch_of(*values: bytes) -> RecordBatch:
    return RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)


def test_any_range_of_a_rendering_is_one_slice() -> None:
    mixed = Rendering(b"abbccc", [1, 3, 6])
    even = Rendering(b"aabbcc", None, 2)
    assert bytes(mixed.slice(1, 3, 3)) == b"bbccc"
    assert bytes(even.slice(1, 2, 3)) == b"bb"
    assert bytes(mixed.slice(2, 2, 3)) == b""


def test_the_whole_rendering_is_handed_out_without_a_copy() -> None:
    rendering = Rendering(b"abc", [1, 2, 3])
    assert rendering.slice(0, 3, 3) is rendering.data


def test_a_rendering_is_kept_by_batch_and_key() -> None:
    cache = RenderingCache()
    batch, other = batch_of(b"a"), batch_of(b"a")
    kept = Rendering(b"a", [1])
    cache.put(batch, "v1", kept)
    assert cache.get(batch, "v1") is kept
    assert cache.get(batch, "iggy") is None
    assert cache.get(other, "v1") is None


def test_the_oldest_go_first_when_the_budget_is_passed() -> None:
    cache = RenderingCache(bytes_max=4_000)
    batches = [batch_of(b"x") for _ in range(6)]
    for batch in batches:
        cache.put(batch, "v1", Rendering(bytes(800), None, 800))
    assert cache.bytes_held <= 4_000
    assert [cache.get(batch, "v1") is not None for batch in batches] == [False] * 2 + [True] * 4


def test_a_rendering_too_large_for_its_share_is_not_kept() -> None:
    cache = RenderingCache(bytes_max=4_000)
    batch = batch_of(b"x")
    cache.put(batch, "v1", Rendering(bytes(1_000), None, 1_000))
    assert cache.get(batch, "v1") is None
    assert cache.bytes_held == 0


def test_inexact_records_are_counted_by_key_whether_kept_or_not() -> None:
    cache = RenderingCache(bytes_max=4_000)
    cache.put(batch_of(b"x"), "v1", Rendering(bytes(2_000), None, 2_000, inexact=2))
    cache.put(batch_of(b"y"), "v1", Rendering(b"y", [1], inexact=1))
    cache.put(batch_of(b"z"), "iggy", Rendering(b"z", [1]))
    assert dict(cache.inexact) == {"v1": 3}
