"""The code that reads and writes hot bodies agrees with their declarations, on mutated frames too.

Accept, reject and value are compared; a seed replays any failure.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from construct import ConstructError

from dragoman.codecs.iggy import translate, wire
from dragoman.codecs.iggy.message import Bad
from dragoman.codecs.kernels import iggy_poll, iggy_send
from dragoman.codecs.malformed import Malformed
from dragoman.core.calls import ASSIGNED
from dragoman.core.column import VarColumn

ROUNDS = 10_000


def cut(dice: random.Random, data: bytes) -> bytes:
    """The same bytes with up to three changes: a flipped byte, a cut, bytes put in or copied."""
    changed = bytearray(data)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(changed) + 1)
        match dice.randrange(5):
            case 0 if at < len(changed):
                changed[at] = dice.choice((0, 1, 4, 127, 128, 255, dice.randrange(256)))
            case 1:
                del changed[at:]
            case 2:
                del changed[at : at + dice.randrange(1, 5)]
            case 3:
                changed[at:at] = dice.randbytes(dice.randrange(1, 5))
            case _:
                changed[at:at] = changed[: dice.randrange(30)]
    return bytes(changed)


def expected(declaration: Any, data: bytes) -> Any:
    """What the declaration reads, or None."""
    try:
        return declaration.parse(data)
    except ConstructError:
        return None


def cells(column: int | range | bytes | VarColumn | Any, count: int) -> list[Any]:
    """One value a record, whatever form the column has."""
    if isinstance(column, int | bytes):
        return [column] * count
    return list(column)


def ids_of(raw: bytes, count: int) -> list[bytes]:
    """The 16 bytes of every record."""
    return [raw[16 * index : 16 * index + 16] for index in range(count)]


def identifier(dice: random.Random) -> dict[str, Any]:
    """An identifier of either kind."""
    return dice.choice(
        (
            {"kind": 1, "value": dice.randbytes(4)},
            {"kind": 2, "value": b"name"[: dice.randrange(1, 5)]},
        )
    )


def test_sends_are_read_as_declared() -> None:
    dice = random.Random(1)
    accepted = 0
    for _ in range(ROUNDS):
        count = dice.randrange(7)
        size, headers = dice.randrange(9), dice.randbytes(dice.choice((0, 0, 11)))
        mixed = dice.random() < 0.5
        body = wire.SEND_MESSAGES.build(
            {
                "stream": identifier(dice),
                "topic": identifier(dice),
                "partitioning": {"kind": dice.randrange(5), "value": dice.randbytes(4)},
                "messages": [
                    {
                        "id": dice.randbytes(16),
                        "headers": headers,
                        "payload": dice.randbytes(dice.randrange(9) if mixed else size),
                    }
                    for _ in range(count)
                ],
            }
        )
        data = cut(dice, body)
        before, after = dice.randbytes(dice.choice((0, 8))), dice.randbytes(dice.choice((0, 40)))
        asked = expected(wire.SEND_MESSAGES, data)
        try:
            head, columns = iggy_send.decode(
                before + data + after, len(before), len(before) + len(data)
            )
        except Malformed:
            assert asked is None, data.hex()
            continue
        assert asked is not None, data.hex()
        accepted += 1
        assert (head.stream_kind, head.stream_value) == (asked.stream.kind, asked.stream.value)
        assert (head.topic_kind, head.topic_value) == (asked.topic.kind, asked.topic.value)
        assert head.partitioning_kind == asked.partitioning.kind
        assert head.partitioning_value == asked.partitioning.value
        assert columns.count == len(asked.messages)
        assert ids_of(columns.id, columns.count) == [one.id for one in asked.messages]
        assert cells(columns.headers, columns.count) == [one.headers for one in asked.messages]
        assert list(columns.payload) == [one.payload for one in asked.messages]
    assert ROUNDS // 4 < accepted < ROUNDS


def test_poll_answers_are_read_and_written_as_declared() -> None:
    dice = random.Random(2)
    accepted = 0
    for _ in range(ROUNDS // 2):
        count = dice.randrange(1, 7)
        offset, stamp = dice.randrange(1 << 40), dice.randrange(1 << 62)
        size = dice.choice((None, 5))
        payloads = [
            dice.randbytes(dice.randrange(9) if size is None else size) for _ in range(count)
        ]
        ids, sums = dice.randbytes(16 * count), [dice.randrange(1 << 32) for _ in range(count)]
        messages = [
            {
                "offset": offset + index,
                "state": 1,
                "timestamp_us": stamp,
                "id": ids[16 * index : 16 * index + 16],
                "checksum": sums[index],
                "headers": b"",
                "payload": payloads[index],
            }
            for index in range(count)
        ]
        answer = {"partition": 1, "current_offset": 9, "count": count, "messages": messages}
        body = wire.POLLED_MESSAGES.build(answer)
        rendering = iggy_poll.encode_records(
            count,
            offset=range(offset, offset + count),
            state=1,
            timestamp_us=stamp,
            id=ids,
            checksum=sums,
            headers=b"",
            payload=VarColumn.of(payloads),
        )
        assert bytes(rendering.data) == body[16:]
        data = cut(dice, body)
        asked = expected(wire.POLLED_MESSAGES, data)
        try:
            head, columns = iggy_poll.decode(data, 0, len(data))
        except Malformed:
            assert asked is None, data.hex()
            continue
        assert asked is not None, data.hex()
        accepted += 1
        assert (head.partition, head.current_offset, head.count) == (
            asked.partition,
            asked.current_offset,
            asked.count,
        )
        for name in ("offset", "state", "timestamp_us", "checksum", "headers", "payload"):
            found = cells(getattr(columns, name), columns.count)
            assert found == [one[name] for one in asked.messages], name
        assert ids_of(columns.id, columns.count) == [one.id for one in asked.messages]
    assert ROUNDS // 8 < accepted < ROUNDS // 2


def heard(read: Any, data: bytes) -> Any:
    """What a hand-written reader makes of a body, or None where it refuses it."""
    try:
        return read(data)
    except (Bad, struct.error, IndexError):
        return None


def legal(asked: Any) -> bool:
    """Whether identifiers and consumer are of kinds that exist."""
    return asked.consumer.kind in (1, 2) and all(
        (one.kind == 1 and len(one.value) == 4) or (one.kind == 2 and one.value)
        for one in (asked.stream, asked.topic)
    )


def key(one: Any) -> int | str:
    """An identifier as core's key."""
    if one.kind == 1:
        return int.from_bytes(one.value, "little")
    return str(one.value.decode("utf-8", "replace"))


