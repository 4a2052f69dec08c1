"""A RustLog connection from the outside: frames in, frames out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.codecs.base import Facts, HungUp, Limits, Offload, Refused
from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.rustlog.codec import RustLogCodec, is_json
from dragoman.codecs.rustlog.dialect import DIALECT
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX, REPLIES, REQUESTS, Command
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CommitOffset,
    CreateNamespace,
    CreateTopic,
    DeleteTopic,
    Produce,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode
from dragoman.core.outcome import Client
from support.conversation import Conversation


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def frames(data: bytes) -> list[bytes]:
    found = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        assert len(data) >= end
        found.append(data[4:end])
        data = data[end:]
    return found


def build(command: Command, **fields: Any) -> bytes:
    return framed(REQUESTS[command].build({"op": command, **fields}))


def parsed(command: Command, data: bytes) -> Any:
    (payload,) = frames(data)
    assert payload[0] == command, payload
    construct = REPLIES[command]
    found = construct.parse(payload)
    assert construct.build(found) == payload
    return found


def error_of(data: bytes) -> tuple[int, str]:
    found = parsed(Command.ERROR, data)
    return found.code, found.message.decode()


class Peer:
    """One connection with a topic `demo` of two partitions."""

    def __init__(self, **options: Any) -> None:
        self.conversation = Conversation("rustlog", **options)
        self.create("demo", 2)

    def create(self, topic: str, count: int) -> bytes:
        return self.conversation.send(
            build(Command.CREATE_TOPIC, topic=topic, partition_count=count)
        )

    def produce(self, records: list[bytes], topic: str = "demo", partition: int = 0) -> bytes:
        return self.conversation.send(
            build(Command.PRODUCE, topic=topic, partition=partition, records=records)
        )

    def fetch(
        self,
        offset: int = 0,
        max_bytes: int = 1 << 20,
        group: str = "",
        topic: str = "demo",
        partition: int = 0,
    ) -> bytes:
        return self.conversation.send(
            build(
                Command.FETCH,
                group=group,
                topic=topic,
                partition=partition,
                offset=offset,
                max_bytes=max_bytes,
            )
        )

    def fetched(self, *args: Any, **kwargs: Any) -> tuple[list[bytes], int]:
        found = parsed(Command.FETCH, self.fetch(*args, **kwargs))
        return list(found.records), found.next_offset

    def commit(
        self, offset: int, group: str = "g", topic: str = "demo", partition: int = 0
    ) -> bytes:
        return self.conversation.send(
            build(
                Command.OFFSET_COMMIT, group=group, topic=topic, partition=partition, offset=offset
            )
        )

    def json(self, request: object) -> Any:
        (payload,) = frames(self.conversation.send(framed(orjson.dumps(request))))
        return orjson.loads(payload)

    def fetch_json(self, offset: int = 0, max_bytes: int = 1 << 20, **more: Any) -> Any:
        fields = {"topic": "demo", "partition": 0, "offset": offset, "max_bytes": max_bytes}
        return self.json({"Fetch": fields | more})


@pytest.fixture
def peer() -> Peer:
    return Peer()


def codec(frame_bytes_max: int = FRAME_BYTES_MAX) -> RustLogCodec:
    return RustLogCodec(Facts(Limits(frame_bytes_max, FRAME_BYTES_MAX), RenderingCache()))


# ---------------------------------------------------------------- telling the forms apart


@pytest.mark.parametrize(
    ("payload", "json"),
    [
        (b"{", True),
        (b'"Ping"', True),
        (b"\n\t {", True),
        (b"  ", True),
        (b"hello", True),
        (b"[1]", True),
        (b"\t", False),
        (b"\n", False),
        (b"\r\n", False),
        (b"\t\x00\x01", False),
        (b"\x01\x00\x04demo", False),
        (b"\xff", False),
        (b"\xef\xbb\xbf{", False),
        (b"\t" * 200 + b"{", True),
    ],
)
def test_the_first_byte_that_is_not_white_space_tells_the_form(payload: bytes, json: bool) -> None:
    assert is_json(b"xx" + payload + b"{", 2, 2 + len(payload)) == json


def test_both_forms_share_a_connection_frame_by_frame(peer: Peer) -> None:
    told = peer.conversation.send(
        framed(b'"Ping"') + framed(b"\xff") + framed(b' {"Ping":null}') + framed(b"\xffmore")
    )
    assert frames(told) == [b'"Pong"', b"\xff", b'"Pong"', b"\xff"]


def test_what_one_form_writes_the_other_reads(peer: Peer) -> None:
    peer.produce([b"\x00\xff", b""])
    peer.json({"Produce": {"topic": "demo", "partition": 0, "records": [[1, 20, 255]]}})
    assert peer.fetch_json() == {
        "Fetch": {
            "records": [
                {"offset": 0, "payload": [0, 255]},
                {"offset": 1, "payload": []},
                {"offset": 2, "payload": [1, 20, 255]},
            ],
            "next_offset": 3,
        }
    }
    assert peer.fetched() == ([b"\x00\xff", b"", b"\x01\x14\xff"], 3)


# ---------------------------------------------------------------- frames


def test_a_thousand_pipelined_requests_are_answered_in_order(peer: Peer) -> None:
    one = build(Command.PRODUCE, topic="demo", partition=0, records=[b"x"])
    told = frames(peer.conversation.send(one * 1000))
    bases = [REPLIES[Command.PRODUCE].parse(frame).base_offset for frame in told]
    assert bases == list(range(1000))


def test_a_frame_of_the_largest_size_is_served(peer: Peer) -> None:
    head = len(build(Command.PRODUCE, topic="demo", partition=0, records=[b""])) - 4
    record = bytes(FRAME_BYTES_MAX - head)
    assert parsed(Command.PRODUCE, peer.produce([record])).count == 1


def test_an_oversized_frame_is_answered_at_its_header_and_ends_the_connection(peer: Peer) -> None:
    told = peer.conversation.send((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
    assert error_of(told) == (1, "Frame error: frame too large: 10485761 bytes (max: 10485760)")
    assert peer.conversation.closed


def test_an_oversized_first_frame_is_told_in_json() -> None:
    conversation = Conversation("rustlog")
    (payload,) = frames(conversation.send(b"\x7f\xff\xff\xff"))
    message = "max frame size exceeded: 2147483647 bytes (max: 10485760)"
    assert orjson.loads(payload) == {"Error": {"message": message}}
    assert conversation.closed


def test_an_oversized_first_frame_that_shows_an_opcode_is_told_in_binary() -> None:
    conversation = Conversation("rustlog")
    told = conversation.send(b"\x7f\xff\xff\xff\x01")
    assert error_of(told) == (1, "Frame error: frame too large: 2147483647 bytes (max: 10485760)")


def test_an_empty_frame_ends_the_connection_in_the_form_of_the_last_request(peer: Peer) -> None:
    assert error_of(peer.conversation.send(bytes(4))) == (
        1,
        "Frame error: invalid protocol: zero-length frame",
    )
    assert peer.conversation.closed
    other = peer.conversation.another("rustlog")
    (payload,) = frames(other.send(bytes(4)))
    assert orjson.loads(payload) == {
        "Error": {"message": "failed to parse request: zero-length frame"}
    }
    assert other.closed


def test_the_limits_of_the_listener_are_the_ones_told() -> None:
    (refused,) = codec(100).receive((101).to_bytes(4, "big"))
    assert isinstance(refused, Refused)
    assert refused.failure.facts == {"size": 101, "limit": 100}


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"GET / HTTP/1.1\r\n", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01", "a TLS handshake"),
        (b"SSH-2.0-x\r\n", "an SSH banner"),
    ],
)
def test_another_protocol_is_named_refused_and_costs_no_memory(first: bytes, what: str) -> None:
    (refused,) = codec().receive(first)
    assert isinstance(refused, Refused)
    assert refused.fatal
    assert refused.failure.code is ErrorCode.WRONG_PROTOCOL
    assert what in refused.failure.detail


def test_a_cut_off_frame_is_followed_by_a_silent_close(peer: Peer) -> None:
    assert peer.conversation.send(build(Command.LIST_TOPICS)[:-1]) == b""
    assert peer.conversation.hang_up() == b""
    assert peer.conversation.closed


def test_end_of_stream_is_heard() -> None:
    assert codec().receive(b"") == [HungUp("end of stream")]


def test_a_frame_in_two_pieces_tells_what_is_missing() -> None:
    half = codec()
    assert half.wanted() == 0
    assert half.receive(memoryview(b"\0\0\1\0\x01")) == []
    assert half.wanted() == 255
    assert half.receive(b"\0" * 100) == []
    assert half.wanted() == 155


def test_undecodable_payloads_leave_the_connection_open(peer: Peer) -> None:
    assert error_of(peer.conversation.send(framed(b"\n"))) == (
        2,
        "Decode error: unknown request type: 10",
    )
    assert error_of(peer.conversation.send(framed(b"\x01"))) == (
        2,
        "Decode error: decode error: missing topic length",
    )
    (payload,) = frames(peer.conversation.send(framed(b"{")))
    assert orjson.loads(payload)["Error"]["message"].startswith("failed to parse request: ")
    assert frames(peer.conversation.send(framed(b"\xff"))) == [b"\xff"]


def test_long_json_is_read_in_a_thread_and_what_follows_after_it() -> None:
    records = [[1] * 1000] * 150
    long = {"Produce": {"topic": "t", "partition": 0, "records": records}}
    heard = codec().receive(framed(orjson.dumps(long)) + framed(b'"Ping"') + b"\0\0")
    (offload,) = heard
    assert isinstance(offload, Offload)
    produce, ping = offload.call()
    assert (produce.tag.command, ping.tag.command) == (Command.PRODUCE, Command.PING)


def test_a_produce_of_very_many_records_is_read_in_a_thread(peer: Peer) -> None:
    records = [b"", b"x"] * 10_000
    data = build(Command.PRODUCE, topic="demo", partition=1, records=records)
    assert isinstance(codec().receive(data)[0], Offload)
    assert parsed(Command.PRODUCE, peer.conversation.send(data)).count == 20_000
    found = parsed(Command.FETCH, peer.fetch(partition=1))
    assert list(found.records) == records


# ---------------------------------------------------------------- produce


def test_a_produce_is_answered_with_its_offsets_in_each_form(peer: Peer) -> None:
    found = parsed(Command.PRODUCE, peer.produce([b"a", b"b"]))
    assert (found.base_offset, found.count) == (0, 2)
    told = peer.json({"Produce": {"topic": "demo", "partition": 0, "records": [[1], [2], [3]]}})
    assert told == {"Produce": {"offsets": [2, 3, 4]}}


def test_a_produce_without_records_only_checks_the_place(peer: Peer) -> None:
    peer.produce([b"a"])
    found = parsed(Command.PRODUCE, peer.produce([]))
    assert (found.base_offset, found.count) == (0, 0)
    empty = {"topic": "demo", "partition": 0, "records": []}
    assert peer.json({"Produce": empty}) == {"Produce": {"offsets": []}}
    missing = "Topic or partition does not exist: topic=demo, partition=9"
    assert error_of(peer.produce([], partition=9)) == (10, missing)
    assert peer.json({"Produce": empty | {"topic": "none"}}) == {
        "Error": {"message": "partition not found: topic=none, partition=0"}
    }
    assert peer.fetched() == ([b"a"], 1)


@pytest.mark.parametrize("partition", [2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_missing_partition_is_named(peer: Peer, partition: int) -> None:
    told = f"Topic or partition does not exist: topic=demo, partition={partition}"
    assert error_of(peer.produce([b"x"], partition=partition)) == (10, told)
    assert error_of(peer.fetch(partition=partition)) == (10, told)


# ---------------------------------------------------------------- fetch, binary


@pytest.mark.parametrize(
    ("max_bytes", "count"), [(0, 0), (1, 1), (13, 1), (24, 1), (25, 2), (46, 2), (47, 3)]
)
def test_a_binary_record_counts_twelve_bytes_more(peer: Peer, max_bytes: int, count: int) -> None:
    peer.produce([b"1", b"", b"0123456789"])
    records, next_offset = peer.fetched(max_bytes=max_bytes)
    assert records == [b"1", b"", b"0123456789"][:count]
    assert next_offset == count


@pytest.mark.parametrize("offset", [2, 100, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_binary_fetch_beyond_the_end_echoes_the_offset(peer: Peer, offset: int) -> None:
    peer.produce([b"a", b"b"])
    assert peer.fetched(offset) == ([], offset)


def test_a_binary_group_reads_from_its_committed_offset_alone(peer: Peer) -> None:
    peer.produce([b"a", b"b", b"c"])
    peer.commit(1)
    assert peer.fetched(0, group="g") == ([b"b", b"c"], 3)
    assert peer.fetched(999, group="g") == ([b"b", b"c"], 3)
    peer.commit(100)
    assert peer.fetched(0, group="g") == ([], 100)


def test_a_binary_group_that_never_committed_reads_nothing_wherever(peer: Peer) -> None:
    peer.produce([b"a"])
    assert peer.fetched(5, group="new") == ([], 0)
    assert peer.fetched(5, group="new", topic="missing") == ([], 0)
    assert peer.fetched(5, group="new", partition=77) == ([], 0)


def test_a_binary_reply_never_passes_the_frame_limit(peer: Peer) -> None:
    for _ in range(3):
        peer.produce([bytes(5_000_000)])
    records, next_offset = peer.fetched(max_bytes=0xFFFFFFFF)
    assert (len(records), next_offset) == (2, 2)


def test_a_record_that_no_binary_reply_can_hold_is_named(peer: Peer) -> None:
    place = {"topic": "demo", "partition": 0}
    write_foreign(peer, [b"small", bytes(FRAME_BYTES_MAX - 16), bytes(FRAME_BYTES_MAX - 17)])
    assert peer.fetched() == ([b"small"], 1)
    assert error_of(peer.fetch(1)) == (
        4,
        "Fetch failed: max frame size exceeded: record at offset 1 does not fit",
    )
    records, _ = peer.fetched(2)
    assert [len(record) for record in records] == [FRAME_BYTES_MAX - 17]
    told = peer.json({"Fetch": place | {"offset": 1, "max_bytes": 1}})
    message = "max frame size exceeded: record at offset 1 does not fit"
    assert told == {"Error": {"message": message}}


def test_a_listener_may_pass_over_a_record_that_no_reply_can_hold() -> None:
    peer = Peer(too_large="skip")
    write_foreign(peer, [b"small", bytes(FRAME_BYTES_MAX), b"after"])
    assert peer.fetched() == ([b"small"], 1)
    assert peer.fetched(1) == ([], 2)
    assert peer.fetched(2) == ([b"after"], 3)
    assert peer.fetch_json(1)["Fetch"] == {"records": [], "next_offset": 2}
    assert peer.conversation.exchange.renderings.inexact["rustlog"] == 2


@pytest.mark.parametrize("given", [{"too_big": "skip"}, {"too_large": "maybe"}, {"too_large": 1}])
def test_an_option_that_there_is_not_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="too_large"):
        DIALECT.options(given)


def test_a_committed_offset_that_this_wire_cannot_say_is_shown_as_zero(peer: Peer) -> None:
    exchange = peer.conversation.exchange
    request = CommitOffset("demo", "g", ((0, -5),))
    exchange.engine.handle(request, Client(0, "none"), exchange.now)
    exchange.settle()
    told = peer.conversation.send(build(Command.OFFSET_FETCH, group="g", topic="demo", partition=0))
    assert parsed(Command.OFFSET_FETCH, told).offset == 0
    peer.produce([b"a"])
    assert peer.fetched(group="g") == ([b"a"], 1)


def write_foreign(peer: Peer, values: list[bytes]) -> None:
    """Appends records as another dialect would, past this one's frame limit."""
    batch = RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE)
    exchange = peer.conversation.exchange
    exchange.engine.handle(Produce("demo", batch, 0), Client(0, "none"), exchange.now)
    exchange.settle()


