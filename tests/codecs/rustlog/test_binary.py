"""The straight reader of binary requests against the declarations."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from construct import ConstructError

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.rustlog.binary import declared_count, read_records, read_request
from dragoman.codecs.rustlog.parse import Malformed
from dragoman.codecs.rustlog.wire import COMMANDS, FRAME_BYTES_MAX, REQUESTS, Command
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    Produce,
)
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.core.calls import Request

OFFSET_MAX = (1 << 63) - 1


def straight(payload: bytes) -> dict[str, object] | str:
    """What the straight code makes of a payload, as the declaration would name it; or the fault."""
    try:
        heard = read_request(payload, 0, len(payload), FRAME_BYTES_MAX)
    except Malformed as fault:
        return fault.detail
    tag = heard.tag
    fields: dict[str, object] = {"op": tag.command}
    if isinstance(heard, Refused):
        if tag.command is Command.CREATE_TOPIC:
            return fields | {"topic": tag.topic, "partition_count": tag.partition}
        return fields | {"refused": tag.offset, "topic": tag.topic, "partition": tag.partition}
    assert isinstance(heard, Asked)
    return fields | of_request(heard.request, tag.command, tag)


def of_request(request: Request, command: Command, tag: object) -> dict[str, object]:
    match request:
        case Produce(topic=topic, namespace=namespace, route=route, batch=batch):
            return {
                "topic": flat_name(namespace, topic),
                "partition": route,
                "records": list(batch.values),
            }
        case Fetch(topic=topic, namespace=namespace, partition=partition, group=group):
            return {
                "group": group,
                "topic": flat_name(namespace, topic),
                "partition": partition,
                "offset": tag.offset,
                "max_bytes": tag.bytes_max,
            }
        case CommitOffset(topic=topic, namespace=namespace, group=group, offsets=offsets):
            return {
                "group": group,
                "topic": flat_name(namespace, topic),
                "partition": offsets[0][0],
                "offset": offsets[0][1],
            }
        case FetchOffset(topic=topic, namespace=namespace, group=group, partition=partition):
            return {
                "group": group,
                "topic": flat_name(namespace, topic),
                "partition": partition,
            }
        case CreateTopic(topic=topic, namespace=namespace, partitions=partitions):
            return {"topic": flat_name(namespace, topic), "partition_count": partitions}
        case DescribeTopic(topic=topic, namespace=namespace):
            fields: dict[str, object] = {"topic": flat_name(namespace, topic)}
            if command is not Command.DESCRIBE_TOPIC:
                fields["partition"] = tag.partition
            if command is Command.PRODUCE:
                fields["records"] = []
            return fields
        case _:
            return {}


def declared(payload: bytes) -> dict[str, object] | None:
    """What the declaration makes of a payload, or None where it refuses."""
    command = COMMANDS.get(payload[0])
    if command not in REQUESTS:
        return None
    try:
        parsed = REQUESTS[command].parse(payload)
    except ConstructError:
        return None
    fields = {key: value for key, value in parsed.items() if key != "_io"}
    # Only "default/x" is written two ways: a flat name of the default namespace is bare.
    topic = fields.get("topic")
    refused = command is Command.CREATE_TOPIC and not fields["partition_count"]
    if isinstance(topic, str) and topic.startswith("default/") and not refused:
        fields["topic"] = topic.removeprefix("default/")
    if command is Command.OFFSET_COMMIT and fields["offset"] > OFFSET_MAX:
        return {
            "op": command,
            "refused": fields["offset"],
            "topic": parsed.topic,
            "partition": fields["partition"],
        }
    if "records" in fields:
        fields["records"] = list(fields["records"])
    return fields | {"op": command}


def valid_payloads(dice: random.Random) -> bytes:
    text = dice.choice(["demo", "t", "", "ns/top", "default/x", "größe", "a" * 300])
    group = dice.choice(["", "g", "group-1", "é"])
    partition = dice.choice([0, 1, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
    offset = dice.choice([0, 1, 999, OFFSET_MAX, OFFSET_MAX + 1, (1 << 64) - 1])
    if dice.random() < 0.5:
        size = dice.choice([0, 1, 3, 40, 600])
        records = [dice.randbytes(size) for _ in range(dice.randrange(6))]
    else:
        records = [dice.randbytes(dice.randrange(12)) for _ in range(dice.randrange(8))]
    command = dice.choice([Command.PRODUCE, Command.PRODUCE, *REQUESTS])
    return REQUESTS[command].build(
        {
            "op": command,
            "topic": text,
            "group": group,
            "partition": partition,
            "partition_count": partition,
            "offset": offset,
            "max_bytes": dice.choice([0, 1, 1024, 0xFFFFFFFF]),
            "records": records,
        }
    )


def mutated(payload: bytes, dice: random.Random) -> bytes:
    data = bytearray(payload)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(data))
        match dice.randrange(6):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                data[at] ^= 1 << dice.randrange(8)
            case 2:
                del data[max(at, 1) :]
            case 3:
                data[at:at] = dice.randbytes(dice.randrange(1, 6))
            case 4:
                data[at : at + 4] = dice.choice([b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff"])
            case _:
                del data[at : at + dice.randrange(1, 5)]
        if not data:
            data = bytearray(b"\x06")
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_straight_code_and_declaration_agree_on_accept_reject_and_value(seed: int) -> None:
    dice = random.Random(seed)
    accepted = 0
    for _ in range(6_000):
        payload = mutated(valid_payloads(dice), dice)
        expected = declared(payload)
        got = straight(payload)
        if expected is None:
            assert isinstance(got, str), payload.hex()
        else:
            assert got == expected, payload.hex()
            accepted += 1
    assert 1_000 < accepted < 5_000


@pytest.mark.parametrize("size", [0, 1, 100, 512, 513, 2000])
@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_equal_records_are_cut_exactly(size: int, count: int) -> None:
    dice = random.Random(size * 1000 + count)
    records = [dice.randbytes(size) for _ in range(count)]
    body = b"".join(size.to_bytes(4, "big") + record for record in records)
    column = read_records(b"xx" + body + b"tail", 2, 2 + len(body), count)
    assert list(column) == records
    assert list(column.offsets) == [size * index for index in range(count + 1)]


def test_records_that_only_look_equal_at_both_ends_are_read_one_by_one() -> None:
    records = [b"abcd", b"", b"12345678", b"wxyz"]
    body = b"".join(len(record).to_bytes(4, "big") + record for record in records)
    assert list(read_records(body, 0, len(body), 4)) == records


def test_a_payload_that_holds_lengths_does_not_mislead_the_equal_size_check() -> None:
    inner = (4).to_bytes(4, "big")
    records = [inner + b"1234", inner, inner]
    body = b"".join(len(record).to_bytes(4, "big") + record for record in records)
    assert list(read_records(body, 0, len(body), 3)) == records


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        ("01", "decode error: missing topic length"),
        ("0100", "decode error: missing topic length"),
        ("01000464656d", "decode error: truncated topic"),
        ("01000474657374000000", "decode error: missing partition"),
        ("0100047465737400000000000000", "decode error: missing record count"),
        ("010004746573740000000000000001", "decode error: truncated record length"),
        ("01000474657374000000000000000100000005aa", "decode error: truncated record"),
        ("0100047465737400000000ffffffff00000000", "decode error: truncated record length"),
        ("02", "decode error: missing group_id length"),
        ("02000567", "decode error: truncated group_id"),
        ("0200000001", "decode error: truncated topic"),
        ("020000000174000000", "decode error: missing partition"),
        ("0200000001740000000000", "decode error: missing offset"),
        ("020000000174000000000000000000000000000000", "decode error: missing max_bytes"),
        ("03", "decode error: missing group length"),
        ("03000267", "decode error: truncated group"),
        ("030001670001740000000000", "decode error: missing offset"),
        ("0400016700017400", "decode error: missing partition"),
        ("0500017400", "decode error: missing partition count"),
        ("07", "decode error: missing topic length"),
        ("0800017400", "decode error: missing partition"),
        (
            "070002c328",
            "decode error: invalid utf8 topic: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            "07000361e282",
            "decode error: invalid utf8 topic: incomplete utf-8 byte sequence from index 1",
        ),
        (
            "020001ff",
            "decode error: invalid utf8 group_id: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        ("0a", "unknown request type: 10"),
        ("00", "unknown request type: 0"),
        ("fe", "unknown request type: 254"),
    ],
)
def test_each_fault_is_told_in_the_published_words(payload: str, detail: str) -> None:
    assert straight(bytes.fromhex(payload)) == detail


def test_a_hostile_record_count_costs_nothing() -> None:
    payload = bytes.fromhex("0100047465737400000000ffffffff") + b"\0\0\0\1a"
    assert straight(payload) == "decode error: truncated record length"


def test_the_declared_count_is_read_without_reading_records() -> None:
    payload = bytes.fromhex("010004746573740000000000012345")
    assert declared_count(payload, 0, len(payload)) == 0x12345
    for size in range(len(payload)):
        assert declared_count(payload, 0, size) == 0
