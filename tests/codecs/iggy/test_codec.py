from __future__ import annotations

import struct

from dragoman.codecs.base import Asked, Facts, HungUp, Offload, Refused
from dragoman.codecs.iggy import wire
from dragoman.codecs.iggy.codec import IggyCodec
from dragoman.codecs.iggy.dialect import DIALECT
from dragoman.codecs.rendering import RenderingCache
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ByHash,
    CreateTopic,
    DescribeTopic,
    Produce,
    TopicConfig,
    TopicDescribed,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode
from support.conversation import Conversation
from support.iggy import (
    BALANCED,
    CREATE_STREAM,
    CREATE_TOPIC,
    answer,
    frame,
    message,
    named,
    numbered,
    poll,
    send,
    short,
    u32,
)

PING = frame(1)
MIB = 1024 * 1024


def codec(token: bytes = b"token") -> IggyCodec:
    return IggyCodec(Facts(DIALECT.limits, RenderingCache(), token=token))


def produced(frame_bytes: bytes, token: bytes = b"token") -> Produce:
    (heard,) = codec(token).receive(frame_bytes)
    assert isinstance(heard, Asked)
    assert isinstance(heard.request, Produce)
    return heard.request


def dev() -> Conversation:
    conversation = Conversation("iggy")
    assert conversation.send(CREATE_STREAM + CREATE_TOPIC) == answer() * 2
    return conversation


def polled(data: bytes) -> list[wire.Any]:
    assert data[:4] == bytes(4), data[:8].hex()
    return list(wire.POLLED_MESSAGES.parse(data[8:]).messages)


def test_messages_become_columns() -> None:
    batch = produced(send(message(b"one", 1), message(b"two", 2))).batch
    assert [(r.value, r.id) for r in batch.records()] == [
        (b"one", b"\1" + bytes(15)),
        (b"two", b"\2" + bytes(15)),
    ]
    assert batch.origin == Origin.IGGY


def test_a_message_without_id_gets_one_that_depends_on_the_connection() -> None:
    first = produced(send(message(b"x", 0)), b"a").batch.ids
    assert first != bytes(16)
    assert first != produced(send(message(b"x", 0)), b"b").batch.ids


def test_a_messages_key_is_kept_as_key_and_routes_by_its_hash() -> None:
    request = produced(send(message(b"x"), message(b"y"), to=b"\3\1a"))
    assert request.batch.keys is not None
    assert list(request.batch.keys) == [b"a", b"a"]
    assert request.route == ByHash(306663426871196026783582893802692114569 - 1)


def test_a_frame_may_arrive_in_any_pieces() -> None:
    data = send(message(b"hello")) + PING
    for size in (1, 3, 7, 50):
        one = codec()
        heard = [h for at in range(0, len(data), size) for h in one.receive(data[at : at + size])]
        assert [type(h) for h in heard] == [Asked, Asked]


def test_wanted_tells_what_is_missing_of_the_frame() -> None:
    one = codec()
    assert one.wanted() == 0
    data = send(message(b"hello" * 100))
    one.receive(data[:20])
    assert one.wanted() == len(data) - 20
    one.receive(data[20:])
    assert one.wanted() == 0


def test_the_end_of_the_stream_inside_a_frame_is_named() -> None:
    one = codec()
    one.receive(PING[:5])
    assert one.receive(b"") == [HungUp("cut off inside a frame")]
    assert codec().receive(b"") == [HungUp("end of stream")]


def test_a_large_send_is_read_elsewhere_together_with_what_follows() -> None:
    data = PING + send(message(bytes(300 * 1024))) + PING
    first, offload = codec().receive(data)
    assert isinstance(first, Asked)
    assert isinstance(offload, Offload)
    assert [type(h) for h in offload.call()] == [Asked, Asked]


def test_ten_mebibytes_of_payload_are_taken_and_polled_whole() -> None:
    conversation = dev()
    payload = b"x" * (10 * MIB)
    assert conversation.send(send(message(payload))) == answer()
    (found,) = polled(conversation.send(poll()))
    assert found.payload == payload


def test_more_than_ten_mebibytes_are_refused_and_the_connection_goes_on() -> None:
    conversation = dev()
    assert conversation.send(send(message(bytes(10 * MIB + 1)))) == answer(status=4022)
    assert conversation.send(PING) == answer()


def test_a_length_above_the_limit_is_refused_before_its_bytes_arrive() -> None:
    (heard,) = codec().receive(u32(16 * MIB + 1))
    assert isinstance(heard, Refused)
    assert heard.fatal
    assert heard.failure.code is ErrorCode.FRAME_TOO_LARGE