# ---------------------------------------------------------------- fetch, JSON


def test_json_measures_payload_and_always_returns_one_record(peer: Peer) -> None:
    peer.produce([b"12345", b"", b"0123456789"])

    def count(max_bytes: int) -> int:
        return len(peer.fetch_json(0, max_bytes)["Fetch"]["records"])

    assert [count(n) for n in (0, 4, 5, 14, 15, 1 << 63)] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("offset", [2, 100, (1 << 63) - 1, (1 << 64) - 1])
def test_json_beyond_the_end_names_the_end_of_the_log(peer: Peer, offset: int) -> None:
    peer.produce([b"a", b"b"])
    assert peer.fetch_json(offset) == {"Fetch": {"records": [], "next_offset": 2}}


def test_a_json_group_reads_from_the_larger_offset(peer: Peer) -> None:
    peer.produce([b"a", b"b", b"c"])
    assert peer.fetch_json(1, group_id="g")["Fetch"]["next_offset"] == 3
    peer.commit(2)

    def offsets(requested: int) -> list[int]:
        fetched = peer.fetch_json(requested, group_id="g")["Fetch"]
        return [record["offset"] for record in fetched["records"]]

    assert offsets(0) == [2]
    assert offsets(2) == [2]
    peer.commit(0)
    assert offsets(1) == [1, 2]


