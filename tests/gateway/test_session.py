from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import structlog
from structlog.testing import LogCapture

from dragoman.gateway.delivery import deliver
from dragoman.gateway.session import REPLY_BYTES_WAITING_MAX, REQUESTS_WAITING_MAX
from support.conversation import Conversation
from support.toy import TOY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="log")
def captured_log() -> Iterator[LogCapture]:
    capture = LogCapture()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    yield capture
    structlog.reset_defaults()


@pytest.fixture(name="toy")
def toy_conversation(log: LogCapture) -> Conversation:
    return Conversation(TOY)


def test_a_request_is_answered(toy: Conversation) -> None:
    assert toy.send(b"p hello\n") == b"ok 0\n"
    assert toy.send(b"f 0\n") == b"got hello\n"


def test_pipelined_requests_are_answered_in_order(toy: Conversation) -> None:
    assert toy.send(b"p a\ne between\np b\ne last\n") == b"ok 0\nbetween\nok 1\nlast\n"


def test_who_writes_and_reads_in_one_breath_reads_what_it_wrote(toy: Conversation) -> None:
    assert toy.send(b"p a\nf 0\np b\nf 0\n") == b"ok 0\ngot a\nok 1\ngot a b\n"


def test_the_end_of_the_stream_behind_a_held_read_is_not_forgotten(toy: Conversation) -> None:
    toy.session.received(b"p a\nf 0\n", toy.now)
    assert toy.hang_up() == b"ok 0\ngot a\n"
    assert toy.closed


def test_an_answer_that_is_ready_waits_for_the_one_before_it(toy: Conversation) -> None:
    session, now = toy.session, toy.now
    session.received(b"p a\ne later\n", now)
    assert session.outbox.size == 0
    assert session.waiting == 2
    assert toy.heard() == b"ok 0\nlater\n"


def test_a_long_poll_holds_back_what_was_asked_after_it(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"w 1 1000\ne after\n") == b""
    assert toy.advance(1.1) == b"none\nafter\n"


def test_a_long_poll_is_answered_when_another_connection_writes(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"w 1 60000\n") == b""
    toy.another(TOY).send(b"p b\n")
    assert toy.heard() == b"got b\n"


def test_pushes_go_between_whole_replies(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"s 0 0\n") == b"push a\n"
    assert toy.send(b"e x\n") == b"x\n"
    toy.another(TOY).send(b"p b\n")
    assert toy.heard() == b"push b\n"


def test_a_follow_waits_for_the_replies_before_it(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"p b\ns 0 0\n").startswith(b"ok 1\npush a")


def test_a_read_in_one_breath_with_a_follow_does_not_wait_for_it(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"s 1 0\nf 0\ns 1 0\ne last\n") == b"got a\nlast\n"
    assert toy.hang_up() == b""
    assert toy.closed


def test_a_silent_follow_is_kept_alive_on_its_own_interval(toy: Conversation) -> None:
    toy.send(b"p a\n")
    toy.send(b"s 1 3000\n")
    assert toy.advance(2.9) == b""
    assert toy.advance(0.2) == b"idle\n"
    assert toy.advance(6.0) == b"idle\nidle\n"


def test_a_follow_of_nothing_is_refused_and_the_connection_goes_on(toy: Conversation) -> None:
    assert toy.send(b"s 0 0\ne on\n") == b"refused UNKNOWN_TOPIC\non\n"


def test_a_refusal_keeps_its_place_in_the_order(toy: Conversation) -> None:
    assert toy.send(b"p a\nr\ne c\n") == b"ok 0\nrefused UNKNOWN_COMMAND\nc\n"
    assert not toy.closed


def test_a_fatal_refusal_answers_what_came_before_and_then_closes(toy: Conversation) -> None:
    assert toy.send(b"p a\nR\ne never\n") == b"ok 0\nrefused MALFORMED\n"
    assert toy.closed


def test_a_hang_up_answers_what_was_asked_and_then_closes(toy: Conversation) -> None:
    assert toy.send(b"p a\nq\ne never\n") == b"ok 0\n"
    assert toy.closed


