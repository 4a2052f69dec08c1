"""Texts of failures, payloads of replies."""

from __future__ import annotations

import pytest

from dragoman.codecs.v1.translate import (
    ERRORS,
    core_generation,
    error_text,
    number_list,
    payload,
    shown_generation,
)
from dragoman.codecs.v1.wire import Code
from dragoman.core.calls import OffsetFetched, Ponged
from dragoman.core.error import ErrorCode, Failure


def test_every_error_has_a_text_of_one_line() -> None:
    assert set(ERRORS) == set(ErrorCode)
    for code, text in ERRORS.values():
        assert isinstance(code, Code)
        assert text.isprintable()


def test_a_topic_that_is_not_there_has_no_group() -> None:
    assert error_text("COMMIT", Failure(ErrorCode.UNKNOWN_TOPIC)) == (
        Code.GENERATION_MISMATCH,
        "group not found",
    )
    assert error_text("CONSUME", Failure(ErrorCode.UNKNOWN_TOPIC))[0] is Code.BAD_REQUEST


def test_a_role_for_no_partition_names_the_place_as_v1_writes_it() -> None:
    facts: dict[str, int | str] = {"namespace": "space", "topic": "t", "partition": 9}
    missing = Failure(ErrorCode.UNKNOWN_PARTITION, facts=facts)
    assert error_text("SET_PARTITION_ROLE", missing) == (
        Code.BAD_REQUEST,
        "partition not found: topic=space/t partition=9",
    )


def test_generations_convert_both_ways() -> None:
    assert shown_generation(1) == 2
    assert core_generation(shown_generation(7)) == 7


def test_lists_are_printed_as_go_prints_them() -> None:
    assert number_list([0, 2]) == "[0 2]"
    assert number_list([]) == "[]"


def test_what_was_never_committed_shows_as_zero() -> None:
    assert payload(OffsetFetched(0, None, 9)) == "offset=0"


def test_a_reply_that_no_command_asks_for_is_our_own_bug() -> None:
    with pytest.raises(TypeError, match="Ponged"):
        payload(Ponged())
