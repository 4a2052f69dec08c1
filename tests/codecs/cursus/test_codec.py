"""The server's half of a connection: framing, what a frame is, and how answers leave."""

from __future__ import annotations

import gzip
import random

import pytest

from dragoman.codecs.base import Asked, Facts, HungUp, Limits, Offload, Refused
from dragoman.codecs.compression import BadCompression, Compression, Registry, registry
from dragoman.codecs.cursus import codec as codec_module
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.dialect import DIALECT
from dragoman.codecs.rendering import RenderingCache
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.gateway.session import REPLY_BYTES_WAITING_MAX
from support.conversation import Conversation
from support.cursus import batch, framed, message, mutated, random_messages, unframed


def codec() -> CursusCodec:
    facts = Facts(
        limits=DIALECT.limits,
        renderings=RenderingCache(),
        local=("127.0.0.1", 9000),
        options=DIALECT.options({}),
        token=b"token",
    )
    return CursusCodec(facts)


def test_a_frame_that_arrives_in_pieces_is_heard_once_and_its_rest_is_wanted() -> None:
    listening = codec()
    frame = framed(batch([message()]))
    assert listening.receive(frame[:10]) == []
    assert listening.wanted() == len(frame) - 10
    assert listening.receive(frame[10:-1]) == []
    assert listening.wanted() == 1
    (heard,) = listening.receive(frame[-1:] + frame[:2])
    assert isinstance(heard, Asked)
    assert listening.wanted() == 2


def test_any_buffer_is_taken() -> None:
    frame = framed("LIST")
    for data in (bytearray(frame), memoryview(frame)):
        (heard,) = codec().receive(data)
        assert isinstance(heard, Asked)


def test_the_end_of_the_stream_says_whether_a_frame_was_cut() -> None:
    listening = codec()
    assert listening.receive(b"") == [HungUp("end of stream")]
    listening.receive(b"\0\0")
    assert listening.receive(b"") == [HungUp("cut off inside a frame")]


@pytest.mark.parametrize("length", [64 * 1024 * 1024 + 1, 2**31, 2**32 - 1])
def test_a_length_above_the_limit_is_refused_at_once(length: int) -> None:
    (heard,) = codec().receive(length.to_bytes(4, "big"))
    assert isinstance(heard, Refused)
    assert heard.fatal
    assert heard.failure.code is ErrorCode.FRAME_TOO_LARGE


def test_a_length_at_the_limit_costs_nothing_until_it_arrives() -> None:
    listening = codec()
    assert listening.receive((64 * 1024 * 1024).to_bytes(4, "big") + b"xxxx") == []
    assert listening.wanted() == 64 * 1024 * 1024 - 4


def test_no_more_is_waited_for_than_tells_another_protocol_until_that_is_known() -> None:
    listening = codec()
    assert listening.receive(b"\4\0\0\0") == []
    assert listening.wanted() == 4
    (heard,) = listening.receive(b"\1\0\0\0")
    assert isinstance(heard, Refused)
    assert heard.failure.code is ErrorCode.WRONG_PROTOCOL


def test_a_large_batch_is_offloaded_with_everything_behind_it() -> None:
    listening = codec()
    large = framed(batch([message(payload=bytes(300_000))]))
    heard = listening.receive(framed("LIST") + large + framed("HELP") + b"\0\0")
    assert isinstance(heard[0], Asked)
    assert isinstance(heard[1], Offload)
    produce, helped = heard[1].call()
    assert isinstance(produce, Asked)
    assert isinstance(produce.request, calls.Produce)
    assert isinstance(helped, Asked)
    assert listening.wanted() == 2


def test_a_small_frame_that_inflates_to_a_large_one_is_offloaded() -> None:
    body = gzip.compress(batch([message(payload=bytes(300_000))]))
    (heard,) = codec().receive(framed(body))
    assert isinstance(heard, Offload)
    (produce,) = heard.call()
    assert isinstance(produce, Asked)


def test_a_damaged_frame_is_refused_once_a_thread_has_seen_it() -> None:
    body = gzip.compress(batch([message()]))[:-1]
    listening = codec()
    (heard,) = listening.receive(framed(body) + framed("LIST"))
    assert isinstance(heard, Offload)
    refused, listed = heard.call()
    assert isinstance(refused, Refused)
    assert not refused.fatal
    assert isinstance(listed, Asked)


def test_on_the_loop_no_more_than_256_kib_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def decompress(data: bytes, limit: int) -> bytes:
        opened.append(limit)
        return b"LIST"

    there = Registry()
    there.register(Compression("seen", b"\xf0\x01", bytes, decompress))
    monkeypatch.setattr(codec_module, "registry", lambda: there)
    codec().receive(framed(b"\xf0\x01"))
    assert opened == [256 * 1024]


