"""What CONSUME and STREAM ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.translate import Style
from dragoman.core import calls
from dragoman.core.calls import Whence
from dragoman.gateway.carrier import SLOW_READER_US, Pulse, overdue
from dragoman.gateway.session import REPLY_BYTES_WAITING_MAX
from support.asked import asked
from support.conversation import Conversation
from support.cursus import framed, unframed


@pytest.mark.parametrize(
    ("tail", "whence", "offset"),
    [
        ("offset=7 group=g autoOffsetReset=latest", Whence.OFFSET, 7),
        ("group=g", Whence.COMMITTED, 0),
        ("group=g autoOffsetReset=earliest", Whence.COMMITTED, 0),
        ("group=g autoOffsetReset=latest", Whence.COMMITTED_OR_LATEST, 0),
        ("autoOffsetReset=latest", Whence.LATEST, 0),
        ("autoOffsetReset=earliest", Whence.EARLIEST, 0),
    ],
)
@pytest.mark.parametrize("keyword", ["CONSUME", "STREAM"])
def test_a_reader_begins_where_it_says_else_where_its_group_is(
    keyword: str, tail: str, whence: Whence, offset: int
) -> None:
    request = asked(f"{keyword} topic=t partition=0 {tail}").request
    assert isinstance(request, calls.Fetch | calls.Follow)
    assert (request.whence, request.offset) == (whence, offset)


def test_a_stream_takes_the_place_of_the_last_and_is_kept_alive() -> None:
    request = asked("STREAM topic=t partition=0 group=g batch=9").request
    assert isinstance(request, calls.Follow)
    assert (request.commit_us, request.idle_us) == (5_000_000, 2_400_000)
    assert (request.records_max, request.replaces) == (9, True)


def test_a_stream_without_a_group_commits_nothing() -> None:
    tag, request = asked("STREAM t 0 0")
    assert isinstance(request, calls.Follow)
    assert request.commit_us == 0
    assert tag.style is Style.DOCUMENT


def test_a_reader_never_gets_more_than_8192_messages_at_a_time() -> None:
    for tail in ("", " batch=8193", " batch=2147483647"):
        request = asked(f"CONSUME topic=t partition=0 offset=0{tail}").request
        assert isinstance(request, calls.Fetch)
        assert request.records_max == 8192


def test_the_documents_consume_may_be_one_batch() -> None:
    assert asked("CONSUME t 0 0").tag.style is Style.FRAMES
    assert asked("CONSUME t 0 0", consume_style="batch").tag.style is Style.DOCUMENT


def test_the_clients_readers_get_the_layout_of_the_listener() -> None:
    for options, style in (
        ({}, Style.BATCH),
        ({"legacy_replies": True}, Style.L1),
        ({"legacy_replies": True, "reply_layout": "l3"}, Style.BATCH),
        ({"reply_layout": "l1"}, Style.L1),
    ):
        for text in ("CONSUME topic=t partition=0 offset=0", "STREAM topic=t partition=0 group=g"):
            assert asked(text, **options).tag.style is style
        assert asked("STREAM t 0 0", **options).tag.style is Style.DOCUMENT


def test_only_a_clients_poll_that_names_no_time_waits_for_the_listeners() -> None:
    for text, wait_us in (
        ("CONSUME topic=t partition=0 offset=0", 500_000),
        ("CONSUME topic=t partition=0 offset=0 wait_ms=0", 0),
        ("CONSUME topic=t partition=0 offset=0 wait_ms=7", 7_000),
        ("CONSUME t 0 0", 0),
    ):
        request = asked(text, empty_wait="500ms").request
        assert isinstance(request, calls.Fetch)
        assert request.wait_us == wait_us


def test_a_pattern_is_read_whole_by_the_clients_form_alone() -> None:
    request = asked("CONSUME topic=n/log-? partition=1 offset=5 batch=9").request
    assert isinstance(request, calls.FetchMatching)
    assert (request.pattern, request.namespace, request.partition) == ("log-?", "n", 1)
    assert (request.offset, request.records_max) == (5, 9)
    assert isinstance(asked("CONSUME log* 0 0").request, calls.Fetch)


def test_a_stream_pauses_for_a_slow_reader_and_loses_nothing() -> None:
    writer = Conversation("cursus")
    writer.send(framed("CREATE topic=t partitions=1"))
    count = 40
    for number in range(count):
        writer.send(framed(b"PUBLISH t <%d>" % number + bytes(200_000)))
    reader = writer.another("cursus")
    reader.session.received(framed("STREAM t 0 0"), reader.now)
    reader.exchange.settle()
    waiting = reader.session.outbox.size
    assert REPLY_BYTES_WAITING_MAX <= waiting < 3 * REPLY_BYTES_WAITING_MAX < count * 200_000
    pulse = Pulse(reader.now.mono_us, reader.now.mono_us)
    late = reader.now._replace(mono_us=reader.now.mono_us + SLOW_READER_US)
    assert overdue(reader.session, pulse, 0, SLOW_READER_US, late) == "stopped reading"
    heard = b"".join(unframed(reader.heard()))
    assert all(heard.count(b"<%d>" % number) == 1 for number in range(count))
    assert len(heard) > count * 200_000
