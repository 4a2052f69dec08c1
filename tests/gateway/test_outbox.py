from __future__ import annotations

from dragoman.gateway.outbox import Outbox


def test_empty_buffers_are_left_out() -> None:
    outbox = Outbox()
    outbox.add((b"", b"ab", b"", b"c"))
    assert outbox.buffers == [b"ab", b"c"]
    assert outbox.size == 3


def test_a_buffer_that_left_in_part_goes_on_as_a_view_of_the_rest() -> None:
    outbox = Outbox()
    outbox.add((b"abc", b"defg", b"h"))
    outbox.sent(5)
    assert b"".join(outbox.buffers) == b"fgh"
    assert outbox.size == 3


def test_a_send_that_ends_between_buffers_keeps_the_next_one_as_it_is() -> None:
    outbox = Outbox()
    second = b"defg"
    outbox.add((b"abc", second))
    outbox.sent(3)
    assert outbox.buffers[0] is second


def test_everything_sent_leaves_it_empty() -> None:
    outbox = Outbox()
    outbox.add((b"abc", b"d"))
    outbox.sent(4)
    assert outbox.buffers == []
    assert outbox.size == 0


def test_every_split_of_a_message_comes_out_whole() -> None:
    parts = [b"ab", b"c", b"defgh", b"ij"]
    for step in range(1, 11):
        outbox = Outbox()
        outbox.add(parts)
        out = b""
        while outbox.size:
            piece = b"".join(outbox.buffers)[:step]
            out += piece
            outbox.sent(len(piece))
        assert out == b"abcdefghij"


def test_take_joins_what_is_left() -> None:
    outbox = Outbox()
    outbox.add((b"ab", memoryview(b"cd")))
    assert outbox.take() == b"abcd"
    assert outbox.size == 0


def test_take_joins_no_more_than_asked_for() -> None:
    outbox = Outbox()
    outbox.add((b"ab", memoryview(b"cdefg"), b"h"))
    assert [outbox.take(3) for _ in range(3)] == [b"abc", b"def", b"gh"]
    assert outbox.size == 0
    assert outbox.take(3) == b""


def test_take_ends_where_a_buffer_does() -> None:
    outbox = Outbox()
    outbox.add((b"ab", b"cd"))
    assert outbox.take(2) == b"ab"
    assert outbox.buffers == [b"cd"]
