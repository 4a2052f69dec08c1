"""Valid requests of a dialect, and what becomes of them in hostile hands.

Everything is drawn from a `random.Random`, so that a seed replays any input. Half of the mutations
keep the framing whole, since what never gets past a length check teaches nothing about the rest.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from dragoman.codecs.base import Unsayable
from dragoman.codecs.compression import registry
from dragoman.codecs.registry import dialect
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from support.vectors import data_of, load_vectors

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

DIALECTS = ("cursus", "v1", "iggy", "rustlog")

BOUNDARIES = sorted(
    {0, 1} | {(1 << bits) + by for bits in (7, 8, 15, 16, 31, 32, 63, 64) for by in (-1, 0, 1)}
)
"""Numbers at which some integer ends; beyond 64 bits only text can say them."""

COMPRESSIONS = ("gzip", "lz4", "snappy", "zstd")
"""Those that a Cursus listener opens whatever it is told."""

_FRAME_BYTES_MAX = 4096
_NUMBER = re.compile(rb"-?\d+")
_TOKENS = (
    *(b" ", b"  ", b"\t", b"\n", b"\r\n", b"\0", b"|", b"||", b":", b",", b"=", b"[", b"]", b"{"),
    *(b"}", b'"', b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"NaN", b"1e999", b"-", b"_"),
    *(b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x1b[31m", b"%0A", b"../", b"."),
    *(b"V1|", b"acks=", b"topic=", b"group=", b"offset=", b"\xba\x7c", b"\x1f\x8b\x08", b"default"),
    *(b"\x04\x22\x4d\x18", b"\x82SNAPPY\0", b"\x28\xb5\x2f\xfd"),
    *(b"[" * 200, b'{"a":' * 70, b"9" * 400, b"a" * 300, "é".encode() * 200),
)


@cache
def corpus(name: str) -> tuple[bytes, ...]:
    """Whole valid requests of a dialect, framed: those of its vectors and of its speaker."""
    found: dict[bytes, None] = {}
    for vector in load_vectors(name):
        for step in vector.steps:
            if step.get("dialect", name) != name:
                continue
            for frame in frames_of(name, data_of(step.get("send"))):
                if len(frame) <= _FRAME_BYTES_MAX:
                    found[frame] = None
    speakers = [dialect(name).speaker()]
    if name == "rustlog":
        speakers.append(RustLogSpeaker(json=True))
    if name == "cursus":
        speakers += [dialect(name).speak({"compression": known}) for known in COMPRESSIONS]
    for speaker in speakers:
        for request in _requests():
            try:
                found[b"".join(map(bytes, speaker.ask(request)))] = None
            except Unsayable:
                continue
    return tuple(found)


def _requests() -> Iterator[calls.Request]:
    """One of each kind, with the optional fields of each."""

    def batch(*values: bytes, keyed: bool = False) -> RecordBatch:
        return RecordBatch(
            len(values),
            VarColumn.of(values),
            origin=Origin.NONE,
            keys=VarColumn.of([b"k"] * len(values)) if keyed else None,
        )

    yield calls.CreateNamespace("dev", 1)
    yield calls.CreateTopic("t", 2)
    yield calls.CreateTopic("t", 3, if_exists=calls.IfExists.GROW)
    yield calls.CreateTopic("top", 2, "dev", 1)
    for place in (("t", "default"), ("top", "dev"), (1, 1)):
        topic, home = place
        for keyed in (False, True):
            yield calls.Produce(topic, batch(b"x", b"yy", keyed=keyed), 0, home)
            yield calls.Produce(topic, batch(b"x", keyed=keyed), calls.ByHash(7), home)
            yield calls.Produce(topic, batch(b"x", keyed=keyed), calls.ROUND_ROBIN, home)
        for whence in calls.Whence:
            yield calls.Fetch(topic, 0, 1, home, whence, 10, 1000, group="g")
        yield calls.Fetch(topic, 0, 0, home, wait_us=1_000_000)
        yield calls.Fetch(topic, 1, 0, home, auto_commit=True, group="g")
        yield calls.Follow(topic, 0, 0, home)
        yield calls.CommitOffset(topic, "g", ((0, 1),), home)
        yield calls.CommitOffset(topic, "g", ((0, 1), (1, 2)), home, member="m-0001", generation=1)
        yield calls.FetchOffset(topic, "g", 0, home)
        yield calls.JoinGroup(topic, "g", "m-0001", home)
        yield calls.SyncGroup(topic, "g", "m-0001", 1, home)
        yield calls.Heartbeat(topic, "g", "m-0001", 1, home)
        yield calls.LeaveGroup(topic, "g", "m-0001", 1, home)
        yield calls.DescribeTopic(topic, home)
        yield calls.ListTopics(home)
        yield calls.AddPartitions(topic, 1, home)
        yield calls.RemovePartitions(topic, 1, home)
        yield calls.DeleteTopic(topic, home)
    yield calls.ListTopics()
    yield calls.ListNamespaces()
    yield calls.DescribeNamespace("dev")
    yield calls.RenameNamespace("dev", "prod")
    yield calls.DeleteNamespace("dev")
    yield calls.Ping()
    yield calls.ReadStatistics()


def frames_of(name: str, data: bytes) -> list[bytes]:
    """Cuts bytes into the frames of a dialect; what is no whole frame is left out."""
    if name == "v1":
        return [line + b"\n" for line in data.split(b"\n")[:-1]]
    order = _order(name)
    frames = []
    while len(data) >= 4:
        end = 4 + int.from_bytes(data[:4], order)
        if end == 4 or len(data) < end:
            break
        frames.append(data[:end])
        data = data[end:]
    return frames


def reframed(name: str, body: bytes) -> bytes:
    """A frame with this body and the length that belongs to it."""
    if name == "v1":
        return body.replace(b"\n", b" ") + b"\n"
    if name == "iggy":
        body = body.ljust(4, b"\0")
    return (len(body) or 1).to_bytes(4, _order(name)) + (body or b"\0")


def body_of(name: str, frame: bytes) -> bytes:
    """The frame without what delimits it."""
    return frame[:-1] if name == "v1" else frame[4:]


def _order(name: str) -> str:
    return "little" if name == "iggy" else "big"


def mutated(name: str, dice: random.Random) -> tuple[bytes, bool]:
    """One hostile input, and whether its frames are still whole."""
    frames = [dice.choice(corpus(name)) for _ in range(dice.choice((1, 1, 1, 2, 3)))]
    at = dice.randrange(len(frames))
    frame = frames[at]
    if dice.random() < 0.6:
        body = body_of(name, frame)
        for _ in range(dice.choice((1, 1, 2, 4))):
            body = _hurt(body, body_of(name, dice.choice(corpus(name))), dice)
        if name == "cursus" and dice.random() < 0.1:
            body = registry().named(dice.choice(COMPRESSIONS)).compress(body)
        frames[at] = reframed(name, body)
        return b"".join(frames), True
    frames[at] = _hurt(frame, dice.choice(corpus(name)), dice)
    return b"".join(frames), False


def _hurt(data: bytes, other: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    some = dice.choice((1, 2, 4, 8, 16))
    match dice.randrange(11):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + dice.randbytes(some) + data[at:]
        case 2:
            return data[:at] + data[at + some :]
        case 3:
            return data[:at] + dice.randbytes(some) + data[at + some :]
        case 4 if data:
            at = min(at, len(data) - 1)
            return data[:at] + bytes((data[at] ^ 1 << dice.randrange(8),)) + data[at + 1 :]
        case 5:
            width = dice.choice((1, 2, 4, 8))
            number = dice.choice(BOUNDARIES) % (1 << 8 * width)
            order = dice.choice(("big", "little"))
            return data[:at] + number.to_bytes(width, order) + data[at + width :]
        case 6 if numbers := list(_NUMBER.finditer(data)):
            found = dice.choice(numbers)
            return data[: found.start()] + boundary_text(dice) + data[found.end() :]
        case 7:
            return data[:at] + dice.choice(_TOKENS) + data[at:]
        case 8:
            return data[:at] + other[dice.randrange(len(other) + 1) :]
        case 9:
            end = at + dice.randrange(64)
            return data[:at] + data[at:end] * dice.choice((2, 3, 20)) + data[end:]
        case _:
            return dice.randbytes(len(data))


def boundary_text(dice: random.Random) -> bytes:
    """A number as text, at some boundary, with either sign."""
    sign = dice.choice((b"", b"", b"-", b"+", b"0", b" "))
    return sign + str(dice.choice(BOUNDARIES)).encode()


def boundary_inputs(name: str, frame: bytes) -> Iterator[bytes]:
    """The frame with every boundary written at every place where an integer can lie.

    Each place and width of a binary body is tried, which includes every integer field whatever the
    layout; and every number that is written out.
    """
    body = body_of(name, frame)
    for found in _NUMBER.finditer(body):
        for number in BOUNDARIES:
            for sign in (b"", b"-"):
                text = sign + str(number).encode()
                yield reframed(name, body[: found.start()] + text + body[found.end() :])
    if name == "v1" or body[:1] in (b"{", b'"'):
        return
    order = _order(name)
    is_text = name == "cursus" and body[:2] != b"\xba\x7c" and registry().sniff(body) is None
    for width in (1, 2, 4, 8):
        sign = 1 << 8 * width - 1
        numbers = {0, 1, sign - 1, sign, 2 * sign - 1}
        # Of a text, only the envelope's length is a binary number.
        for at in range(1 if is_text else len(body) - width + 1):
            for number in numbers:
                changed = body[:at] + number.to_bytes(width, order) + body[at + width :]
                yield reframed(name, changed)


def shapes(name: str) -> list[bytes]:
    """One frame of each shape in the corpus: the longest with its command and kind of body."""
    found: dict[object, bytes] = {}
    for frame in corpus(name):
        if (shape := _shape(name, frame)) not in found or len(found[shape]) < len(frame) <= 200:
            found[shape] = frame
    return list(found.values())


def _shape(name: str, frame: bytes) -> object:
    if name == "v1":
        return tuple(frame.upper().split(b"|")[2:3]), frame.count(b" ")
    if name == "iggy":
        return frame[4:8]
    body = frame[4:]
    if body[:2] == b"\xba\x7c":
        return body[:2], len(body) // 100
    if name == "cursus" and (known := registry().sniff(body)) is not None:
        return known.name
    if name == "rustlog":
        return body[:12] if body[:1] in (b"{", b'"') else body[:1]
    return tuple(re.findall(rb"[A-Z_]{3,}|\w+(?==)", body))
