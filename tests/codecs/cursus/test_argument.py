"""Arguments that cannot be served are refused in words."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import Asked, Facts
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.dialect import DIALECT
from dragoman.codecs.rendering import RenderingCache
from dragoman.core import calls
from support.asked import refused
from support.cursus import framed, unframed

PARTITION = calls.PartitionDescription(0, 0, 0, 0, 0, 0, 0)


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
        ("FIND_COORDINATOR topic=1", "missing_group command=FIND_COORDINATOR"),
        ("FIND_COORDINATOR", "unknown_command command=FIND_COORDINATOR"),
        ("RAFT_APPLY x", "unsupported command=RAFT_APPLY"),
        ("LIST " + "x" * 300_000, "command_too_long limit=262144"),
    ],
)
def test_a_command_that_cannot_be_served_is_refused_in_words(
    text: str | bytes, wording: str
) -> None:
    assert refused(text) == wording


@pytest.mark.parametrize(
    ("local", "advertised", "told"),
    [
        (("127.0.0.1", 9000), None, ("127.0.0.1", 9000)),
        (("::ffff:10.0.0.7", 9000), None, ("10.0.0.7", 9000)),
        (("::1", 9001), None, ("::1", 9001)),
        (("0.0.0.0", 9000), ("broker.example", 19000), ("broker.example", 19000)),
    ],
)
def test_clients_are_told_the_advertised_address_or_the_one_that_they_reached(
    local: tuple[str, int], advertised: tuple[str, int] | None, told: tuple[str, int]
) -> None:
    facts = Facts(
        limits=DIALECT.limits,
        renderings=RenderingCache(),
        local=local,
        advertised=advertised,
        options=DIALECT.options({}),
    )
    codec = CursusCodec(facts)
    (found,) = codec.receive(framed("FIND_COORDINATOR group=g"))
    assert isinstance(found, Asked)
    assert found.request == calls.Answer(
        f"OK coordinator_id=standalone host={told[0]} port={told[1]}"
    )
    topic = calls.TopicDescription("default", "t", 1, 0, calls.TopicConfig(), [PARTITION] * 2)
    (metadata,) = codec.receive(framed("METADATA topic=t"))
    assert isinstance(metadata, Asked)
    sent = codec.send(metadata.tag, calls.TopicDescribed(topic))
    address = f"{told[0]}:{told[1]}"
    assert unframed(b"".join(sent.buffers)) == [
        f"OK topic=t partitions=2 leaders={address},{address} epochs=0,0".encode()
    ]
