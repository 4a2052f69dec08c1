"""What refusals of every generation of brokers mean."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.fault import address_of, failure_of, refused
from dragoman.core.error import ErrorCode

MEANT = [
    ("ERROR: topic_not_found topic=zz", ErrorCode.UNKNOWN_TOPIC),
    ("ERROR: topic 'zz' does not exist", ErrorCode.UNKNOWN_TOPIC),
    ("topic 'nope' not found", ErrorCode.UNKNOWN_TOPIC),
    ("ERROR: TOPIC_NOT_FOUND t", ErrorCode.UNKNOWN_TOPIC),
    ("ERROR: partition 7 out of range for topic 'a' (0-1)", ErrorCode.UNKNOWN_PARTITION),
    ("ERROR: group 'nog' not found", ErrorCode.UNKNOWN_GROUP),
    ("ERROR group_not_found: g", ErrorCode.UNKNOWN_GROUP),
    ("ERROR topic_not_assigned_to_group: a zz", ErrorCode.GROUP_TOPIC_MISMATCH),
    ("ERROR: consumer 'x' not found", ErrorCode.UNKNOWN_MEMBER),
    ("member zz not found in group or no assignments", ErrorCode.UNKNOWN_MEMBER),
    ("ERROR: not partition owner or generation mismatch", ErrorCode.STALE_GENERATION),
    ("REBALANCE_REQUIRED", ErrorCode.STALE_GENERATION),
    ("ERROR: REBALANCE_REQUIRED", ErrorCode.STALE_GENERATION),
    ("ERROR: GEN_MISMATCH current=2 requested=1", ErrorCode.STALE_GENERATION),
    ("ERROR: NOT_OWNER partition=0 member=m", ErrorCode.NOT_OWNER),
    ('ERROR: command_failed reason="NOT_LEADER LEADER_IS h:1"', ErrorCode.NOT_LEADER),
    ("NOT_LEADER", ErrorCode.NOT_LEADER),
    ("ERROR: NOT_COORDINATOR host=h port=1", ErrorCode.NOT_LEADER),
    ('ERROR: broker_error reason="stale_producer_epoch"', ErrorCode.STALE_PRODUCER_EPOCH),
    ('ERROR: broker_error reason="idempotency gap"', ErrorCode.OUT_OF_ORDER_SEQUENCE),
    ("ERROR: invalid offset value: -1", ErrorCode.INVALID_OFFSET),
    ("ERROR: missing_topic command=PUBLISH", ErrorCode.MALFORMED),
    ("missing topic parameter. Expected: CREATE topic=<name>", ErrorCode.MALFORMED),
    ("JOIN_GROUP requires member parameter", ErrorCode.MALFORMED),
    ("ERROR: the weather", ErrorCode.INTERNAL),
    ("STREAM_CONTROL type=CLOSE reason=stopped offset=5", ErrorCode.SHUTTING_DOWN),
    ("STREAM_CONTROL type=CLOSE reason=removed offset=5", ErrorCode.INTERNAL),
    (
        "STREAM_CONTROL type=CLOSE reason=offset_out_of_range offset=5 requested=5 earliest=7",
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ),
]


@pytest.mark.parametrize(("told", "code"), MEANT)
def test_a_refusal_has_one_meaning(told: str, code: ErrorCode) -> None:
    failure = refused(told.encode())
    assert failure is not None
    assert failure.code is code


@pytest.mark.parametrize(
    "told", ["OK", "OK topic=NOT_LEADER partitions=1", '{"error":"GEN_MISMATCH"}', "22", "NO"]
)
def test_what_is_no_refusal_is_none(told: str) -> None:
    assert refused(told.encode()) is None


@pytest.mark.parametrize(
    ("told", "beside", "leader"),
    [
        ("NOT_LEADER LEADER_IS h:9000", "", "h:9000"),
        ("NOT_LEADER LEADER_IS h:9000 partition=0", "i:1", "h:9000"),
        ('command_failed reason="NOT_LEADER LEADER_IS [::1]:9000"', "", "[::1]:9000"),
        ("NOT_LEADER", "i:1", "i:1"),
        ("NOT_COORDINATOR host=h port=7", "", "h:7"),
        ("NOT_LEADER LEADER_IS ?", "", None),
        ("NOT_LEADER LEADER_IS h:0", "", None),
    ],
)
def test_the_leader_is_told_where_it_is_an_address(
    told: str, beside: str, leader: str | None
) -> None:
    assert failure_of(told, beside).facts.get("leader") == leader


def test_the_new_generation_of_a_bare_push_is_told() -> None:
    failure = refused(b"REBALANCE_REQUIRED generation=7")
    assert failure is not None
    assert failure.facts["current"] == 7


@pytest.mark.parametrize("text", ["", "h", "h:", "h:99999", "user@h:1", "h:1/x", None, 5])
def test_what_is_no_address_is_none(text: object) -> None:
    assert address_of(text) == ""
