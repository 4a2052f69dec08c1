"""What commands ask of core; their answers on the wire are vectors."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.base import Asked, Facts, Offload, Refused
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.dialect import DIALECT
from dragoman.codecs.cursus.translate import Style
from dragoman.codecs.rendering import RenderingCache
from dragoman.core import calls
from dragoman.core.calls import Whence
from dragoman.core.dedupe import HASHED_HERE_MAX, digest_of
from support.cursus import framed


def codec(**options: Any) -> CursusCodec:
    facts = Facts(
        limits=DIALECT.limits,
        renderings=RenderingCache(),
        local=("127.0.0.1", 9000),
        options=DIALECT.options(options),
        token=b"token",
    )
    return CursusCodec(facts)


def asked(text: str | bytes, **options: Any) -> Asked:
    heard = codec(**options).receive(framed(text))[0]
    assert isinstance(heard, Asked), heard
    return heard


def refused(text: str | bytes) -> str:
    heard = codec().receive(framed(text))[0]
    if isinstance(heard, Offload):
        heard = heard.call()[0]
    assert isinstance(heard, Refused), heard
    wording: str = heard.tag.wording
    return wording


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


def test_idempotent_is_kept_with_the_topic() -> None:
    request = asked("CREATE topic=t partitions=2 idempotent=TRUE").request
    assert isinstance(request, calls.CreateTopic)
    assert request.config.idempotent
    assert request.if_exists is calls.IfExists.GROW


def test_only_publishes_of_the_document_have_a_window_of_payloads() -> None:
    for text, dedupe in (
        ("PUBLISH t x", True),
        (b"\0\1tx", True),
        ("PUBLISH topic=t producerId=p message=x", False),
    ):
        request = asked(text).request
        assert isinstance(request, calls.Produce)
        assert (request.dedupe, request.digest) == (dedupe, b"")


@pytest.mark.parametrize("begins", [b"PUBLISH t ", b"\0\1t"])
def test_a_long_payload_is_hashed_in_a_thread(begins: bytes) -> None:
    payload = bytes(HASHED_HERE_MAX + 1)
    (heard,) = codec().receive(framed(begins + payload))
    assert isinstance(heard, Offload)
    (produce,) = heard.call()
    assert isinstance(produce, Asked)
    assert isinstance(produce.request, calls.Produce)
    assert produce.request.digest == digest_of(payload)


def test_a_publish_says_whether_it_is_idempotent() -> None:
    for tail, idempotent in (("", False), ("isIdempotent=true ", True)):
        request = asked(f"PUBLISH topic=t producerId=p {tail}message=x").request
        assert isinstance(request, calls.Produce)
        assert request.idempotent is idempotent


def test_a_publish_names_its_partition_or_its_key_or_neither() -> None:
    def route(tail: str) -> calls.Route:
        request = asked(f"PUBLISH topic=t producerId=p {tail}message=x").request
        assert isinstance(request, calls.Produce)
        return request.route

    assert route("") == calls.ROUND_ROBIN
    assert route("partition=3 key=a ") == 3
    assert route("key=a ") == calls.ByHash(12638187200555641996)


def test_commits_of_members_are_fenced_and_never_fall() -> None:
    request = asked(
        "COMMIT_OFFSET topic=t partition=1 group=g offset=5 generation=2 member=m"
    ).request
    assert isinstance(request, calls.CommitOffset)
    assert (request.member, request.generation, request.monotonic) == ("m", 2, True)
    assert request.offsets == ((1, 5),)


@pytest.mark.parametrize(
    "pairs", ["0:11,1:12", "P0:11,P1:12", "0:11 1:12", "P0:11, P1:12", ",0:11,,1:12,"]
)
def test_pairs_are_taken_in_every_form(pairs: str) -> None:
    request = asked(f"BATCH_COMMIT topic=t group=g generation=1 member=m {pairs}").request
    assert isinstance(request, calls.CommitOffset)
    assert request.offsets == ((0, 11), (1, 12))


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("CONSUME topic=t partition=1_0 offset=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=99999999999 offset=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=0 offset=9223372036854775808", "invalid_offset"),
        ("CONSUME topic=t partition=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=0 offset=0 batch=0", "invalid_batch"),
        ("CONSUME topic=t partition=0 offset=0 wait_ms=-1", "invalid_wait_ms"),
        ("STREAM topic=t partition=0 autoOffsetReset=x", "invalid_auto_offset_reset value=x"),
        ("PUBLISH topic=t producerId=p seqNum=-1 message=x", "invalid_seq_num"),
        ("PUBLISH topic=t producerId=p epoch=x message=x", "invalid_epoch"),
        ("PUBLISH topic=t producerId=p partition=x message=x", "invalid_partition"),
        (b"CREATE topic=\xff", 'invalid_name reason="a topic is UTF-8"'),
        (b"\0\1\xffmessage", 'invalid_name reason="a topic is UTF-8"'),
        ("CREATE topic=t idempotent=x", 'invalid_idempotent reason="must be true or false"'),
        ("HEARTBEAT topic=t group=g member=m generation=x", "invalid_generation"),
        ("FETCH_OFFSET topic=t group=g", "missing_partition command=FETCH_OFFSET"),
        ("FIND_COORDINATOR x=1", "missing_group command=FIND_COORDINATOR"),
        ("FIND_COORDINATOR", "unknown_command command=FIND_COORDINATOR"),
        ("RAFT_APPLY x", "unsupported command=RAFT_APPLY"),
        ("LIST " + "x" * 300_000, "command_too_long limit=262144"),
    ],
)
def test_a_command_that_cannot_be_served_is_refused_in_words(
    text: str | bytes, wording: str
) -> None:
    assert refused(text) == wording


def test_a_key_that_would_take_long_to_hash_is_refused() -> None:
    text = f"PUBLISH topic=t producerId=p key={'k' * 4097} message=x"
    assert refused(text) == "invalid_key bytes=4097 limit=4096"


def test_members_of_one_connection_get_different_digits() -> None:
    listening = codec()
    members = set()
    for _ in range(5):
        (heard,) = listening.receive(framed("JOIN_GROUP topic=t group=g member=c"))
        assert isinstance(heard, Asked)
        assert isinstance(heard.request, calls.JoinGroup)
        members.add(heard.request.member)
    assert len(members) == 5
