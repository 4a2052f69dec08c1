"""Every writer to every reader: the exact value or the declared escape, never a forged record."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import pytest

from dragoman.codecs.base import Unsayable
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.core.calls import CreateTopic, TopicCreated
from support.conversation import Conversation, Exchange
from support.nasty import NASTY
from support.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

TONGUES: dict[str, Callable[[Exchange], Talk]] = {
    "cursus": lambda exchange: Talk("cursus", exchange),
    "v1": lambda exchange: Talk("v1", exchange),
    "iggy": lambda exchange: Talk("iggy", exchange),
    "rustlog": lambda exchange: Talk("rustlog", exchange),
    "rustlog-json": lambda exchange: Talk("rustlog", exchange, RustLogSpeaker(json=True)),
}

REFUSED: dict[str, set[str]] = {
    "cursus": set(),
    "v1": {
        "one space",
        "inner spaces",
        "outer spaces",
        "tab",
        "line feed",
        "carriage return",
        "both line ends",
        "only a line feed",
        "forged watermark",
        "forged messages field",
        "forged marker",
        "forged reply line",
        "quotes",
        "Cursus error",
        "Cursus rebalance",
        "Cursus command",
        "gzip magic",
        "zstd magic",
        "all bytes",
        "UTF-8",
        "line separator",
        "next line",
        "no-break space",
    },
    "iggy": {"empty"},
    "rustlog": set(),
    "rustlog-json": set(),
}
"""What a wire has no words for: V1 has no white space in a value, Iggy no empty payload."""


UNTOLD = -1
"""Where a dialect does not tell a producer its offsets."""


def exchange_with_topic() -> Exchange:
    exchange = Exchange()
    made = Talk("rustlog", exchange).ask(CreateTopic("nasty", 1))
    assert isinstance(made, TopicCreated)
    return exchange


def write_all(exchange: Exchange, tongue: str) -> tuple[list[bytes], set[str]]:
    """Writes every nasty value that the tongue can say; returns them and the names it refused."""
    writer = TONGUES[tongue](exchange)
    written: list[bytes] = []
    refused: set[str] = set()
    for name, value in NASTY.items():
        try:
            produced = writer.produce("nasty", value)
        except Unsayable:
            refused.add(name)
            continue
        assert produced.base_offset in (len(written), UNTOLD), name
        written.append(value)
    return written, refused


@pytest.mark.parametrize("writer", TONGUES)
def test_a_writer_refuses_exactly_what_its_wire_cannot_say(writer: str) -> None:
    _, refused = write_all(exchange_with_topic(), writer)
    assert refused == REFUSED[writer]


@pytest.mark.parametrize("reader", TONGUES)
@pytest.mark.parametrize("writer", TONGUES)
def test_a_reader_gets_exactly_what_was_written(writer: str, reader: str) -> None:
    exchange = exchange_with_topic()
    written, _ = write_all(exchange, writer)
    records = TONGUES[reader](exchange).read_all("nasty")
    assert [record.offset for record in records] == list(range(len(written)))
    for record, value in zip(records, written, strict=True):
        assert record.value == value


@pytest.mark.parametrize("writer", TONGUES)
def test_the_v1_line_forges_nothing_for_a_reader_that_only_splits(writer: str) -> None:
    exchange = exchange_with_topic()
    written, _ = write_all(exchange, writer)
    v1 = Conversation("v1", exchange=exchange)
    read: list[bytes] = []
    while len(read) < len(written):
        reply = v1.send(b"V1|7|CONSUME|nasty 0 %d\n" % len(read))
        assert reply.count(b"\n") == 1
        assert reply.startswith(b"V1|7|OK|messages=")
        payload = reply.decode().removeprefix("V1|7|OK|messages=").strip()
        messages, _, rest = payload.partition(" hw=")
        watermark, _, marker = rest.partition(" escaped=")
        assert int(watermark) == len(written) - 1
        escaped = {int(offset) for offset in marker.strip("[]").split()}
        for item in messages.split(","):
            offset, _, text = item.partition(":")
            assert int(offset) == len(read)
            value = text.encode()
            read.append(unquote_to_bytes(value) if int(offset) in escaped else value)
    assert read == written
