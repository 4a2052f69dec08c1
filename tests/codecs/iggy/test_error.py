from __future__ import annotations

from dragoman.codecs.iggy import command, error
from dragoman.codecs.iggy.error import ERRORS, REASONS, Tag, number_of
from dragoman.core.error import ErrorCode


def test_every_refusal_of_core_has_a_number() -> None:
    assert set(ERRORS) == set(ErrorCode)
    assert all(number > 0 for number in ERRORS.values())


def test_every_number_that_the_server_sends_means_something_to_the_client() -> None:
    sent = {number_of(code, Tag(each)) for code in ErrorCode for each in range(200, 606)}
    assert sent - set(REASONS) == {error.ERROR}


def test_a_missing_stream_is_told_by_how_it_was_named() -> None:
    assert number_of(ErrorCode.UNKNOWN_NAMESPACE, Tag(command.GET_STREAM)) == 1009
    by_name = Tag(command.GET_STREAM, stream_named=True)
    assert number_of(ErrorCode.UNKNOWN_NAMESPACE, by_name) == 1010


def test_a_missing_topic_is_told_by_how_it_was_named() -> None:
    assert number_of(ErrorCode.UNKNOWN_TOPIC, Tag(command.GET_TOPIC, stream_named=True)) == 2010
    assert number_of(ErrorCode.UNKNOWN_TOPIC, Tag(command.GET_TOPIC, topic_named=True)) == 2011


def test_a_bad_name_is_told_by_what_was_to_be_named() -> None:
    assert number_of(ErrorCode.INVALID_NAME, Tag(command.CREATE_STREAM)) == 1013
    assert number_of(ErrorCode.INVALID_NAME, Tag(command.CREATE_TOPIC)) == 2014


def test_a_number_found_in_parsing_wins() -> None:
    assert number_of(ErrorCode.MALFORMED, Tag(command.SEND_MESSAGES, number=4024)) == 4024
