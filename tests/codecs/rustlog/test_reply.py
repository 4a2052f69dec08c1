"""Replies from core as frames, where the log is not as simple as a test's."""

from __future__ import annotations

from array import array

from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.rustlog.parse import Tag
from dragoman.codecs.rustlog.reply import ReplyWriter, error_frame
from dragoman.codecs.rustlog.sayable import described
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX, REPLIES, Command
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice, Fetched, TopicsListed
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure


def writer(reply_bytes_max: int = FRAME_BYTES_MAX) -> ReplyWriter:
    return ReplyWriter(RenderingCache(), reply_bytes_max)


def stored(values: list[bytes], base_offset: int, deltas: tuple[int, ...] = ()) -> RecordBatch:
    batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)
    batch.place(base_offset=base_offset, timestamp_us=0, log_epoch=0)
    if deltas:
        batch.offset_deltas = array("I", deltas)
        batch.last_offset_delta = deltas[-1]
    return batch


def sent(
    slices: list[BatchSlice], start: int, next_offset: int, *, log_start: int = 0, offset: int
) -> tuple[list[bytes], int]:
    """What a binary fetch from `offset` is told of these slices."""
    reply = Fetched("default", "demo", 0, slices, start, next_offset, 100, log_start)
    tag = Tag(Command.FETCH, False, "demo", 0, offset, False, 1 << 20)
    data = b"".join(writer().write(tag, reply).buffers)
    found = REPLIES[Command.FETCH].parse(data[4:])
    return list(found.records), found.next_offset


def test_a_binary_reply_ends_before_a_gap() -> None:
    batch = stored([b"a", b"b", b"c", b"d"], 10, (0, 1, 5, 6))
    after = stored([b"e"], 17)
    slices = [BatchSlice(batch, 0, 4), BatchSlice(after, 0, 1)]
    assert sent(slices, 10, 18, offset=10) == ([b"a", b"b"], 12)
    assert sent([BatchSlice(batch, 2, 4), *slices[1:]], 15, 18, offset=15) == (
        [b"c", b"d", b"e"],
        18,
    )
    apart = [BatchSlice(stored([b"a"], 0), 0, 1), BatchSlice(stored([b"b"], 2), 0, 1)]
    assert sent(apart, 0, 3, offset=0) == ([b"a"], 1)


def test_a_binary_reply_that_would_begin_behind_a_gap_points_behind_it() -> None:
    batch = stored([b"a", b"b"], 10, (0, 5))
    assert sent([BatchSlice(batch, 1, 2)], 12, 16, offset=12) == ([], 15)


def test_a_binary_fetch_below_the_log_start_is_empty_and_echoes_the_offset() -> None:
    batch = stored([b"a"], 10)
    assert sent([BatchSlice(batch, 0, 1)], 10, 11, log_start=10, offset=3) == ([], 3)


def test_json_names_the_offsets_behind_a_gap() -> None:
    batch = stored([b"a", b"b"], 10, (0, 5))
    reply = Fetched("default", "demo", 0, [BatchSlice(batch, 0, 2)], 10, 16, 100, 0)
    data = b"".join(writer().write(Tag(Command.FETCH, True), reply).buffers)
    assert data[4:] == (
        b'{"Fetch":{"records":[{"offset":10,"payload":[97]},{"offset":15,"payload":[98]}],'
        b'"next_offset":16}}'
    )


def test_a_list_that_no_reply_can_hold_becomes_an_error() -> None:
    listed = TopicsListed([described(f"topic-{n}", [(0, 0)]) for n in range(9)])
    (frame,) = writer(60).write(Tag(Command.LIST_TOPICS, False), listed).buffers
    assert REPLIES[Command.ERROR].parse(bytes(frame)[4:]).code == 500


def test_an_error_text_is_cut_between_characters_at_64_kib() -> None:
    tag = Tag(Command.PRODUCE, False, "\u00e9" * 40_000, 0)
    (frame,) = error_frame(tag, Failure(ErrorCode.UNKNOWN_TOPIC)).buffers
    found = REPLIES[Command.ERROR].parse(bytes(frame)[4:])
    assert 65_533 <= found.length <= 65_535
    assert found.message.decode().startswith("Topic or partition does not exist: topic=\u00e9")
