"""Batches for the Cursus tests, built by the interpreted declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.codecs.cursus import wire

if TYPE_CHECKING:
    import random


def framed(body: bytes | str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return len(data).to_bytes(4, "big") + data


def unframed(data: bytes) -> list[bytes]:
    bodies = []
    while data:
        size = int.from_bytes(data[:4], "big")
        bodies.append(data[4 : 4 + size])
        data = data[4 + size :]
    return bodies


def message(**given: Any) -> dict[str, Any]:
    fields = {
        "offset": 0,
        "seq_num": 1,
        "producer_id": b"p",
        "key": b"",
        "epoch": 0,
        "payload": b"x",
        "event_type": b"",
        "schema_version": 0,
        "aggregate_version": 0,
        "metadata": b"",
    }
    assert given.keys() <= fields.keys()
    return fields | given


def batch(
    messages: list[dict[str, Any]],
    *,
    layout: str = "l3",
    topic: bytes = b"t",
    partition: int = 0,
    acks: bytes = b"1",
    idempotent: bool = False,
) -> bytes:
    place: Any = str(partition).encode() if layout == "document" else partition
    built: bytes = wire.LAYOUTS[layout].build(
        {
            "topic": topic,
            "partition": place,
            "acks": acks,
            "idempotent": idempotent,
            "seq_start": messages[0]["seq_num"] if messages else 0,
            "seq_end": messages[-1]["seq_num"] if messages else 0,
            "messages": messages,
        }
    )
    return built


def random_messages(dice: random.Random) -> list[dict[str, Any]]:
    """A batch as clients may send it: uniform, counting, mixed, or with unlike producers."""
    shape = dice.randrange(4)
    count = dice.choice((0, 1, 1, 2, 3, 5, 17))
    first = dice.choice((0, 1, 250, 2**32 - 2, 2**64 - 40))
    size = dice.randrange(20)
    messages = []
    for index in range(count):
        fields = message(seq_num=first + index, payload=dice.randbytes(size))
        if shape:
            fields["payload"] = dice.randbytes(dice.randrange(30))
            fields["key"] = dice.choice((b"", b"k", b"key-2"))
        if shape > 1:
            fields["epoch"] = dice.choice((0, -1, 2**63 - 1, -(2**63)))
            fields["producer_id"] = dice.choice((b"", b"p", b"producer"))
            fields["offset"] = dice.randrange(2**64)
        if shape > 2:
            fields["seq_num"] = dice.randrange(2**64)
            fields["event_type"] = dice.choice((b"", b"Created", b"\xff"))
            fields["schema_version"] = dice.choice((0, 1, 2**32 - 1))
            fields["aggregate_version"] = dice.choice((0, 9, 2**64 - 1))
            fields["metadata"] = dice.choice((b"", b"{}"))
        messages.append(fields)
    return messages


def mutated(data: bytes, dice: random.Random) -> bytes:
    """The bytes with something broken: a byte, a length, an end, a piece."""
    body = bytearray(data)
    for _ in range(dice.choice((1, 1, 2))):
        at = dice.randrange(len(body)) if body else 0
        match dice.randrange(6):
            case 0 if body:
                body[at] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
            case 1 if body:
                body[at] ^= 1 << dice.randrange(8)
            case 2:
                del body[at:]
            case 3:
                body += dice.randbytes(dice.randrange(1, 5))
            case 4 if body:
                del body[at : at + dice.randrange(1, 9)]
            case _:
                body[at:at] = dice.randbytes(dice.randrange(1, 9))
    return bytes(body)
