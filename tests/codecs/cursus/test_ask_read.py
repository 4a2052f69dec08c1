"""What CONSUME and STREAM ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.translate import Style
from dragoman.core import calls
from dragoman.core.calls import Whence
from support.asked import asked


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