def test_what_another_protocol_looks_like_is_named() -> None:
    for first, word in (
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"\x16\x03\x01\x00\xf0\x01\x00\x00", "TLS"),
        (b"SSH-2.0-OpenSSH", "SSH"),
        (bytes(48) + u32(256), "0.11"),
    ):
        (heard,) = codec().receive(first)
        assert isinstance(heard, Refused)
        assert heard.failure.code is ErrorCode.WRONG_PROTOCOL
        assert word in heard.failure.detail


def test_a_frame_of_the_length_that_begins_like_tls_is_served() -> None:
    payload = bytes(0x0316 - 4 - 12 - 6 - 24)
    data = send(message(payload))
    assert data[:2] == b"\x16\x03"
    assert isinstance(codec().receive(data)[0], Asked)


def test_a_rendered_batch_is_kept_and_sliced() -> None:
    conversation = dev()
    conversation.send(send(*[message(b"m%d" % i, i + 1) for i in range(9)]))
    first = conversation.send(poll())
    assert conversation.exchange.renderings.bytes_held > 0
    assert conversation.send(poll()) == first
    assert [m.payload for m in polled(conversation.send(poll(strategy=1, value=3, count=4)))] == [
        b"m3",
        b"m4",
        b"m5",
        b"m6",
    ]


def test_a_poll_stops_at_sixteen_mebibytes_but_gives_at_least_one_record() -> None:
    conversation = dev()
    for _ in range(4):
        conversation.send(send(message(bytes(9 * MIB))))
    assert len(polled(conversation.send(poll()))) == 1
    for _ in range(4):
        conversation.send(send(message(bytes(5 * MIB))))
    assert len(polled(conversation.send(poll(strategy=1, value=4)))) == 3


def test_a_topic_of_another_dialect_stands_in_the_default_stream() -> None:
    conversation = Conversation("iggy")
    request = CreateTopic("Orders", 1)
    engine, exchange = conversation.engine, conversation.exchange
    engine.handle(request, conversation.session.client, exchange.now)
    exchange.settle()
    listed = wire.STREAMS.parse(conversation.send(frame(201))[8:])
    assert [(stream.number, stream.name) for stream in listed] == [(4294967295, b"default")]
    place = numbered(4294967295) + named("Orders")
    assert conversation.send(send(message(b"x"), at=place)) == answer()
    place = named("default") + numbered(1)
    assert [m.payload for m in polled(conversation.send(poll(at=place)))] == [b"x"]


def test_records_of_another_dialect_are_read_with_their_keys() -> None:
    conversation = dev()
    batch = RecordBatch(
        2, VarColumn.of([b"v", b""]), origin=Origin.V1, keys=VarColumn.of([b"k", None])
    )
    engine, exchange = conversation.engine, conversation.exchange
    engine.handle(Produce("top", batch, 0, "dev"), conversation.session.client, exchange.now)
    exchange.settle()
    keyed, empty = polled(conversation.send(poll()))
    assert b"dragoman.key" in keyed.headers
    assert b"dragoman.empty" in empty.headers


def test_an_update_leaves_settings_of_other_dialects_alone() -> None:
    conversation = dev()
    engine, now = conversation.engine, conversation.now
    client = conversation.session.client
    config = TopicConfig(retention_bytes=7, idempotent=True)
    engine.handle(CreateTopic("wide", 1, "dev", config=config), client, now)
    conversation.exchange.settle()
    update = numbered(1) + named("wide") + u32(5) + short("new")
    assert conversation.send(frame(304, update)) == answer()
    described = engine.handle(DescribeTopic("new", "dev"), client, now).reply
    assert isinstance(described, TopicDescribed)
    assert described.topic.config == TopicConfig(5000, 7, True)


def test_balanced_sends_of_two_connections_share_one_turn() -> None:
    first = dev()
    second = first.another("iggy")
    for conversation in (first, second, first, second):
        assert conversation.send(send(message(b"x"), to=BALANCED)) == answer()
    for number in (1, 2):
        assert len(polled(first.send(poll(number=number)))) == 2


def test_numbers_at_their_extremes_are_answered_not_raised() -> None:
    conversation = dev()
    for strategy in range(7):
        for value in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
            for count in (1, 2**31, 2**32 - 1):
                for number in (0, 1, 2**31, 2**32 - 1):
                    data = poll(strategy=strategy, value=value, count=count, number=number)
                    status, length = struct.unpack("<II", conversation.send(data)[:8])
                    assert (status, length) in ((0, 16), (3, 0), (3007, 0))
