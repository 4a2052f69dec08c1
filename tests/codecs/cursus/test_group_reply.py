"""What members, and those who look at groups, are told; whole conversations are vectors."""

from __future__ import annotations

import re

import orjson
import pytest

from dragoman.codecs.cursus.group_reply import line, refusal, status
from dragoman.codecs.cursus.translate import Tag
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

JAVA_JOIN = re.compile(r"OK\s+generation=(\d+)\s+member=(\S+)\s+assignments=\[?([\d\s]*)]?")
"""How one client reads the reply of JOIN_GROUP, whole."""


@pytest.mark.parametrize("partitions", [(), (0,), (0, 1, 12)])
@pytest.mark.parametrize("positional", [False, True])
@pytest.mark.parametrize("legacy", [False, True])
def test_the_reply_of_a_join_has_the_one_shape(
    partitions: tuple[int, ...], positional: bool, legacy: bool
) -> None:
    tag = Tag("JOIN_GROUP", "t", group="g", positional=positional)
    told = line(tag, calls.GroupJoined("c-0001", 3, partitions), legacy=legacy)
    found = JAVA_JOIN.fullmatch(told)
    assert found is not None
    assert found.groups() == ("3", "c-0001", " ".join(map(str, partitions)))


def test_a_status_has_the_fields_that_brokers_give_it() -> None:
    member = calls.MemberDescription("c", "v1", (0, 2), True)
    group = calls.GroupDescription("default", "t", "g", 1, 4, calls.Assignor.RANGE, 3, [member])
    shown = orjson.loads(status(group, legacy=False))
    assert [*shown] == [
        *("status", "group_name", "topic_name", "state", "generation", "member_count"),
        *("partition_count", "members", "last_rebalance"),
    ]
    assert shown["state"] == "Stable"
    assert [*shown["members"][0]] == ["member_id", "last_heartbeat", "assignments"]
    assert shown["members"][0]["assignments"] == [0, 2]
    assert "status" not in orjson.loads(status(group, legacy=True))


def test_what_a_codec_itself_refused_keeps_its_words() -> None:
    tag = Tag("HEARTBEAT", positional=True, wording="missing_member command=HEARTBEAT")
    assert refusal(tag, Failure(ErrorCode.MALFORMED), legacy=True) is None


@pytest.mark.parametrize("code", ErrorCode)
def test_a_failure_is_told_in_some_words_whatever_it_says(code: ErrorCode) -> None:
    for command in ("JOIN_GROUP", "HEARTBEAT", "SYNC_GROUP", "BATCH_COMMIT", "SUBSCRIBE"):
        for positional in (False, True):
            told = refusal(Tag(command, positional=positional), Failure(code), legacy=True)
            assert told != ""
