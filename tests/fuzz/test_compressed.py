"""Compressed frames in hostile hands: cut, changed, and of contents that are hostile themselves."""

from __future__ import annotations

import random
import threading
import zlib
from dataclasses import replace

import pytest
import trio

from dragoman.codecs.compression import Compression, Registry, registry
from dragoman.codecs.cursus import codec
from dragoman.codecs.cursus.dialect import DIALECT
from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from support.conversation import Conversation, Exchange
from support.cursus import batch, framed, message, mutated, random_messages, unframed
from support.effort import effort
from support.house import ask, hear, open_house

INPUTS = effort("FUZZ_INPUTS", 20_000) // 20
SEED = effort("FUZZ_SEED", 20_240_229)
NAMES = ("gzip", "lz4", "snappy", "snappy-block", "zstd")
MIB = 1024 * 1024
SPOKEN = replace(
    DIALECT,
    codec=lambda facts: codec.CursusCodec(replace(facts, options=DIALECT.options({}))),
)
OPTIONS = {"compression": "snappy-block"}


def answered(exchange: Exchange, body: bytes) -> bytes:
    """The one answer to a frame on a connection of its own, which closes with nothing unsaid."""
    talk = Conversation("cursus", exchange=exchange, **OPTIONS)
    replies = unframed(talk.send(framed(body)))
    if not talk.closed:
        assert len(replies) == 1, body
    talk.session.gone(exchange.now)
    exchange.sessions.remove(talk.session)
    return replies[0] if replies else b""


@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_batch_cut_anywhere_is_refused_and_writes_nothing(name: str) -> None:
    exchange = Exchange()
    talk = Conversation("cursus", exchange=exchange, **OPTIONS)
    talk.send(framed("CREATE topic=t partitions=1"))
    packed = registry().named(name).compress(batch([message(payload=b"payload " * 20)]))
    for size in range(2, len(packed)):
        assert b"ERROR" in answered(exchange, packed[:size]), size
    assert answered(exchange, packed).startswith(b'{"status":"OK","last_offset":0,')


@pytest.mark.parametrize("name", NAMES)
def test_what_is_made_of_a_compressed_batch_is_answered_as_its_content_is(name: str) -> None:
    """Compression changes neither what is taken nor what is said of what is not."""
    dice = random.Random(f"{SEED} {name}")
    plain, packed = Exchange(), Exchange()
    compress = registry().named(name).compress
    for exchange in (plain, packed):
        Conversation("cursus", exchange=exchange).send(framed("CREATE topic=t partitions=1"))
    for _ in range(INPUTS // 5):
        body = batch(random_messages(dice), idempotent=bool(dice.randrange(2)))
        if dice.random() < 0.7:
            body = mutated(body, dice)
        if registry().sniff(body) is None and body[:2] == b"\xba\x7c":
            assert answered(packed, compress(body)) == answered(plain, body)


@pytest.mark.parametrize("name", NAMES)
def test_changed_bytes_of_compressed_data_are_answered(name: str) -> None:
    dice = random.Random(f"{SEED} bytes {name}")
    exchange = Exchange()
    compress = registry().named(name).compress
    for _ in range(INPUTS):
        answered(exchange, mutated(compress(batch(random_messages(dice))), dice))


def gzip_of(body: bytes, size: int) -> bytes:
    """A gzip member of exactly this size: a comment in its head fills it up."""
    deflate = zlib.compressobj(wbits=-15)
    data = deflate.compress(body) + deflate.flush()
    tail = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
    comment = b"c" * (size - 10 - 1 - len(data) - 8) + b"\0"
    packed = b"\x1f\x8b\x08\x10" + bytes(6) + comment + data + tail
    assert len(packed) == size
    return packed


def batch_of(size: int) -> bytes:
    """A batch of exactly so many bytes, in three messages that a record can hold."""
    small = [message(seq_num=number, payload=b"") for number in (1, 2, 3)]
    room = size - len(batch(small))
    for one in small[1:]:
        one["payload"] = bytes(room // 3)
    small[0]["payload"] = bytes(room - 2 * (room // 3))
    body = batch(small)
    assert len(body) == size
    return body


@pytest.mark.parametrize(
    ("frame", "content", "taken"),
    [
        (50_000, 5_000_000, True),
        (49_999, 5_000_000, False),
        (50_000, 5_000_001, False),
        (10_000, 4 * MIB, True),
        (10_000, 4 * MIB + 1, False),
        (700_000, 64 * MIB, True),
        (700_000, 64 * MIB + 1, False),
    ],
)
def test_a_hundred_to_one_is_exact_and_so_are_its_floor_and_ceiling(
    frame: int, content: int, taken: bool
) -> None:
    exchange = Exchange(Engine(MemoryStore(), EngineOptions(request_bytes_max=65 * MIB)))
    Conversation("cursus", exchange=exchange).send(framed("CREATE topic=t partitions=1"))
    heard = answered(exchange, gzip_of(batch_of(content), frame))
    assert heard.startswith(b'{"status":"OK","last_offset":2,') is taken
    assert (b"come out of the gzip data" in heard) is not taken


class Slow:
    """Opens gzip under another magic, in a thread only once it is told to.

    Attributes:
        limits: What it was allowed each time, and whether on the event loop's thread.
    """

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.limits: list[tuple[int, bool]] = []

    def decompress(self, data: bytes, limit: int) -> bytes:
        on_loop = threading.current_thread() is threading.main_thread()
        self.limits.append((limit, on_loop))
        assert on_loop or self.go_on.wait(10), "nobody else was answered meanwhile"
        return registry().named("gzip").decompress(b"\x1f\x8b" + data[2:], limit)


@pytest.mark.parametrize(
    ("frame", "content", "limits"),
    [
        (700_000, 60 * MIB, [(64 * MIB, False)]),
        (10_000, 3 * MIB, [(256 * 1024, True), (4 * MIB, False)]),
    ],
)
async def test_a_large_compressed_batch_is_opened_while_others_are_served(
    monkeypatch: pytest.MonkeyPatch, frame: int, content: int, limits: list[tuple[int, bool]]
) -> None:
    slow, there = Slow(), Registry()
    there.register(Compression("slow", b"\xf0\x01", zlib.compress, slow.decompress))
    monkeypatch.setattr(codec, "registry", lambda: there)
    packed = b"\xf0\x01" + gzip_of(batch_of(content), frame)[2:]
    async with open_house() as house:
        bulk, other = house.connect(SPOKEN), house.connect(SPOKEN)
        created = framed("OK topic=t partitions=1")
        await ask(other, framed("CREATE topic=t partitions=1"), created)
        await bulk.send_all(framed(packed))
        while len(slow.limits) < len(limits):
            await trio.lowlevel.checkpoint()
        await ask(other, framed("LIST"), framed("OK count=1 topics=t"))
        slow.go_on.set()
        assert (await hear(bulk, 34))[4:] == b'{"status":"OK","last_offset":2'
    assert slow.limits == limits
