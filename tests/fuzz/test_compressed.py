"""Compressed frames in hostile hands: cut, changed, and of contents that are hostile themselves."""

from __future__ import annotations

import random

import pytest

from dragoman.codecs.compression import registry
from support.conversation import Conversation, Exchange
from support.cursus import batch, framed, message, mutated, random_messages, unframed
from support.effort import effort

INPUTS = effort("FUZZ_INPUTS", 20_000) // 20
SEED = effort("FUZZ_SEED", 20_240_229)
NAMES = ("gzip", "lz4", "snappy", "snappy-block", "zstd")
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