def test_a_listener_of_small_frames_opens_no_more_than_they_may_hold() -> None:
    body = gzip.compress(batch([message(payload=bytes(1000))]))
    limits = Limits(frame_bytes_max=500, reply_bytes_max=1000)
    facts = Facts(limits=limits, renderings=RenderingCache(), options=DIALECT.options({}))
    (heard,) = CursusCodec(facts).receive(framed(body))
    assert isinstance(heard, Refused)
    assert "more than 500 bytes come out" in heard.failure.detail


def test_what_comes_out_is_not_opened_again() -> None:
    talk = Conversation("cursus")
    heard = unframed(talk.send(framed(gzip.compress(gzip.compress(b"LIST")))))
    assert heard == [b"ERROR: malformed_input reason=missing_topic_or_payload"]
    assert talk.closed


@pytest.mark.parametrize(
    "body",
    [b"LIST", b" \0list", b"\0\0LIST", b"\0\1tLIST", b"\0\1thello", batch([message()])],
)
def test_a_listener_told_of_blocks_hears_what_is_plain_as_any_other(body: bytes) -> None:
    told = Conversation("cursus", compression="snappy-block")
    plain = Conversation("cursus")
    for talk in (told, plain):
        talk.send(framed("CREATE topic=t partitions=1"))
    assert told.send(framed(body)) == plain.send(framed(body))


def test_a_block_of_any_batch_is_neither_a_command_nor_an_envelope() -> None:
    block = registry().named("snappy-block")
    talk = Conversation("cursus", compression="snappy-block")
    talk.send(framed("CREATE topic=t partitions=1"))
    for size in range(600):
        heard = talk.send(framed(block.compress(batch([message(payload=bytes(size))]))))
        assert b'"status":"OK"' in heard


@pytest.mark.parametrize("body", [b"", b"x", b"\0", b"\0\0", b"\0\5topic", b"\x80" * 6])
def test_what_is_nothing_is_no_block_either(body: bytes) -> None:
    talk = Conversation("cursus", compression="snappy-block")
    (heard,) = unframed(talk.send(framed(body)))
    assert b"ERROR" in heard


def test_a_command_may_be_compressed_too() -> None:
    assert unframed(Conversation("cursus").send(framed(gzip.compress(b"LIST")))) == [
        b"OK count=0 topics="
    ]


def test_a_producer_that_reads_no_answer_to_acks_0_is_heard_on_and_gets_what_it_asks_for() -> None:
    talk = Conversation("cursus")
    talk.send(framed("CREATE topic=t partitions=1"))
    some = framed(batch([message()], acks=b"0")) * 500
    for _ in range(20):
        talk.session.received(some, talk.now)
        talk.exchange.settle()
    assert talk.session.wants_read
    assert talk.session.outbox.size < REPLY_BYTES_WAITING_MAX
    *acks, last = unframed(talk.send(framed("PUBLISH topic=t producerId=p message=x")))
    assert 0 < len(acks) < 10_000
    assert last.startswith(b'{"status":"OK","last_offset":10000,')


def test_a_negative_offset_that_another_dialect_committed_is_shown_as_the_first() -> None:
    talk = Conversation("cursus")
    talk.send(framed("CREATE topic=t partitions=1"))
    other = talk.another("v1")
    other.send(b"V1|1|JOIN|g t c\n")
    assert other.send(b"V1|2|COMMIT|g t c 2 0 -5\n") == b"V1|2|OK|committed=true\n"
    assert talk.send(framed("FETCH_OFFSET topic=t partition=0 group=g")) == framed("OK offset=0")
    assert talk.send(framed("FETCH_OFFSET t g 0")) == framed("0")


def test_nothing_is_heard_after_what_ends_the_connection() -> None:
    for last in ("EXIT", "garbage", "CONSUME t"):
        heard = codec().receive(framed(last) + framed("LIST"))
        requests = [item for item in heard if isinstance(item, Asked)]
        assert [type(item.request) for item in requests] in ([], [calls.Answer])


def test_broken_frames_never_raise_and_are_always_answered() -> None:
    dice = random.Random("cursus codec")
    words = [b"CREATE topic=t", b"PUBLISH t x", b"CONSUME t 0 0", b"COMMIT t g 0 5", b"\0\1tx"]
    for _ in range(2000):
        sound = dice.choice(words) if dice.random() < 0.5 else batch(random_messages(dice))
        talk = Conversation("cursus")
        talk.send(framed("CREATE topic=t partitions=2"))
        answer = talk.send(framed(mutated(sound, dice)))
        assert answer or talk.closed
        for body in unframed(answer):
            assert body.startswith((b"OK", b"ERROR: ", b"{", b"\xba\x7c")) or talk.closed


