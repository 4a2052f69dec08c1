"""Which layout a batch has, and what a produce asks for."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.cursus import batching
from dragoman.codecs.cursus.translate import AckTag, Style
from dragoman.core import calls
from dragoman.core.batch import Origin
from support.cursus import batch, message


def asked(data: bytes, **options: Any) -> Asked:
    heard = batching.ask(data, 0, len(data), options.get("create", 0))
    assert isinstance(heard, Asked)
    return heard


def refused(data: bytes) -> str:
    heard = batching.ask(b"before" + data, 6, 6 + len(data), 0)
    assert isinstance(heard, Refused)
    assert not heard.fatal
    wording: str = heard.tag.wording
    return wording


@pytest.mark.parametrize("layout", ["l3", "l2", "l1", "document"])
def test_every_layout_asks_for_the_same_produce(layout: str) -> None:
    messages = [message(seq_num=n, key=b"k", payload=b"v%d" % n, epoch=4) for n in (5, 6, 7)]
    tag, request = asked(batch(messages, layout=layout, topic=b"ns/t", partition=3, acks=b"-1"))
    assert isinstance(request, calls.Produce)
    assert (request.namespace, request.topic, request.route) == ("ns", "t", 3)
    assert request.acks is calls.Acks.ALL
    stored = request.batch
    assert stored.origin == Origin.CURSUS
    assert [record[2:4] for record in stored.records()] == [(b"v%d" % n, b"k") for n in (5, 6, 7)]
    assert [stored.sequence_at(n) for n in range(3)] == [5, 6, 7]
    assert (stored.producer_at(1), stored.epoch_at(1)) == (b"p", 4)
    assert tag == AckTag("ns/t", 3, b"p", 4, 5, 7)


@pytest.mark.parametrize(
    ("layout", "flag", "idempotent"),
    [
        ("l3", True, True),
        ("l2", True, True),
        ("document", True, True),
        ("l3", False, False),
        ("l1", True, False),
    ],
)
def test_a_batch_is_idempotent_where_its_head_says_so(
    layout: str, flag: bool, idempotent: bool
) -> None:
    request = asked(batch([message(payload=b"some")], layout=layout, idempotent=flag)).request
    assert isinstance(request, calls.Produce)
    assert request.idempotent is idempotent


@pytest.mark.parametrize("partition", [0, 9, 10, 255, 256, 65_535, 2_147_483_647, -1])
def test_the_layouts_are_told_apart_by_any_partition(partition: int) -> None:
    for layout in ("l3", "document"):
        data = batch([message()], layout=layout, partition=partition)
        assert batching.is_document(data, 0, len(data)) == (layout == "document")
        assert asked(data).request.route == partition  # type: ignore[union-attr]


def test_a_code_partition_that_reads_like_a_digit_is_still_the_codes() -> None:
    # 0x00013031: as text it would be the length 1 and the digit 0, then a text length of 12545.
    data = batch([message()], partition=0x00013031, acks=b"1")
    assert not batching.is_document(data, 0, len(data))
    assert asked(data).request.route == 0x00013031  # type: ignore[union-attr]


def test_a_code_partition_is_the_documents_digit_where_both_are_the_same_bytes() -> None:
    data = batch([message()], partition=0x00013000)
    assert data == batch([message()], layout="document", partition=0)
    assert asked(data).request.route == 0  # type: ignore[union-attr]


def test_too_many_messages_are_refused_before_any_is_read() -> None:
    data = batch([])[:-4] + (100_001).to_bytes(4, "big")
    assert "100001 messages, 100000 are allowed" in refused(data)


def test_the_refusal_of_a_batch_in_no_layout_is_that_of_the_newest() -> None:
    data = batch([message(payload=b"v")])[:-1]
    assert refused(data) == (
        'batch_decode_failed reason="messages[0].metadata at byte 80 is cut off"'
    )


@pytest.mark.parametrize("acks", [b"2", b"-2", b"one", b"\xff"])
def test_acks_that_mean_nothing_are_refused(acks: bytes) -> None:
    assert refused(batch([message()], acks=acks)).startswith("invalid_acks value=")


def test_a_topic_that_is_not_text_is_refused() -> None:
    assert refused(batch([message()], topic=b"\xff")).startswith("invalid_name")


def test_a_cut_off_batch_is_refused_unless_it_is_whole_in_an_older_layout() -> None:
    whole = batch([message()])
    older = len(batch([message()], layout="l2"))
    for size in {*range(2, len(whole))} - {older}:
        assert refused(whole[:size]).startswith("batch_decode_failed")


def test_missing_topics_are_made_where_the_listener_says_so() -> None:
    request = asked(batch([message()]), create=3).request
    assert isinstance(request, calls.Produce)
    assert request.create_partitions == 3


def test_reply_heads_have_the_layout_that_was_asked_for() -> None:
    code = batching.head_of(b"t", 10, 1, 2, 0, Style.BATCH)
    document = batching.head_of(b"t", 10, 1, 2, 0, Style.DOCUMENT)
    assert code[5:9] == bytes((0, 0, 0, 10))
    assert document[5:9] == b"\0\x0210"
