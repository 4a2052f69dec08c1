"""The published clients' own parsing rules over what other dialects may store: nothing is forged.

The rules are those of `interop.mini.v1`; the values come from the core, as any dialect may
have written them, and travel through the whole server.
"""

from __future__ import annotations

import re
from random import Random
from urllib.parse import unquote_to_bytes

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import CreateTopic, Produce
from dragoman.core.column import VarColumn
from dragoman.core.outcome import Client
from interop.mini.v1 import read_as_python, read_as_typescript
from support.conversation import Conversation
from support.nasty import NASTY

CASES = 6_000
BATCH = 100

PIECES = [
    *[bytes((byte,)) for byte in b",:|%= \n\r\t\x00\x1c\x7f[]ax7"],
    b" hw=",
    b" hw=99",
    b"messages=",
    b"messages=3:x,4:y hw=9",
    b" escaped=[0]",
    b",9:forged",
    b"\nV1|1|OK|partition=0 offset=0 hw=0\n",
    b"%2C",
    b"\xff",
    b"\xc3(",
    b"\xed\xa0\x80",
    "é".encode(),
    "🔥".encode(),
    "\u0085".encode(),
    "\u00a0".encode(),
    "\u2028".encode(),
    "\u3000".encode(),
    "\ufeff".encode(),
    b"abcdefgh",
]


def random_value(random: Random) -> bytes | None:
    if random.random() < 0.02:
        return None
    if random.random() < 0.1:
        return random.randbytes(random.randrange(12))
    return b"".join(random.choices(PIECES, k=random.randrange(5)))


def stored(values: list[bytes | None]) -> Conversation:
    """A V1 connection to a log whose topic `t` holds these values."""
    conversation = Conversation("v1")
    client = Client(99, "test")
    for request in (
        CreateTopic("t", 1),
        Produce("t", RecordBatch(len(values), VarColumn.of(values), origin=Origin.NONE), 0),
    ):
        conversation.engine.handle(request, client, conversation.now)
        conversation.exchange.settle()
    return conversation


def check(values: list[bytes | None]) -> None:
    reply = stored(values).send(b"V1|1|CONSUME|t 0 0\n")
    assert reply.count(b"\n") == 1
    assert reply.endswith(b"\n")
    line = reply.decode()  # strictly, as the Python client does
    for read in (read_as_python, read_as_typescript):
        messages = read(line)
        assert [offset for offset, _ in messages] == list(range(len(values)))
        marked = re.search(r" hw=\d+ escaped=\[([\d ]+)\]\n$", line)
        escaped = set(map(int, marked[1].split())) if marked else set()
        for (offset, text), value in zip(messages, values, strict=True):
            sent = text.encode()
            exact = unquote_to_bytes(sent) if offset in escaped else sent
            assert exact == (value or b"")


def test_both_published_parsers_read_every_random_value_exactly() -> None:
    random = Random(20_260_102)
    for _ in range(CASES // BATCH):
        check([random_value(random) for _ in range(BATCH)])


def test_both_published_parsers_read_every_random_value_alone() -> None:
    random = Random(3)
    for _ in range(300):
        check([random_value(random)])


def test_both_published_parsers_read_every_nasty_value() -> None:
    check([value for value in NASTY.values() if len(value) < 1000])