def reader_body(dice: random.Random) -> dict[str, Any]:
    """The fields that poll and offset commands share."""
    return {
        "consumer": {"kind": dice.randrange(1, 3), "id": dice.randrange(1 << 32)},
        "stream": identifier(dice),
        "topic": identifier(dice),
        "partition": dice.randrange(1, 1 << 32),
    }


def test_polls_are_read_as_declared() -> None:
    dice = random.Random(3)
    accepted = 0
    for _ in range(ROUNDS // 2):
        strategy = {"kind": dice.randrange(1, 6), "value": dice.randrange(1 << 63)}
        rest = {"strategy": strategy, "count": dice.randrange(1, 1 << 32), "auto_commit": 1}
        data = cut(dice, wire.POLL_MESSAGES.build(reader_body(dice) | rest))
        asked = expected(wire.POLL_MESSAGES, data)
        right = (
            asked is not None and legal(asked) and 0 < asked.strategy.kind < 6 and asked.count > 0
        )
        found = heard(lambda body: translate.poll(body, 1 << 20), data)
        assert (found is not None) == right, data.hex()
        if found is None:
            continue
        accepted += 1
        request = found[1]
        assert (request.namespace, request.topic) == (key(asked.stream), key(asked.topic))
        assert request.group == str(asked.consumer.id)
        if asked.consumer.kind == 2:
            assert (request.partition, request.group_number) == (ASSIGNED, asked.consumer.id)
        else:
            named = asked.partition - 1 if asked.partition else translate.NOWHERE
            assert (request.partition, request.group_number) == (named, 0)
        assert request.records_max == asked.count
        assert request.auto_commit is (asked.auto_commit == 1)
        if asked.strategy.kind < 3:
            assert request.offset == min(asked.strategy.value, translate.INT64_MAX)
    assert ROUNDS // 8 < accepted < ROUNDS // 2


def test_offset_commands_are_read_as_declared() -> None:
    dice = random.Random(4)
    accepted = 0
    for index in range(ROUNDS // 2):
        body = reader_body(dice) | {"offset": dice.randrange(1 << 64)}
        declaration = wire.STORE_OFFSET if index & 1 else wire.GET_OFFSET
        read = translate.store_offset if index & 1 else translate.get_offset
        data = cut(dice, declaration.build(body))
        asked = expected(declaration, data)
        found = heard(read, data)
        assert (found is not None) == (asked is not None and legal(asked)), data.hex()
        if found is None:
            continue
        accepted += 1
        request = found[1]
        assert (request.namespace, request.topic) == (key(asked.stream), key(asked.topic))
        assert request.group == str(asked.consumer.id)
        if index & 1:
            ((_, offset),) = request.offsets
            assert offset == min(asked.offset + 1, translate.INT64_MAX)
    assert ROUNDS // 8 < accepted < ROUNDS // 2
