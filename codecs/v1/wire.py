"""The grammar of V1's lines, as data: the specification that documents, tests and tools read.

A request is one line, `V1|<correlation_id>|<command>|<args>`, split at its first three pipes; each
part is trimmed. Arguments are separated by runs of Unicode white space and never quoted. A reply is
one line, `V1|<correlation_id>|OK|<payload>` or `V1|<correlation_id>|ERR|<code>|<message>`. It knows
no records.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

VERSION = "V1"
INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 63) - 1

SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space property. Python's own `str.split` also counts U+001C to U+001F."""

EXPECTED_FORMAT = "expected format V1|<correlation_id>|<command>|<args>"
UNSUPPORTED_VERSION = "unsupported version"
CORRELATION_REQUIRED = "correlation id required"
COMMAND_REQUIRED = "command required"
UNSUPPORTED_COMMAND = "unsupported command"
LINE_TOO_LONG = "line too long"
INVALID_NAME = "invalid name"
"""A topic, group or consumer that the log has no name for."""


class Code(Enum):
    """The error codes; the last one is this server's own, for faults that are not the client's."""

    BAD_REQUEST = "BAD_REQUEST"
    UNKNOWN_COMMAND = "UNKNOWN_COMMAND"
    REPLICATION_TIMEOUT = "REPLICATION_TIMEOUT"
    NOT_LEADER = "NOT_LEADER"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    SERVER_ERROR = "SERVER_ERROR"


class Kind(Enum):
    """What an argument must look like."""

    NAME = "a token of valid UTF-8"
    MESSAGE = "key:value, split at the first colon; both may be empty"
    INTEGER = "an optional sign and ASCII digits, within 64 bits"
    NATURAL = "an integer that is not negative; its sign is checked once all integers are read"
    CHOICE = "one of a few words, in any case"


class Argument(NamedTuple):
    """One argument of a command.

    Attributes:
        shown: How the usage text writes it.
        wrong: The message where the argument is not of its kind.
        negative: The message where a NATURAL is negative, if it is another one.
        choices: The words of a CHOICE, in lower case.
    """

    shown: str
    kind: Kind
    wrong: str = ""
    optional: bool = False
    choices: tuple[str, ...] = ()
    negative: str = ""


class Command(NamedTuple):
    """One command: its arguments in order, of which only the last may be optional."""

    name: str
    arguments: tuple[Argument, ...]

    @property
    def usage(self) -> str:
        """The message for a wrong number of arguments."""
        shown = " ".join([argument.shown for argument in self.arguments])
        return f"{self.name} requires: {shown}"

    @property
    def counts(self) -> tuple[int, int]:
        """The smallest and the largest number of arguments."""
        return sum([not a.optional for a in self.arguments]), len(self.arguments)


ACKS = ("acks=0", "acks=1", "acks=all")
ROLES = ("leader", "follower")
ASSIGNORS = ("assignor=round_robin", "assignor=range")

_TOPIC = Argument("<topic>", Kind.NAME, INVALID_NAME)
_GROUP = Argument("<group>", Kind.NAME, INVALID_NAME)
_CONSUMER = Argument("<consumer_id>", Kind.NAME, INVALID_NAME)
_GENERATION = Argument("<generation>", Kind.INTEGER, "invalid generation")
_MEMBER = (_GROUP, _TOPIC, _CONSUMER, _GENERATION)

REPLICATION = frozenset({"REPLICA_FETCH", "SET_PARTITION_ROLE"})
"""Commands that move roles and watermarks, which concern clients of every dialect."""

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "PRODUCE",
            (
                _TOPIC,
                Argument("<key>:<value>", Kind.MESSAGE, "message must be key:value"),
                Argument(
                    "[acks=0|1|all]",
                    Kind.CHOICE,
                    "invalid ack mode; expected acks=0|1|all",
                    optional=True,
                    choices=ACKS,
                ),
            ),
        ),
        Command(
            "CONSUME",
            (
                _TOPIC,
                Argument("<partition>", Kind.NATURAL, "invalid partition"),
                Argument("<offset>", Kind.NATURAL, "invalid offset"),
            ),
        ),
        Command(
            "JOIN",
            (
                _GROUP,
                _TOPIC,
                _CONSUMER,
                Argument(
                    "[assignor=round_robin|range]",
                    Kind.CHOICE,
                    "invalid assignor; expected assignor=round_robin|range",
                    optional=True,
                    choices=ASSIGNORS,
                ),
            ),
        ),
        Command("SYNC", _MEMBER),
        Command("HEARTBEAT", _MEMBER),
        Command("LEAVE", _MEMBER),
        Command(
            "COMMIT",
            (
                *_MEMBER,
                Argument("<partition>", Kind.INTEGER, "invalid partition"),
                Argument("<offset>", Kind.INTEGER, "invalid offset"),
            ),
        ),
        Command(
            "OFFSET",
            (_GROUP, _TOPIC, Argument("<partition>", Kind.INTEGER, "invalid partition")),
        ),
        Command(
            "REPLICA_FETCH",
            (
                _TOPIC,
                Argument("<partition>", Kind.INTEGER, "invalid partition"),
                Argument("<replica_id>", Kind.INTEGER, "invalid replica_id"),
                Argument("<offset>", Kind.INTEGER, "invalid offset"),
            ),
        ),
        Command(
            "SET_PARTITION_ROLE",
            (
                _TOPIC,
                Argument(
                    "<partition>",
                    Kind.NATURAL,
                    "invalid partition",
                    negative="partition must be >= 0",
                ),
                Argument("<leader|follower>", Kind.CHOICE, "invalid role", choices=ROLES),
            ),
        ),
    )
}
"""Every command that is served; those of `REPLICATION` where the listener allows them.

The number of arguments is checked first, then each argument in order, then the signs of naturals in
order, and last the names, whose legality is the log's business.
"""
