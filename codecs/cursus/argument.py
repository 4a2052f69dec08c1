"""The arguments of text commands: read, checked, and refused in this dialect's own words.

What cannot be read raises `Bad`, which is the refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dragoman.codecs.cursus.setting import BadSetting, config_of, flag_of, time_ms
from dragoman.codecs.cursus.translate import Style, Tag, printable
from dragoman.core import calls
from dragoman.core.error import ErrorCode
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Facts, Heard, Limits
    from dragoman.codecs.cursus.command import Command

    Handler = Callable[["Context", Command, Tag], Heard | list[Heard]]
    """Makes the requests of a command and fills in the tag that shapes its answer; raises `Bad`."""

RECORDS_MAX: Final = 8192
"""The most messages of one CONSUME, and of one push of a STREAM."""

INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
DIGITS_MAX: Final = 20
_OFFSET: Final = calls.Whence.OFFSET
_NUMBER = re.compile(rb"[+-]?\d{1,20}")


class Bad(Exception):
    """A command that cannot be served as it is written; never leaves the dialect.

    Args:
        wording: The exact words of the refusal; empty for a command that is none.
    """

    def __init__(self, wording: str, code: ErrorCode = ErrorCode.MALFORMED) -> None:
        super().__init__(wording)
        self.wording = wording
        self.code = code


@dataclass(slots=True)
class Context:
    """What commands need to know of their connection.

    Attributes:
        address: Where clients are told to connect.
        create_partitions: How many partitions a missing topic gets when it is written to; 0 none.
        style: How the document's CONSUME is answered.
        layout: How the clients' CONSUME and STREAM are answered.
        empty_wait_us: So long a CONSUME of the clients waits which does not say how long.
        is_legacy: The listener answers as brokers before July 2026 did.
        token: Unpredictable bytes that no other connection has.
        joined: How many members this connection has made.
        consumers: As which member each consumer of this connection joined, by topic, group and
            name, of the document's form.
        pushes: Whether the document's SUBSCRIBE pushes.
        push_records: The most messages of one push.
    """

    limits: Limits
    address: tuple[str, int]
    create_partitions: int
    style: Style
    layout: Style
    empty_wait_us: int
    is_legacy: bool
    token: bytes
    joined: int = 0
    consumers: dict[tuple[str, str, str], str] = field(default_factory=dict)
    pushes: bool = True
    push_records: int = RECORDS_MAX

    @classmethod
    def of(cls, facts: Facts) -> Context:
        """What the connection's facts say."""
        options = facts.options
        frames = options["consume_style"] == "frames"
        is_legacy = bool(options["legacy_replies"])
        layout = options["reply_layout"]
        is_l1 = layout == "l1" or (layout == "auto" and is_legacy)
        return cls(
            facts.limits,
            reachable(facts.address),
            int(options["auto_create"]),
            Style.FRAMES if frames else Style.DOCUMENT,
            Style.L1 if is_l1 else Style.BATCH,
            1000 * time_ms(options["empty_wait"].encode(), "empty_wait"),
            is_legacy,
            facts.token or f"{facts.peer}{facts.local}".encode(),
            pushes=facts.options["subscribe"] == "push",
            push_records=int(facts.options["push_records"]),
        )


def reachable(address: tuple[str, int]) -> tuple[str, int]:
    """An address as clients can use it: one of IPv4 that a socket of both kinds shows as one of
    IPv6 is told as what it is."""
    host, port = address
    return host.removeprefix("::ffff:") if "." in host else host, port


def decoded(value: bytes, what: str) -> str:
    """The text of a name, or its refusal.

    Args:
        what: The noun for the refusal.
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Bad(f'invalid_name reason="a {what} is UTF-8"', ErrorCode.INVALID_NAME) from None


def shown(value: bytes) -> str:
    """The beginning of a peer's text, as it may stand in a refusal."""
    return printable(value[:64].decode(errors="replace"))


def value_of(command: Command, name: str) -> bytes:
    """An argument that has to be there."""
    value = command.values.get(name, b"")
    if not value:
        if not command.values and not command.rest:
            raise Bad("")
        raise Bad(f"missing_{name} command={command.keyword}")
    return value