def test_a_missing_place_is_told_in_json(peer: Peer) -> None:
    message = "partition not found: topic=demo, partition=7"
    assert peer.fetch_json(partition=7) == {"Error": {"message": message}}


def test_a_json_reply_never_passes_the_frame_limit(peer: Peer) -> None:
    for _ in range(3):
        peer.produce([b"\xff" * 1_000_000] * 2)
    sizes = []
    offset = 0
    while offset < 6:
        told = peer.conversation.send(
            framed(
                orjson.dumps(
                    {
                        "Fetch": {
                            "topic": "demo",
                            "partition": 0,
                            "offset": offset,
                            "max_bytes": 1 << 40,
                        }
                    }
                )
            )
        )
        assert len(told) - 4 <= FRAME_BYTES_MAX
        fetched = orjson.loads(told[4:])["Fetch"]
        sizes.append(len(fetched["records"]))
        offset = fetched["next_offset"]
    assert sum(sizes) == 6


def test_a_json_reply_of_empty_records_never_passes_the_frame_limit(peer: Peer) -> None:
    peer.produce([b""] * 60_000)
    told = peer.conversation.send(
        framed(
            b'{"Fetch":{"topic":"demo","partition":0,"offset":0,"max_bytes":18446744073709551615}}'
        )
    )
    assert len(told) - 4 <= FRAME_BYTES_MAX
    assert orjson.loads(told[4:])["Fetch"]["next_offset"] > 40_000


