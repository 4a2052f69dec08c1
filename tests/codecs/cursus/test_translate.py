"""The words of failures and answers."""

from __future__ import annotations

import orjson
import pytest

from dragoman.codecs.cursus.translate import (
    ERRORS,
    AckTag,
    Tag,
    ack,
    printable,
    refusal,
    words,
)
from dragoman.core.error import ErrorCode, Failure

MEMBERS = [
    "status",
    "last_offset",
    "producer_epoch",
    "producer_id",
    "seq_start",
    "seq_end",
    "leader",
    "error",
]


def test_every_reason_has_words() -> None:
    assert ERRORS.keys() == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_words_never_fail_whatever_a_failure_knows(code: ErrorCode) -> None:
    tag = Tag("COMMIT", 'to"p\nic', 3, "g", "m")
    told = refusal(tag, Failure(code, 'a "detail"')).decode()
    assert told.startswith("ERROR: ")
    assert "\n" not in told


@pytest.mark.parametrize("code", ErrorCode)
def test_the_error_of_an_ack_needs_no_escape(code: ErrorCode) -> None:
    told = refusal(AckTag('to"p\\ic\n', 3), Failure(code, 'a "detail" \\ \t'))
    assert b"\\" not in told
    answer = orjson.loads(told)
    assert list(answer) == MEMBERS
    assert answer["status"] == "ERROR"


def test_an_ack_has_all_members_and_exact_integers() -> None:
    tag = AckTag("t", 0, b"p", -(2**63), 1, 2**64 - 1)
    assert ack(tag, 2**63 - 1, "h:1").decode() == (
        '{"status":"OK","last_offset":9223372036854775807,'
        '"producer_epoch":-9223372036854775808,"producer_id":"p","seq_start":1,'
        '"seq_end":18446744073709551615,"leader":"h:1","error":""}'
    )


def test_a_failure_s_own_facts_are_told() -> None:
    failure = Failure(ErrorCode.NOT_OWNER, "", {"partition": 7, "generation": 2})
    tag = Tag("BATCH_COMMIT", "t", group="g", member="m")
    assert words(tag, failure) == "NOT_OWNER partition=7 member=m group=g generation=2"


def test_clients_find_the_words_that_they_look_for_in_idempotence_failures() -> None:
    gap = Failure(ErrorCode.OUT_OF_ORDER_SEQUENCE, "", {"expected": 4, "got": 9})
    stale = Failure(ErrorCode.STALE_PRODUCER_EPOCH, "", {"current": 4, "requested": 3})
    assert b"idempotency gap" in refusal(AckTag(), gap)
    assert b"stale_producer_epoch" in refusal(AckTag(), stale)


def test_a_peers_text_is_made_harmless() -> None:
    assert printable('a"b\\c\nd\x7f\0é') == "a'b/c?d??é"
