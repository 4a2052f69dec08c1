"""What both forms ask of core, and what they refuse themselves."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.rustlog import asking
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    OffsetCommitted,
    OffsetFetched,
    Produce,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode
from support.conversation import Exchange
from support.talk import Talk

U64_MAX = (1 << 64) - 1


def test_a_group_with_members_is_read_and_committed_for_without_joining() -> None:
    rustlog = Talk("rustlog", Exchange())
    rustlog.ask(CreateTopic("t", 2))
    rustlog.produce("t", b"a")
    v1 = rustlog.conversation.another("v1")
    assert v1.send(b"V1|1|JOIN|g t c\n") == b"V1|1|OK|generation=2 assigned=[0 1]\n"
    assert v1.send(b"V1|2|COMMIT|g t c 2 0 1\n") == b"V1|2|OK|committed=true\n"
    assert rustlog.ask(FetchOffset("t", "g", 0)) == OffsetFetched(0, 1, 0)
    assert rustlog.ask(CommitOffset("t", "g", ((0, 0),))) == OffsetCommitted(1)
    assert v1.send(b"V1|3|OFFSET|g t 0\n") == b"V1|3|OK|offset=0\n"
    assert v1.send(b"V1|4|HEARTBEAT|g t c 2\n") == b"V1|4|OK|heartbeat=ok\n"
    assert rustlog.conversation.engine.statistics()["unfenced_commits"] == 1


def test_records_go_to_the_partition_that_the_client_chose() -> None:
    asked = asking.produce("ns/t", 0xFFFFFFFF, VarColumn.single(b"x"), json=False)
    assert isinstance(asked.request, Produce)
    assert (asked.request.namespace, asked.request.topic) == ("ns", "t")
    assert asked.request.route == 0xFFFFFFFF
    assert asked.request.create_partitions == 0


def test_no_records_only_ask_for_the_place() -> None:
    assert asking.produce("t", 1, None, json=True).request == DescribeTopic("t")


@pytest.mark.parametrize("fetch", [asking.fetch_binary, asking.fetch_json])
def test_an_offset_that_core_cannot_hold_reads_from_beyond_the_end(fetch: object) -> None:
    assert callable(fetch)
    asked = fetch("", "t", 0, U64_MAX, 100, FRAME_BYTES_MAX)
    assert asked.request.offset == asking.OFFSET_MAX
    assert asked.tag.offset == U64_MAX


def test_a_binary_group_without_commit_reads_nothing() -> None:
    request = asking.fetch_binary("g", "t", 0, 5, 100, FRAME_BYTES_MAX).request
    assert isinstance(request, Fetch)
    assert (request.whence, request.offset) == (Whence.COMMITTED, asking.OFFSET_MAX)
    assert not request.strict


def test_what_a_json_fetch_may_return_fits_its_reply_at_its_longest() -> None:
    request = asking.fetch_json("", "t", 0, 0, U64_MAX, FRAME_BYTES_MAX).request
    assert isinstance(request, Fetch)
    around = len('{"Fetch":{"records":[],"next_offset":}}') + 20
    record = len('{"offset":,"payload":[]},') + 20
    assert around + request.records_max * record + 4 * request.bytes_max <= FRAME_BYTES_MAX


def test_the_largest_offset_can_be_committed_and_the_next_cannot() -> None:
    assert isinstance(asking.commit("g", "t", 0, asking.OFFSET_MAX, json=True), Asked)
    refused = asking.commit("g", "t", 0, asking.OFFSET_MAX + 1, json=True)
    assert isinstance(refused, Refused)
    assert refused.failure.code is ErrorCode.INVALID_OFFSET


def test_a_topic_has_at_least_one_partition() -> None:
    refused = asking.create_topic("t", 0, json=False)
    assert isinstance(refused, Refused)
    assert refused.failure.code is ErrorCode.INVALID_PARTITION_COUNT


def test_all_namespaces_are_listed() -> None:
    assert asking.list_topics(json=False).request == ListTopics(None)
