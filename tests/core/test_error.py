"""Errors become failures."""

from __future__ import annotations

from dragoman.core.error import EngineError, ErrorCode, Failure


def test_an_error_becomes_the_failure_that_tells_of_it() -> None:
    error = EngineError(ErrorCode.STALE_GENERATION, "stale", current=2, requested=1)
    assert error.failure() == Failure(
        ErrorCode.STALE_GENERATION, "stale", {"current": 2, "requested": 1}
    )


def test_an_error_without_a_sentence_reads_as_its_code() -> None:
    assert str(EngineError(ErrorCode.DAMAGED)) == "DAMAGED"


def test_codes_are_distinct() -> None:
    assert len({code.value for code in ErrorCode}) == len(ErrorCode)
