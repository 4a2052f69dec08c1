"""V1 as its two published clients speak it, re-written from a description of them.

The Python client has one request in flight and reads one line for it; the TypeScript client has
several and finds the reply by its correlation id. Both look fields up by name and read the messages
of a CONSUME each by rules of its own.
"""

from __future__ import annotations

import re
import socket
from typing import Self

TIMEOUT_S = 5
JS_SPACES = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
JS_SPACES += "\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class Refused(Exception):
    """An ERR line: its code and message."""


def payload_of(line: str, correlation: int | None = None) -> str:
    """What follows OK; the pipes in it are put back."""
    version, sent, status, *rest = line.split("|")
    assert version == "V1", line
    assert correlation is None or sent == str(correlation), f"a reply to {sent}, not {correlation}"
    if status != "OK":
        raise Refused("|".join(rest))
    return "|".join(rest)


def read_as_python(line: str) -> list[tuple[int, str]]:
    """The messages of a CONSUME reply as the Python client finds them."""
    payload = payload_of(line.strip())
    body = payload[payload.index("messages=") + len("messages=") :].split(" hw=", 1)[0].strip()
    messages = []
    for item in filter(None, body.split(",")):
        offset, *rest = item.split(":")
        if not rest:
            raise ValueError(item)
        messages.append((int(offset), ":".join(rest)))
    return messages


def read_as_typescript(line: str) -> list[tuple[int, str]]:
    """The messages of a CONSUME reply as the TypeScript client finds them."""
    payload = payload_of(line.strip(JS_SPACES))
    body = payload.split("messages=")[1].split(" hw=")[0].strip(JS_SPACES)
    messages = []
    for item in filter(None, body.split(",")):
        offset, _, rest = item.partition(":")
        if not re.fullmatch(r"-?\d+", offset):
            raise ValueError(item)
        messages.append((int(offset), rest))
    return messages


def number_as_python(payload: str, name: str) -> int:
    """A field as the Python client finds it: the first place, up to white space."""
    return int(payload.split(f"{name}=", 1)[1].split()[0])


def number_as_typescript(payload: str, name: str) -> int:
    """A field as the TypeScript client finds it."""
    found = re.search(rf"{name}=(-?\d+)", payload)
    assert found, payload
    return int(found[1])


def assigned(payload: str) -> list[int]:
    """Between the first brackets, as both find it."""
    return [int(text) for text in payload.split("[", 1)[1].split("]", 1)[0].split()]


class Connection:
    """What both have in common: numbered lines; a context."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.lines = self.socket.makefile("r", encoding="utf-8", errors="strict", newline="\n")
        self.last = 0

    def send(self, *commands: str) -> list[int]:
        """Sends requests together; returns their correlation ids."""
        first = self.last + 1
        self.last += len(commands)
        numbered = enumerate(commands, first)
        self.socket.sendall("".join(f"V1|{n}|{text}\n" for n, text in numbered).encode())
        return [*range(first, self.last + 1)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.socket.close()


class PythonClient(Connection):
    """One request at a time."""

    def ask(self, command: str, *arguments: object) -> str:
        """Returns the payload of the one reply."""
        (number,) = self.send(f"{command}|{' '.join(map(str, arguments))}")
        return payload_of(self.lines.readline().strip(), number)

    def consume(self, topic: str, partition: int, offset: int) -> list[tuple[int, str]]:
        """Offset and text of every message from there on that one reply holds."""
        payload = self.ask("CONSUME", topic, partition, offset)
        return read_as_python(f"V1|0|OK|{payload}\n")


class TypeScriptClient(Connection):
    """Many requests in flight; a reply to none of them is ignored."""

    def ask_all(self, *commands: str) -> list[str]:
        """The reply lines, in the order of the requests, in whatever order they come."""
        wanted = self.send(*commands)
        found: dict[str, str] = {}
        while len(found) < len(wanted):
            line = self.lines.readline().strip(JS_SPACES)
            assert line, "the connection is closed"
            number = line.split("|")[1]
            if int(number) in wanted:
                found[number] = line
        return [found[str(number)] for number in wanted]