# ---------------------------------------------------------------- offsets


def test_commits_overwrite_and_may_go_back(peer: Peer) -> None:
    for offset in (5, 2, 0):
        assert peer.commit(offset).hex() == "000000020301"
        found = parsed(
            Command.OFFSET_FETCH,
            peer.conversation.send(
                build(Command.OFFSET_FETCH, group="g", topic="demo", partition=0)
            ),
        )
        assert found.offset == offset
        fields = {"topic": "demo", "partition": 0, "group_id": "g"}
        assert peer.json({"OffsetFetch": fields}) == {"OffsetFetch": {"offset": offset}}


def test_an_offset_that_was_never_committed_is_none_wherever(peer: Peer) -> None:
    for topic, partition in (("demo", 1), ("demo", 99), ("missing", 0), ("no/where", 0)):
        request = build(Command.OFFSET_FETCH, group="g", topic=topic, partition=partition)
        assert peer.conversation.send(request).hex() == "000000020400"
        fields = {"topic": topic, "partition": partition, "group_id": "g"}
        assert peer.json({"OffsetFetch": fields}) == {"OffsetFetch": {"offset": None}}


def test_a_commit_to_a_missing_place_succeeds_in_binary_and_fails_in_json(peer: Peer) -> None:
    for topic, partition in (("demo", 99), ("missing", 0), ("no/where", 0)):
        assert peer.commit(5, topic=topic, partition=partition).hex() == "000000020301"
        fields = {"topic": topic, "partition": partition, "group_id": "g", "offset": 5}
        assert peer.json({"OffsetCommit": fields}) == {"OffsetCommit": {"success": False}}