def test_the_end_of_the_stream_still_gets_what_is_owed(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert toy.send(b"w 1 1000\n") == b""
    assert toy.hang_up() == b""
    assert not toy.closed
    assert toy.advance(1.1) == b"none\n"
    assert toy.closed


def test_the_end_of_the_stream_ends_a_follow(toy: Conversation) -> None:
    toy.send(b"p a\n")
    toy.send(b"s 0 0\n")
    toy.hang_up()
    assert toy.closed


def test_a_connection_whose_peer_takes_nothing_is_not_read(toy: Conversation) -> None:
    session = toy.session
    session.received(b"n %d\n" % REPLY_BYTES_WAITING_MAX + b"e more\n", toy.now)
    assert not session.wants_read
    assert session.held
    assert session.outbox.size == REPLY_BYTES_WAITING_MAX + 1
    session.outbox.clear()
    session.advance(toy.now)
    assert session.wants_read
    assert session.outbox.take() == b"more\n"


def test_a_connection_with_too_many_waiting_requests_is_not_read(toy: Conversation) -> None:
    toy.send(b"p a\n")
    toy.session.received(b"w 1 1000\n" + b"e x\n" * REQUESTS_WAITING_MAX, toy.now)
    assert not toy.session.wants_read
    assert toy.advance(1.1) == b"none\n" + b"x\n" * REQUESTS_WAITING_MAX
    assert toy.session.wants_read


def test_pushing_stops_while_the_peer_takes_nothing(toy: Conversation) -> None:
    writer = toy.another(TOY)
    for _ in range(5):
        writer.send(b"p " + b"v" * 400_000 + b"\n")
    toy.session.received(b"s 0 0\n", toy.now)
    deliver(toy.engine, toy.now)
    assert toy.session.outbox.size < 2 * REPLY_BYTES_WAITING_MAX
    assert toy.session.held
    assert len(toy.heard()) > 5 * 400_000


def test_what_depends_on_a_topic_is_decided_when_its_turn_comes(toy: Conversation) -> None:
    assert toy.send(b"i a\np x\ni b\ne c\n") == b"missing\nok 0\nthere\nb\nc\n"


def test_offloaded_work_keeps_the_order_and_stops_reading(toy: Conversation) -> None:
    session, now = toy.session, toy.now
    session.received(b"e one\no two\ne three\n", now)
    assert not session.wants_read
    call = session.take_offload()
    assert call is not None
    assert session.take_offload() is None
    assert not session.wants_read
    session.offloaded(call(), now)
    assert session.outbox.take() == b"one\ntwo\nthree\n"
    assert session.wants_read


def test_an_offloaded_call_that_fails_ends_the_connection(
    toy: Conversation, log: LogCapture
) -> None:
    toy.session.received(b"o two\n", toy.now)
    assert toy.session.take_offload() is not None
    toy.session.offloaded(RuntimeError("a bug in a thread"), toy.now)
    assert toy.session.closing
    assert [entry["event"] for entry in log.entries] == ["fault"]


@pytest.mark.parametrize("line", [b"b\n", b"B\n"])
def test_our_own_bug_ends_one_connection_and_no_other(
    toy: Conversation, log: LogCapture, line: bytes
) -> None:
    other = toy.another(TOY)
    assert toy.send(b"e fine\n") == b"fine\n"
    toy.send(line)
    assert toy.closed
    assert other.send(b"p a\n") == b"ok 0\n"
    (entry,) = log.entries
    assert entry["event"] == "fault"
    assert entry["session"] == toy.session.client.number


def test_a_bug_while_another_connections_request_is_served_stays_where_it_is(
    toy: Conversation,
) -> None:
    other = toy.another(TOY)
    toy.session.received(b"p a\nB\n", toy.now)
    other.session.received(b"p b\n", toy.now)
    assert toy.heard() == b"ok 0\n"
    assert toy.closed
    assert other.heard() == b"ok 1\n"


def test_refused_input_is_logged_by_what_it_looks_like_and_never_by_its_bytes(
    toy: Conversation, log: LogCapture
) -> None:
    toy.send(b"GET /secret HTTP/1.1\n")
    toy.send(b"R\n")
    first, second, _count = log.entries
    assert first["event"] == "refused"
    assert first["looks_like"] == "an HTTP request"
    assert first["received_bytes"] == 21
    assert second["fatal"] is True
    assert "secret" not in repr(log.entries)


def test_repeated_refusals_are_counted_instead_of_logged(
    toy: Conversation, log: LogCapture
) -> None:
    toy.send(b"r\n" * 50)
    toy.hang_up()
    assert [entry["event"] for entry in log.entries] == ["refused", "refusals"]
    assert log.entries[1]["count"] == 50


def test_draining_answers_what_was_asked_and_hears_no_more(toy: Conversation) -> None:
    session, now = toy.session, toy.now
    session.received(b"p a\n", now)
    session.drain(now)
    assert not session.closing
    assert toy.heard() == b"ok 0\n"
    assert toy.closed


def test_draining_answers_what_was_heard_but_not_yet_served(toy: Conversation) -> None:
    session, now = toy.session, toy.now
    session.received(b"p a\nf 0\ne b\n", now)
    session.drain(now)
    assert not session.wants_read
    assert toy.heard() == b"ok 0\ngot a\nb\n"
    assert toy.closed


def test_draining_waits_for_a_thread(toy: Conversation) -> None:
    session, now = toy.session, toy.now
    session.received(b"o a\n", now)
    call = session.take_offload()
    session.drain(now)
    assert not session.closing
    assert call is not None
    session.offloaded(call(), now)
    assert toy.heard() == b"a\n"
    assert toy.closed


def test_a_session_without_debts_is_not_busy(toy: Conversation) -> None:
    toy.send(b"p a\n")
    assert not toy.session.busy
    toy.send(b"w 1 1000\n")
    assert toy.session.busy


def test_a_gone_session_is_quiet(toy: Conversation) -> None:
    toy.send(b"p a\n")
    toy.send(b"w 1 1000\n")
    toy.session.gone(toy.now)
    toy.session.gone(toy.now)
    toy.another(TOY).send(b"p b\n")
    assert toy.heard() == b""


def test_a_long_row_of_writes_and_reads_is_served_to_its_end(toy: Conversation) -> None:
    heard = toy.send(b"p a\nf 999999\n" * 8000)
    assert heard.count(b"\n") == 16_000


def test_who_asks_without_end_pauses_so_that_others_have_their_turn(
    toy: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.session.monotonic_ns", itertools.count(0, 10**6).__next__)
    session = toy.session
    session.received(b"e x\n" * 100, toy.now)
    assert session.paused
    assert not session.listening
    heard = session.outbox.take().count(b"x")
    assert 1 <= heard < 10
    session.advance(toy.now)
    assert session.outbox.size == 0
    session.resume(toy.now)
    assert 1 <= session.outbox.take().count(b"x") < 10


def test_whoever_pauses_is_heard_to_the_end(
    toy: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.session.monotonic_ns", itertools.count(0, 10**6).__next__)
    toy.session.received(b"e x\n" * 100 + b"o y\ne z\n", toy.now)
    assert toy.hang_up() == b"x\n" * 100 + b"y\nz\n"
    assert toy.closed
