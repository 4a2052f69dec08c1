"""Text commands as they lie on the wire: which keyword, and which arguments.

A command is a keyword, then the end or white space, then arguments: `name=value` tokens in any
order, or the document's form, values in a fixed order. The first argument tells which: no topic or
group name contains `=`. The message of a PUBLISH is the rest of the frame, byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

POSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "CREATE": ("topic", "partitions"),
    "DELETE": ("topic",),
    "LIST": (),
    "METADATA": ("topic",),
    "FIND_COORDINATOR": ("group",),
    "PUBLISH": ("topic", "message"),
    "CONSUME": ("topic", "partition", "offset"),
    "STREAM": ("topic", "partition", "offset"),
    "JOIN_GROUP": ("topic", "group", "member"),
    "SYNC_GROUP": ("topic", "group", "member", "generation"),
    "HEARTBEAT": ("topic", "group", "consumer", "member", "generation"),
    "LEAVE_GROUP": ("topic", "group", "member"),
    "COMMIT": ("topic", "group", "partition", "offset"),
    "COMMIT_OFFSET": ("topic", "group", "partition", "offset"),
    "BATCH_COMMIT": ("topic", "group", "member", "generation"),
    "FETCH_OFFSET": ("topic", "group", "partition"),
    "DELETE_RECORDS": ("topic", "partition", "before"),
    "HELP": (),
    "EXIT": (),
}
"""The commands that are served, and the order of the arguments in the document's form."""

UNSERVED: Final = frozenset(
    {
        "SUBSCRIBE",
        "DESCRIBE",
        "LIST_CLUSTER",
        "LIST_GROUPS",
        "REGISTER_GROUP",
        "GROUP_STATUS",
        "APPEND_STREAM",
        "READ_STREAM",
        "SAVE_SNAPSHOT",
        "READ_SNAPSHOT",
        "STREAM_VERSION",
        "RAFT_APPLY",
    }
)
"""Commands of the same generation that this server does not have; they are refused by name."""

COMMAND_BYTES_MAX: Final = 256 * 1024
"""The longest command, without the message of a PUBLISH."""

_KEYWORD = re.compile(rb"[\0\s]{0,64}([A-Za-z_]{3,20})(?=[\0\s]|\Z)")
_MESSAGE = re.compile(rb"(?:\A|\s)message=")
_PLAIN_TOPIC = re.compile(rb"[\0\s]*(\S+)(?:\s|\Z)")
_EDGE = b"\0 \t\r\n"


@dataclass(slots=True)
class Command:
    """One command, cut into its arguments.

    Attributes:
        keyword: In capitals.
        positional: Written in the document's form.
        values: Its arguments by name.
        rest: Tokens that are not `name=value`, or those after the last position.
    """

    keyword: str
    positional: bool
    values: dict[str, bytes]
    rest: list[bytes] = field(default_factory=list)


def find_keyword(text: bytes) -> tuple[str, int] | None:
    """The keyword that a text begins with and where its arguments begin; None for other text."""
    found = _KEYWORD.match(text)
    if found is None:
        return None
    keyword = found[1].decode().upper()
    if keyword in POSITIONS or keyword in UNSERVED:
        return keyword, found.end()
    return None


def parse(keyword: str, text: bytes) -> Command | None:
    """Cuts the arguments of a command; None where they are too long to be any.

    Args:
        text: What follows the keyword.
    """
    message = None
    if keyword == "PUBLISH":
        head = text[:COMMAND_BYTES_MAX]
        start = _PLAIN_TOPIC.match(head)
        if start is not None and b"=" not in start[1]:
            values = {"topic": start[1]}
            if start.end() > start.end(1):
                values["message"] = text[start.end() :]
            return Command(keyword, True, values)
        if (found := _MESSAGE.search(head)) is not None:
            message = text[found.end() :]
            text = text[: found.start()]
    if len(text) > COMMAND_BYTES_MAX:
        return None
    tokens = text.strip(_EDGE).split()
    if tokens and b"=" not in tokens[0]:
        names = POSITIONS.get(keyword, ())
        count = len(names)
        return Command(keyword, True, dict(zip(names, tokens, strict=False)), tokens[count:])
    command = Command(keyword, False, {})
    for token in tokens:
        name, equals, value = token.partition(b"=")
        if equals:
            command.values[name.decode(errors="replace")] = value
        else:
            command.rest.append(token)
    if message is not None:
        command.values["message"] = message
    return command
