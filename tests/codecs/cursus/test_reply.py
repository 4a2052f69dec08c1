"""Frames with records: sliced renderings, and none larger than a frame may be."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from dragoman.codecs.cursus import reply
from dragoman.codecs.cursus.translate import Style, Tag
from dragoman.codecs.cursus.wire import BATCH_L1, BATCH_L3
from dragoman.codecs.rendering import RenderingCache
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice, Fetched
from dragoman.core.column import VarColumn
from support.cursus import unframed

if TYPE_CHECKING:
    import pytest

TAG = Tag("CONSUME", "t", 3)


def record_batch(count: int, base: int = 0, size: int = 10) -> RecordBatch:
    values = VarColumn.of([b"%d" % (base + n) + b"." * (n % 3 + size) for n in range(count)])
    made = RecordBatch(count, values, origin=Origin.CURSUS, base_sequence=base + 1)
    made.place(base_offset=base, timestamp_us=1, log_epoch=0)
    return made


def offsets(frames: list[bytes]) -> list[list[int]]:
    return [[row.offset for row in BATCH_L3.parse(body).messages] for body in frames]


def test_slices_of_several_batches_are_one_frame() -> None:
    slices = [BatchSlice(record_batch(5), 2, 5), BatchSlice(record_batch(4, 5), 0, 3)]
    buffers = reply.batch_frames(slices, TAG, RenderingCache(), only_first=True)
    (body,) = unframed(b"".join(buffers))
    assert offsets([body]) == [[2, 3, 4, 5, 6, 7]]
    head = BATCH_L3.parse(body)
    assert (head.partition, head.acks, head.seq_start, head.seq_end) == (3, b"1", 3, 8)


def test_a_batch_is_rendered_once() -> None:
    made = record_batch(5)
    renderings = RenderingCache()
    reply.batch_frames([BatchSlice(made, 0, 5)], TAG, renderings, only_first=True)
    held = renderings.bytes_held
    kept = renderings.get(made, reply.RENDERING)
    reply.batch_frames([BatchSlice(made, 1, 2)], TAG, renderings, only_first=True)
    assert renderings.get(made, reply.RENDERING) is kept
    assert renderings.bytes_held == held > 0


def test_what_does_not_fit_a_frame_is_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "FRAME_BYTES_MAX", reply.HEAD_BYTES_MAX + 200)
    slices = [BatchSlice(record_batch(5), 0, 5), BatchSlice(record_batch(5, 5), 0, 5)]
    all_of_it = reply.batch_frames(slices, TAG, RenderingCache(), only_first=False)
    frames = unframed(b"".join(all_of_it))
    assert [*chain.from_iterable(offsets(frames))] == list(range(10))
    assert all(len(body) <= reply.FRAME_BYTES_MAX for body in frames)
    first = reply.batch_frames(slices, TAG, RenderingCache(), only_first=True)
    assert unframed(b"".join(first)) == frames[:1]


def test_no_frame_has_more_messages_than_a_batch_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "COUNT_MAX", 4)
    slices = [BatchSlice(record_batch(5), 0, 5), BatchSlice(record_batch(5, 5), 0, 5)]
    buffers = reply.batch_frames(slices, TAG, RenderingCache(), only_first=False)
    assert offsets(unframed(b"".join(buffers))) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_no_records_are_one_empty_batch() -> None:
    buffers = reply.batch_frames([], TAG, RenderingCache(), only_first=False)
    assert offsets(unframed(b"".join(buffers))) == [[]]


def test_the_documents_layout_shares_the_rendering() -> None:
    made = record_batch(2)
    renderings = RenderingCache()
    slices = [BatchSlice(made, 0, 2)]
    code = reply.batch_frames(slices, TAG, renderings, only_first=True)
    document_tag = Tag("STREAM", "t", 3, style=Style.DOCUMENT)
    document = reply.batch_frames(slices, document_tag, renderings, only_first=True)
    assert document[1] is code[1]
    assert bytes(document[0])[9:12] == b"\0\x013"


def test_l1_has_a_rendering_of_its_own() -> None:
    made = record_batch(2)
    renderings = RenderingCache()
    slices = [BatchSlice(made, 0, 2)]
    tag = Tag("CONSUME", "t", 3, style=Style.L1)
    (body,) = unframed(b"".join(reply.batch_frames(slices, tag, renderings, only_first=True)))
    assert [row.offset for row in BATCH_L1.parse(body).messages] == [0, 1]
    assert renderings.get(made, reply.RENDERING_L1) is not None
    assert renderings.get(made, reply.RENDERING) is None


def test_topics_of_a_pattern_are_one_frame_or_one_each() -> None:
    parts = [
        Fetched(namespace, "t", 3, [BatchSlice(record_batch(2), 0, 2)], 0, 2, 2, 0)
        for namespace in ("default", "n")
    ]
    tag = Tag("CONSUME", "*", 3)
    together = reply.matching_frames(parts, tag, RenderingCache(), apart=False)
    (body,) = unframed(b"".join(together))
    assert BATCH_L3.parse(body).topic == b"*"
    assert offsets([body]) == [[0, 1, 0, 1]]
    apart = unframed(b"".join(reply.matching_frames(parts, tag, RenderingCache(), apart=True)))
    assert [BATCH_L3.parse(body).topic for body in apart] == [b"t", b"n/t"]
    assert offsets(apart) == [[0, 1], [0, 1]]


def test_payload_frames_have_the_payload_alone() -> None:
    slices = [BatchSlice(record_batch(3), 1, 3)]
    data = b"".join(map(bytes, reply.payload_frames(slices)))
    assert unframed(data) == [b"1" + b"." * 11, b"2" + b"." * 12]