def test_a_commit_above_the_largest_offset_is_refused(peer: Peer) -> None:
    told = "Offset commit failed: invalid offset: offset 9223372036854775808 is above 2^63-1"
    assert error_of(peer.commit(1 << 63)) == (5, told)
    fields = {"topic": "demo", "partition": 0, "group_id": "g", "offset": 1 << 63}
    assert peer.json({"OffsetCommit": fields}) == {"OffsetCommit": {"success": False}}


def test_a_commit_without_a_group_name_is_refused(peer: Peer) -> None:
    assert error_of(peer.commit(1, group=""))[0] == 5
    fields = {"topic": "demo", "partition": 0, "group_id": "", "offset": 1}
    assert peer.json({"OffsetCommit": fields}) == {"OffsetCommit": {"success": False}}


# ---------------------------------------------------------------- topics


def test_topics_are_listed_by_name_in_both_forms(peer: Peer) -> None:
    peer.create("zebra", 1)
    peer.create("Alpha", 3)
    found = parsed(Command.LIST_TOPICS, peer.conversation.send(build(Command.LIST_TOPICS)))
    rows = [(item.name, item.partitions) for item in found.topics]
    assert rows == [("Alpha", 3), ("demo", 2), ("zebra", 1)]
    assert peer.json("ListTopics") == {
        "ListTopics": {"topics": [{"name": name, "partition_count": count} for name, count in rows]}
    }


