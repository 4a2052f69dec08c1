"""Text commands as they lie on the wire: which keyword, and which arguments.

A command is a keyword, then the end or white space, then arguments: `name=value` tokens in any
order, or the document's form, values in a fixed order. The first argument alone tells which: it is
a known name and `=`, or a value. A message is the rest of the frame, byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

POSITIONS: Final[dict[str, tuple[str, ...]]] = {
    "CREATE": ("topic", "partitions"),
    "DELETE": ("topic",),
    "LIST": (),
    "LIST_CLUSTER": (),
    "DESCRIBE": ("topic",),
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
    "SUBSCRIBE": ("topic", "group"),
    "REGISTER_GROUP": ("topic", "group"),
    "GROUP_STATUS": ("group", "topic"),
    "LIST_GROUPS": ("topic",),
    "DELETE_RECORDS": ("topic", "partition", "before"),
    "APPEND_STREAM": (),
    "READ_STREAM": (),
    "STREAM_VERSION": (),
    "SAVE_SNAPSHOT": (),
    "READ_SNAPSHOT": (),
    "HELP": (),
    "EXIT": (),
}
"""The commands that are served, and the order of the arguments in the document's form."""

ARGUMENTS: Final = frozenset(
    (
        *("topic", "partition", "partitions", "offset", "group", "member", "generation", "batch"),
        *("message", "acks", "key", "producerId", "seqNum", "epoch", "isIdempotent", "wait_ms"),
        *("autoOffsetReset", "consumer", "before", "idempotent", "event_sourcing", "retention"),
        *("retention_hours", "retention_bytes", "compact", "tombstone", "dedupe", "partitioner"),
        *("replication_factor", "auth_policy", "cleanup_policy", "read_acl", "write_acl"),
        *("version", "from_version", "event_type", "schema_version", "metadata", "isolation"),
    )
)
"""The names that arguments have in the clients' form, of all commands together: a first argument
that begins with one of them and `=` makes it that form."""

EVERYWHERE: Final = frozenset({"CREATE", "DELETE", "LIST", "SUBSCRIBE", "PUBLISH", "CONSUME"})
"""The commands of the message-flow document, which are commands in any envelope and any form; the
others are messages in the envelope of a topic that exists, unless they are in the clients' form."""

WITH_MESSAGE: Final = frozenset({"PUBLISH", "APPEND_STREAM", "SAVE_SNAPSHOT"})
"""The commands whose message is the rest of the frame."""

UNSERVED: Final = frozenset(
    {
        "RAFT_APPLY",
        *("PROTOCOL_INFO", "NEGOTIATE", "AUTH", "LIST_OFFSETS", "CLUSTER_STATUS", "ELECT_LEADER"),
        *("INIT_PRODUCER_ID", "BEGIN_TXN", "TXN_PUBLISH", "SEND_OFFSETS_TO_TXN", "END_TXN"),
        *("TXN_STATUS", "LIST_SNAPSHOTS", "FETCH_SNAPSHOTS", "CATCHUP_SNAPSHOTS"),
    }
)
"""Commands that this server does not have, of a broker among others or of later brokers; they are
refused by name."""

REPLICATION: Final = "REPLICATE_"
"""How the commands begin by which later brokers copy each other; none is served."""

COMMAND_BYTES_MAX: Final = 256 * 1024
"""The longest command, without its message."""

_KEYWORD = re.compile(rb"[\0\s]{0,64}([A-Za-z_]{3,32})(?=[\0\s]|\Z)")
_MESSAGE: Final = b"message="
_NAMED = re.compile(
    rb"[\0\s]*+(?:%b)=" % b"|".join(sorted([name.encode() for name in ARGUMENTS], reverse=True))
)
_NAMES: Final = {name.encode(): name for name in ARGUMENTS}
_KNOWN: Final = frozenset((*POSITIONS, *UNSERVED))
_WRITTEN: Final = {keyword.encode(): keyword for keyword in _KNOWN}
"""Keywords as clients write them; in small letters they are the same."""
_PLAIN_TOPIC = re.compile(rb"[\0\s]*(\S+)(?:\s|\Z)")
_EDGE = b"\0 \t\r\n\v\f"


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
    keyword = _WRITTEN.get(found[1])
    if keyword is None:
        keyword = found[1].decode().upper()
        if keyword not in _KNOWN and not keyword.startswith(REPLICATION):
            return None
    return keyword, found.end()


def is_named(text: bytes, at: int = 0) -> bool:
    """Whether arguments are in the clients' form, which the first of them decides.

    Args:
        at: Where they begin.
    """
    return _NAMED.match(text, at, at + COMMAND_BYTES_MAX) is not None


def parse(keyword: str, text: bytes) -> Command | None:
    """Cuts the arguments of a command; None where they are too long to be any.

    Args:
        text: What follows the keyword.
    """
    message = None
    if keyword in WITH_MESSAGE:
        head = text[:COMMAND_BYTES_MAX]
        if (
            keyword == "PUBLISH"
            and not is_named(text)
            and (start := _PLAIN_TOPIC.match(head)) is not None
        ):
            values = {"topic": start[1]}
            if start.end() > start.end(1):
                values["message"] = text[start.end() :]
            return Command(keyword, True, values)
        if (at := _message_at(head)) >= 0:
            message = text[at + len(_MESSAGE) :]
            text = text[:at]
    if len(text) > COMMAND_BYTES_MAX:
        return None
    tokens = text.strip(_EDGE).split()
    if tokens and not _is_argument(tokens[0]):
        names = POSITIONS.get(keyword, ())
        count = len(names)
        return Command(keyword, True, dict(zip(names, tokens, strict=False)), tokens[count:])
    named_values: dict[str, bytes] = {}
    rest: list[bytes] = []
    for token in tokens:
        name, equals, value = token.partition(b"=")
        if equals:
            named_values[_NAMES.get(name) or name.decode(errors="replace")] = value
        else:
            rest.append(token)
    if message is not None:
        named_values["message"] = message
    return Command(keyword, False, named_values, rest)


def _is_argument(token: bytes) -> bool:
    """Whether a token is what makes the clients' form; as `is_named` for its first one."""
    name, equals, _ = token.partition(b"=")
    return bool(equals) and name in _NAMES


def _message_at(text: bytes) -> int:
    """Where the message begins to be named, which is at the start of an argument; -1 nowhere."""
    at = text.find(_MESSAGE)
    while at > 0 and not text[at - 1 : at].isspace():
        at = text.find(_MESSAGE, at + 1)
    return at
