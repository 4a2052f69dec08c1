"""Batches as items: kept, sliced, cut to size, with the escaped ones listed."""

from __future__ import annotations

from array import array

from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.v1.rendering import Items, Renderer, render
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice
from dragoman.core.column import VarColumn


def batch(values: list[bytes | None], base: int = 0) -> RecordBatch:
    made = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)
    made.place(base_offset=base, timestamp_us=1, log_epoch=1)
    return made


def renderer(reply_bytes_max: int = 1 << 20) -> Renderer:
    return Renderer(RenderingCache(), reply_bytes_max=reply_bytes_max, spaces=False)


def said(slices: list[BatchSlice], reply_bytes_max: int = 1 << 20) -> tuple[bytes, list[int]]:
    buffers, escaped = renderer(reply_bytes_max).records(slices)
    return b"".join(map(bytes, buffers)), escaped


def test_items_are_offset_and_value() -> None:
    items = render(batch([b"a", None, b""], base=7), spaces=False)
    assert items.data == b"7:a,8:,9:,"
    assert items.ends == [4, 7, 10]


def test_offsets_with_gaps_are_kept() -> None:
    made = batch([b"a", b"b,"], base=10)
    made.offset_deltas = array("I", [0, 5])
    assert said([BatchSlice(made, 0, 2)]) == (b"10:a,15:b%2C", [15])


def test_slices_are_joined_by_commas_and_the_last_has_none() -> None:
    first, second = batch([b"a", b"b"]), batch([b"c", b"d"], base=2)
    assert said([BatchSlice(first, 1, 2), BatchSlice(second, 0, 1)]) == (b"1:b,2:c", [])
    assert said([]) == (b"", [])


def test_only_escaped_records_of_the_slice_are_listed() -> None:
    made = batch([b",", b"a", b",", b","])
    assert said([BatchSlice(made, 1, 3)]) == (b"1:a,2:%2C", [2])


def test_a_reply_is_cut_before_the_record_that_would_pass_its_size() -> None:
    first, second = batch([b"aaa", b"bbb"]), batch([b"ccc"], base=2)
    slices = [BatchSlice(first, 0, 2), BatchSlice(second, 0, 1)]
    assert said(slices, 18)[0] == b"0:aaa,1:bbb,2:ccc"
    assert said(slices, 17)[0] == b"0:aaa,1:bbb"
    assert said(slices, 11)[0] == b"0:aaa"


def test_the_first_record_always_comes() -> None:
    made = batch([b"," * 100, b"b"])
    assert said([BatchSlice(made, 0, 2)], 10) == (b"0:" + b"%2C" * 100, [0])


def test_a_batch_is_rendered_once_for_each_form() -> None:
    made = batch([b"a b"])
    kept = RenderingCache()
    plain = Renderer(kept, reply_bytes_max=100, spaces=False)
    spaced = Renderer(kept, reply_bytes_max=100, spaces=True)
    assert plain.items(made) is plain.items(made)
    assert plain.items(made).data == b"0:a b,"
    assert spaced.items(made).data == b"0:a%20b,"


def test_what_a_rendering_could_not_say_is_counted() -> None:
    items = render(batch([b",", b"a"]), spaces=False)
    assert isinstance(items, Items)
    assert items.inexact == 1