def text_of(command: Command, name: str) -> str:
    """The text of an argument that has to be there."""
    value = command.values.get(name)
    return decoded(value or value_of(command, name), name)


def number_in(value: bytes, bounds: tuple[int, int], wording: str) -> int:
    """The number that a value is, or these words of refusal.

    Args:
        bounds: The least and the largest that it may be.
    """
    if (value.isdigit() and len(value) <= DIGITS_MAX) or _NUMBER.fullmatch(value) is not None:
        number = int(value)
        if bounds[0] <= number <= bounds[1]:
            return number
    raise Bad(wording)


def flag(values: dict[str, bytes], name: str) -> bool:
    """As `setting.flag_of`, refused in this dialect's words."""
    try:
        return flag_of(values, name)
    except BadSetting as bad:
        raise Bad(str(bad)) from None


def settings(values: dict[str, bytes]) -> calls.TopicConfig:
    """As `setting.config_of`, refused in this dialect's words."""
    try:
        return config_of(values)
    except BadSetting as bad:
        raise Bad(str(bad)) from None


def topic_of(command: Command, tag: Tag, missing: str = "") -> tuple[str, str]:
    """Namespace and topic that a command names."""
    if missing and command.values and not command.values.get("topic"):
        raise Bad(missing)
    tag.topic = text_of(command, "topic")
    return split_flat(tag.topic)


def place_of(command: Command, tag: Tag, syntax: str) -> tuple[str, str, int]:
    """Namespace, topic and partition of a reader."""
    values = command.values
    partition = values.get("partition")
    if not (partition and values.get("topic")):
        raise Bad(syntax)
    if command.positional and (command.rest or not values.get("offset")):
        raise Bad(syntax)
    tag.topic = text_of(command, "topic")
    tag.partition = partition_of(partition, syntax)
    return *split_flat(tag.topic), tag.partition


def partition_of(value: bytes, wording: str = "invalid_partition") -> int:
    """The number of a partition; no topic has a negative one, which core would understand."""
    partition = number_in(value, INT32, wording)
    if partition < 0:
        raise Bad(f"partition_not_found partition={partition}", ErrorCode.UNKNOWN_PARTITION)
    return partition


def start_of(command: Command, missing: str) -> tuple[calls.Whence, int, str]:
    """Where a reader begins: the offset it names, else what its group committed, else
    `autoOffsetReset`, else the first record.

    Args:
        missing: Refuse with these words where it names none of them; empty begins at the first.
    """
    values = command.values
    group = decoded(values.get("group", b""), "group")
    if "offset" in values:
        bounds = (0, INT64[1])
        return _OFFSET, number_in(values["offset"], bounds, "invalid_offset"), group
    reset = values.get("autoOffsetReset")
    if reset not in (None, b"earliest", b"latest"):
        raise Bad(f"invalid_auto_offset_reset value={shown(reset or b'')}")
    if missing and not group and reset is None:
        raise Bad(missing)
    if not group:
        return (calls.Whence.LATEST if reset == b"latest" else calls.Whence.EARLIEST), 0, group
    if reset == b"latest":
        return calls.Whence.COMMITTED_OR_LATEST, 0, group
    return calls.Whence.COMMITTED, 0, group


def records_max(values: dict[str, bytes]) -> int:
    """The most messages that a reader asks for at a time, of those that it may."""
    if "batch" not in values:
        return RECORDS_MAX
    return min(number_in(values["batch"], (1, INT32[1]), "invalid_batch"), RECORDS_MAX)


def member_place(command: Command, tag: Tag) -> tuple[str, str]:
    """Namespace and topic of a group command; group and member go into the tag."""
    place = topic_of(command, tag)
    tag.group = text_of(command, "group")
    tag.member = text_of(command, "member")
    return place


def generation_of(command: Command) -> int | None:
    """The generation that a member names, if it does."""
    value = command.values.get("generation")
    return None if value is None else number_in(value, INT64, "invalid_generation")