def test_creating_tells_what_is_wrong(peer: Peer) -> None:
    assert error_of(peer.create("demo", 5)) == (11, "Topic 'demo' already exists")
    assert error_of(peer.create("x", 0)) == (12, "Invalid partition count: 0")
    assert error_of(peer.create("x", 0xFFFFFFFF)) == (12, "Invalid partition count: 4294967295")
    code, told = error_of(peer.create("a b", 1))
    assert code == 500
    assert told.startswith("CreateTopic failed: invalid name: ")
    assert peer.json({"CreateTopic": {"topic": "new", "partition_count": 1}}) == {
        "CreateTopic": {"success": True}
    }
    assert peer.json({"CreateTopic": {"topic": "new", "partition_count": 1}}) == {
        "Error": {"message": "topic already exists: new"}
    }


def test_descriptions_show_the_exclusive_high_watermark(peer: Peer) -> None:
    peer.produce([b"a", b"b"], partition=1)
    found = parsed(
        Command.DESCRIBE_TOPIC, peer.conversation.send(build(Command.DESCRIBE_TOPIC, topic="demo"))
    )
    assert found.topic == "demo"
    assert found.partition_count == 2
    assert [(p.partition, p.high_watermark) for p in found.partitions] == [(0, 0), (1, 2)]
    found = parsed(
        Command.DESCRIBE_PARTITION,
        peer.conversation.send(build(Command.DESCRIBE_PARTITION, topic="demo", partition=1)),
    )
    assert (found.topic, found.partition, found.high_watermark) == ("demo", 1, 2)


def test_describing_what_is_missing_is_told(peer: Peer) -> None:
    told = peer.conversation.send(build(Command.DESCRIBE_TOPIC, topic="nope"))
    assert error_of(told) == (13, "DescribeTopic failed: Topic 'nope' not found")
    for topic, partition in (("nope", 0), ("demo", 9)):
        told = peer.conversation.send(
            build(Command.DESCRIBE_PARTITION, topic=topic, partition=partition)
        )
        assert error_of(told) == (
            14,
            f"DescribePartition failed: Partition {partition} not found in topic '{topic}'",
        )


def test_metrics_are_prometheus_text_of_the_engine(peer: Peer) -> None:
    peer.produce([b"a", b"b"])
    found = parsed(Command.METRICS_FETCH, peer.conversation.send(build(Command.METRICS_FETCH)))
    assert "# TYPE dragoman_produced_records gauge\ndragoman_produced_records 2\n" in found.text


def test_a_topic_of_another_namespace_is_named_with_it(peer: Peer) -> None:
    exchange = peer.conversation.exchange
    for request in (CreateNamespace("ns"), CreateTopic("t", 1, "ns")):
        exchange.engine.handle(request, Client(0, "none"), exchange.now)
        exchange.settle()
    assert parsed(Command.PRODUCE, peer.produce([b"x"], topic="ns/t")).count == 1
    names = [topic["name"] for topic in peer.json("ListTopics")["ListTopics"]["topics"]]
    assert names == ["demo", "ns/t"]


def test_a_deleted_topic_is_gone(peer: Peer) -> None:
    exchange = peer.conversation.exchange
    exchange.engine.handle(DeleteTopic("demo"), Client(0, "none"), exchange.now)
    exchange.settle()
    assert error_of(peer.produce([b"x"]))[0] == 10


def test_the_dialect_is_what_the_registry_says() -> None:
    assert (DIALECT.name, DIALECT.port) == ("rustlog", 9093)
    assert DIALECT.limits == Limits(10_485_760, 10_485_760)
