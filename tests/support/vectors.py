"""Vectors: what is sent on the wire of a dialect, and the exact bytes that answer it.

They are data, `specs/<dialect>/vectors/*.json` and, where several connections, several dialects or
time play together, `specs/<dialect>/scenarios/*.json`: an object whose "vectors" lists objects with

* "id", "clause" and "about": a name, the clause of protocol.md that it shows, one sentence;
* "options": the listener's options of the dialect, if any;
* "engine": the engine's options, if any;
* "steps": each with one action - "send": bytes, "advance": seconds, or "hang_up": true - and then
  "expect": the bytes that answer it (none where it is missing), and "closed": true where the server
  has closed the connection by then. "on" names a connection other than the first, and "dialect"
  what it speaks, if something else.

Bytes are {"hex": "..."}, {"text": "..."} (UTF-8), {"times": [count, "..."]} or {"framed": ...}
(text, or a list of pieces, behind its length as a big-endian u32), or a list of such pieces.

Every vector is played on a server of its own, three ways: each step in one piece; byte by byte; and
with the beginning of the next step of the same connection as a tail.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from support.conversation import Conversation, Exchange

SPECS = Path(__file__).parent.parent.parent / "specs"
WHOLE, BYTE_BY_BYTE, WITH_A_TAIL = WAYS = ("whole", "byte by byte", "with a tail")
_TAIL_BYTES = 3


@dataclass(frozen=True)
class Vector:
    """One vector; see the head of this module."""

    dialect: str
    id: str
    clause: str
    about: str
    steps: list[dict[str, Any]] = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    engine: dict[str, int] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.id


def load_vectors(dialect: str) -> list[Vector]:
    """All vectors of a dialect, in the order of files and entries; ids are unique."""
    vectors = [
        Vector(dialect=dialect, **entry)
        for folder in ("vectors", "scenarios")
        for path in sorted((SPECS / dialect / folder).glob("*.json"))
        for entry in json.loads(path.read_text())["vectors"]
    ]
    ids = [vector.id for vector in vectors]
    assert len(set(ids)) == len(ids), f"vectors of {dialect} share an id"
    return vectors


def data_of(piece: Any) -> bytes:
    """The bytes that a vector writes."""
    if piece is None:
        return b""
    if isinstance(piece, list):
        return b"".join([data_of(part) for part in piece])
    ((kind, value),) = piece.items()
    match kind:
        case "hex":
            return bytes.fromhex(value)
        case "text":
            return str(value).encode()
        case "framed":
            body = data_of(value) if isinstance(value, list) else str(value).encode()
            return len(body).to_bytes(4, "big") + body
        case "times":
            count, text = value
            return str(text).encode() * int(count)
    raise ValueError(f"bytes are hex, text, framed or times, not {kind!r}")


class Connections:
    """The connections of a vector to a server of its own."""

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self._exchange = Exchange(Engine(MemoryStore(), EngineOptions(**vector.engine)))
        self._open: dict[str, Conversation] = {}

    def of(self, step: dict[str, Any]) -> Conversation:
        """The connection of a step, opened where it is the first of its name."""
        name = step.get("on", "")
        if name not in self._open:
            spoken = step.get("dialect", self._vector.dialect)
            options = self._vector.options if spoken == self._vector.dialect else {}
            self._open[name] = Conversation(spoken, exchange=self._exchange, **options)
        return self._open[name]


def play(vector: Vector, how: str) -> None:
    """Plays a vector on a fresh server; asserts every answer."""
    connections = Connections(vector)
    given = dict.fromkeys([step.get("on", "") for step in vector.steps], 0)
    for index, step in enumerate(vector.steps):
        name = step.get("on", "")
        connection = connections.of(step)
        if "advance" in step:
            heard = connection.advance(step["advance"])
        elif step.get("hang_up"):
            heard = connection.hang_up()
        else:
            data = data_of(step["send"])[given[name] :]
            given[name] = 0
            if how == BYTE_BY_BYTE:
                heard = b"".join([connection.send(bytes((byte,))) for byte in data])
            else:
                if how == WITH_A_TAIL:
                    tail = _tail(vector.steps[index + 1 :], name)
                    given[name] = len(tail)
                    data += tail
                heard = connection.send(data)
        where = f"{vector.id} ({vector.clause}: {vector.about}), step {index + 1}, {how}"
        assert heard == data_of(step.get("expect")), where
        assert connection.closed is step.get("closed", False), where


def _tail(later: list[dict[str, Any]], name: str) -> bytes:
    """The first bytes of what this connection sends next, if it is sent at once."""
    for step in later:
        if step.get("on", "") == name:
            data = data_of(step.get("send"))
            return data[: min(_TAIL_BYTES, max(len(data) - 1, 0))]
        if "advance" in step:
            break
    return b""