def test_random_bytes_never_raise() -> None:
    dice = random.Random("cursus bytes")
    for _ in range(500):
        listening = codec()
        for item in listening.receive(dice.randbytes(dice.randrange(1, 60))):
            assert isinstance(item, Asked | Refused | HungUp)
            if isinstance(item, Refused):
                assert listening.send_failure(item.tag, item.failure).buffers


def test_every_failure_of_the_core_is_said() -> None:
    listening = codec()
    (heard,) = listening.receive(framed(batch([message()])))
    assert isinstance(heard, Asked)
    for code in ErrorCode:
        sent = listening.send_failure(heard.tag, Failure(code, "detail"))
        assert b"".join(sent.buffers)[4:].startswith(b'{"status":"ERROR"')
        assert not sent.close_after


def test_members_of_one_name_are_never_taken_for_each_other() -> None:
    """Their digits are hashes of 32 bits cut to four digits: of so many, some are the same."""
    first = Conversation("cursus")
    first.send(framed("CREATE topic=t partitions=1"))
    members = set()
    for number in range(300):
        one = first if number % 2 else first.another("cursus")
        told = one.send(framed("JOIN_GROUP topic=t group=g member=c")).decode()
        members.add(told.split("member=")[1].split(" ")[0])
    assert len(members) == 300
    assert all(len(member) == len("c-0000") for member in members)
    assert b"generation=301 " in first.send(framed("JOIN_GROUP topic=t group=g member=d"))


def test_a_large_message_that_begins_like_a_command_is_a_message_where_its_topic_exists() -> None:
    talk = Conversation("cursus")
    talk.send(framed("CREATE topic=t partitions=1"))
    for text in (b"HELP " + bytes(300_000), b"COMMIT t g 0 5" + b" " * 300_000):
        assert unframed(talk.send(framed(b"\0\1t" + text))) == [b"OK"]
        assert unframed(talk.send(framed(b"\0\1u" + text))) != [b"OK"]
    reader = talk.another("cursus")
    found = unframed(reader.send(framed("CONSUME t 0 0")))
    assert [body[:6] for body in found] == [b"HELP \0", b"COMMIT"]


def test_a_large_command_in_the_envelope_of_a_topic_stays_a_command() -> None:
    talk = Conversation("cursus")
    talk.send(framed("CREATE topic=t partitions=1"))
    for text in (b"CREATE u " + b"1" * 300_000, b"COMMIT topic=t " + b"x" * 300_000):
        told = b"ERROR: command_too_long limit=262144"
        assert unframed(talk.send(framed(b"\0\1t" + text))) == [told]


def test_a_compressed_text_is_a_message_where_its_topic_exists() -> None:
    talk = Conversation("cursus")
    talk.send(framed("CREATE topic=t partitions=1"))
    assert unframed(talk.send(framed(gzip.compress(b"\0\1tHELP me")))) == [b"OK"]
    assert unframed(talk.send(framed("CONSUME t 0 0"))) == [b"HELP me"]


def test_what_ends_a_connection_in_an_envelope_ends_it_once_it_is_heard() -> None:
    talk = Conversation("cursus")
    exit_in_t = framed(b"\0\1tEXIT")
    assert unframed(talk.send(exit_in_t + framed("LIST"))) == [b"OK"]
    assert talk.closed


def test_of_a_partition_that_is_streamed_again_each_record_comes_once() -> None:
    talk = Conversation("cursus")
    writer = talk.another("cursus")
    writer.send(framed("CREATE topic=t partitions=1"))
    for offset in (0, 0, 1):
        talk.send(framed(f"STREAM topic=t partition=0 offset={offset}"))
        talk.heard()
        writer.send(framed("PUBLISH topic=t acks=1 producerId=p message=x"))
        assert len(unframed(talk.heard())) == 1


def test_a_thread_opens_no_more_than_the_ratio_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def decompress(data: bytes, limit: int) -> bytes:
        opened.append(limit)
        raise BadCompression("more")

    there = Registry()
    there.register(Compression("seen", b"\xf0\x01", bytes, decompress))
    monkeypatch.setattr(codec_module, "registry", lambda: there)
    (heard,) = codec().receive(framed(b"\xf0\x01" + bytes(99_998)))
    assert isinstance(heard, Offload)
    heard.call()
    assert opened == [256 * 1024, 10_000_000]
