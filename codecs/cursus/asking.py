"""What text commands ask for, in core's vocabulary; each with the tag that shapes its answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zlib import crc32

from dragoman.codecs.base import Asked, HungUp, Refused
from dragoman.codecs.cursus.columns import MESSAGE_BYTES
from dragoman.codecs.cursus.command import POSITIONS, UNSERVED, Command
from dragoman.codecs.cursus.publish import ACKS, one_record
from dragoman.codecs.cursus.setting import BadSetting, config_of, flag_of
from dragoman.codecs.cursus.translate import AckTag, Style, Tag, printable
from dragoman.core import calls
from dragoman.core.dedupe import HASHED_HERE_MAX, digest_of
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Facts, Heard

PARTITIONS_DEFAULT: Final = 4
RECORDS_MAX: Final = 8192
"""The most messages of one CONSUME, and of one push of a STREAM."""
CONSUME_BYTES: Final = 8 * 1024 * 1024
"""About the bytes of one CONSUME's batch, so that one reader does not hold up the others."""
PUSH_BYTES: Final = 1024 * 1024
KEEP_ALIVE_US: Final = 2_400_000
"""A stream that is silent for so long is due a keep-alive. Streams are looked at once a second, so
that silence lasts 3.5 s at most; clients give up after 5 s."""
STREAM_COMMIT_US: Final = 5_000_000
KEY_BYTES_MAX: Final = 4096
"""The longest key of a PUBLISH: it is hashed byte by byte."""

_INT32: Final = (-(1 << 31), (1 << 31) - 1)
_INT64: Final = (-(1 << 63), (1 << 63) - 1)
_NUMBER = re.compile(rb"[+-]?\d{1,20}")
_PAIR = re.compile(rb"P?(\d{1,10}):(-?\d{1,20})")
_SUFFIXED = re.compile(r".*-\d{4}")

COMMANDS = "OK commands=" + ",".join(POSITIONS)


class Bad(Exception):
    """A command that cannot be served as it is written; never leaves the dialect.

    Args:
        wording: The exact words of the refusal.
    """

    def __init__(self, wording: str, code: ErrorCode = ErrorCode.MALFORMED) -> None:
        super().__init__(wording)
        self.wording = wording
        self.code = code


class Asking:
    """Turns commands of one connection into requests."""

    def __init__(self, facts: Facts) -> None:
        self._limits = facts.limits
        self._address = facts.address
        self._create = int(facts.options["auto_create"])
        self._style = Style.FRAMES if facts.options["consume_style"] == "frames" else Style.DOCUMENT
        self._token = facts.token or f"{facts.peer}{facts.local}".encode()
        self._joined = 0

    def ask(self, command: Command, text: bytes) -> list[Heard]:
        """What a command asks for.

        Args:
            text: The whole command, for a refusal that quotes it.
        """
        tag = Tag(command.keyword, positional=command.positional)
        try:
            if command.keyword in UNSERVED:
                raise Bad(f"unsupported command={command.keyword}", ErrorCode.UNSUPPORTED)
            if command.keyword == "EXIT":
                tag.closes = True
                return [Asked(tag, calls.Answer("OK")), HungUp("EXIT")]
            return [_SERVED[command.keyword](self, command, tag)]
        except Bad as bad:
            code = bad.code
            wording = bad.wording
            if not wording:
                quoted = printable(text[:256].decode(errors="replace").strip())
                wording = f"unknown_command command={quoted}"
                code = ErrorCode.UNKNOWN_COMMAND
            tag.wording = wording
            fatal = tag.positional and command.keyword == "CONSUME"
            return [Refused(tag, Failure(code, wording.partition(" ")[0]), fatal)]

    def direct(self, topic: bytes, payload: bytes) -> Heard:
        """A message in an envelope that is not a command: it is published to the topic."""
        tag = Tag("PUBLISH", positional=True)
        try:
            tag.topic = _decoded(topic, "topic")
        except Bad as bad:
            tag.wording = bad.wording
            return Refused(tag, Failure(bad.code, "invalid_name"))
        namespace, name = split_flat(tag.topic)
        request = calls.Produce(
            name, one_record(payload), namespace=namespace, create_partitions=self._create
        )
        return Asked(tag, _once(request, payload))

    # ------------------------------------------------------------ topics

    def _create_topic(self, command: Command, tag: Tag) -> Heard:
        values = command.values
        expected = 'missing_topic expected="CREATE topic=<name> [partitions=<N>]"'
        namespace, topic = _topic(command, tag, expected)
        count = PARTITIONS_DEFAULT
        if "partitions" in values:
            wording = 'invalid_partitions reason="must be a positive integer"'
            count = _number(values["partitions"], (1, _INT32[1]), wording)
        if _flag(values, "event_sourcing"):
            raise Bad("unsupported feature=event_sourcing", ErrorCode.UNSUPPORTED)
        config = _settings(values)
        request = calls.CreateTopic(
            topic, count, namespace, config=config, if_exists=calls.IfExists.GROW
        )
        return Asked(tag, request)

    def _delete_topic(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _topic(command, tag)
        return Asked(tag, calls.DeleteTopic(topic, namespace))

    def _delete_records(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _topic(command, tag)
        tag.partition = _partition(_value(command, "partition"))
        before = _number(_value(command, "before"), (-1, _INT64[1]), "invalid_before")
        return Asked(tag, calls.DeleteRecords(topic, tag.partition, before, namespace))

    def _list(self, command: Command, tag: Tag) -> Heard:
        if command.values:
            namespace, topic = _topic(command, tag)
            return Asked(tag, calls.DescribeTopic(topic, namespace))
        if command.rest:
            raise Bad("")
        return Asked(tag, calls.ListTopics())

    def _metadata(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _topic(command, tag)
        return Asked(tag, calls.DescribeTopic(topic, namespace))

    def _find_coordinator(self, command: Command, tag: Tag) -> Heard:
        _text(command, "group")
        host, port = self._address
        return Asked(tag, calls.Answer(f"OK coordinator_id=standalone host={host} port={port}"))

    def _help(self, command: Command, tag: Tag) -> Heard:
        return Asked(tag, calls.Answer(COMMANDS))

    # ------------------------------------------------------------ writing

    def _publish(self, command: Command, tag: Tag) -> Heard:
        values = command.values
        namespace, topic = _topic(command, tag)
        if (message := values.get("message")) is None:
            raise Bad("missing_message command=PUBLISH")
        if command.positional:
            record = one_record(message)
            create = self._create
            request = calls.Produce(topic, record, namespace=namespace, create_partitions=create)
            return Asked(tag, _once(request, message))
        if not (producer := values.get("producerId", b"")):
            raise Bad("missing_producer_id command=PUBLISH")
        acks = ACKS.get(values.get("acks", b""))
        if acks is None:
            raise Bad(f"invalid_acks value={_shown(values['acks'])}")
        sequence = epoch = 0
        if "seqNum" in values:
            sequence = _number(values["seqNum"], (0, (1 << 64) - 1), "invalid_seq_num")
        if "epoch" in values:
            epoch = _number(values["epoch"], _INT64, "invalid_epoch")
        key = values.get("key", b"")
        if len(key) > KEY_BYTES_MAX:
            raise Bad(f"invalid_key bytes={len(key)} limit={KEY_BYTES_MAX}")
        route: calls.Route = calls.ROUND_ROBIN
        if "partition" in values:
            route = _number(values["partition"], _INT32, "invalid_partition")
        elif key:
            route = calls.ByHash(fnv1a_64(key))
        batch = one_record(message, key, producer=producer, epoch=epoch, sequence=sequence)
        partition = route if isinstance(route, int) else 0
        ack = AckTag(tag.topic, partition, producer, epoch, sequence, sequence, is_object=False)
        ack.droppable = acks is calls.Acks.NONE
        idempotent = _flag(values, "isIdempotent")
        request = calls.Produce(topic, batch, route, namespace, acks, self._create, idempotent)
        return Asked(ack, request)

    # ------------------------------------------------------------ reading

    def _consume(self, command: Command, tag: Tag) -> Heard:
        namespace, topic, partition = _place(command, tag, "invalid_consume_syntax")
        values = command.values
        whence, offset, group = _start(command, "invalid_consume_syntax")
        request = calls.Fetch(
            topic,
            partition,
            offset,
            namespace,
            whence,
            records_max=_records_max(values),
            bytes_max=min(CONSUME_BYTES, self._limits.reply_bytes_max),
            record_overhead=MESSAGE_BYTES,
            count_all=True,
            group=group,
        )
        if "wait_ms" in values:
            wait_ms = _number(values["wait_ms"], (0, _INT32[1]), "invalid_wait_ms")
            request.wait_us = wait_ms * 1000
        if command.positional:
            tag.style = self._style
            tag.closes = tag.style is Style.FRAMES
            request.bytes_max = self._limits.reply_bytes_max
        return Asked(tag, request)

    def _stream(self, command: Command, tag: Tag) -> Heard:
        namespace, topic, partition = _place(command, tag, "invalid_stream_syntax")
        whence, offset, group = _start(command, "")
        if command.positional:
            tag.style = Style.DOCUMENT
        request = calls.Follow(
            topic,
            partition,
            offset,
            namespace,
            whence,
            _records_max(command.values),
            min(PUSH_BYTES, self._limits.reply_bytes_max),
            group,
            commit_us=STREAM_COMMIT_US if group else 0,
            idle_us=KEEP_ALIVE_US,
            replaces=True,
        )
        return Asked(tag, request)

    # ------------------------------------------------------------ groups

    def _join(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _member_place(command, tag)
        is_new = not _SUFFIXED.fullmatch(tag.member)
        if is_new:
            self._joined += 1
            digits = crc32(self._token + self._joined.to_bytes(4, "big")) % 10_000
            tag.member = f"{tag.member}-{digits:04d}"
        request = calls.JoinGroup(topic, tag.group, tag.member, namespace, is_new=is_new)
        return Asked(tag, request)

    def _sync(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _member_place(command, tag)
        return Asked(tag, calls.SyncGroup(topic, tag.group, tag.member, namespace=namespace))

    def _heartbeat(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _member_place(command, tag)
        generation = _generation(command)
        return Asked(tag, calls.Heartbeat(topic, tag.group, tag.member, generation, namespace))

    def _leave(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _member_place(command, tag)
        return Asked(tag, calls.LeaveGroup(topic, tag.group, tag.member, namespace=namespace))

    def _commit(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _topic(command, tag)
        tag.group = _text(command, "group")
        tag.partition = _partition(_value(command, "partition"))
        offset = _number(_value(command, "offset"), (0, _INT64[1]), "invalid_offset")
        return self._commit_of(command, tag, namespace, topic, ((tag.partition, offset),))

    def _batch_commit(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _member_place(command, tag)
        pairs = []
        for item in b",".join(command.rest).split(b","):
            if not item:
                continue
            found = _PAIR.fullmatch(item)
            if found is None:
                raise Bad("no_valid_offsets")
            offset = _number(found[2], (0, _INT64[1]), "invalid_offset")
            pairs.append((_number(found[1], _INT32, "invalid_partition"), offset))
        if not pairs:
            raise Bad("no_valid_offsets")
        return self._commit_of(command, tag, namespace, topic, tuple(pairs))

    def _commit_of(
        self,
        command: Command,
        tag: Tag,
        namespace: str,
        topic: str,
        offsets: tuple[tuple[int, int], ...],
    ) -> Heard:
        if "member" in command.values:
            tag.member = _text(command, "member")
        request = calls.CommitOffset(
            topic,
            tag.group,
            offsets,
            namespace,
            member=tag.member,
            generation=_generation(command) if tag.member else None,
            monotonic=True,
        )
        return Asked(tag, request)

    def _fetch_offset(self, command: Command, tag: Tag) -> Heard:
        namespace, topic = _topic(command, tag)
        tag.group = _text(command, "group")
        tag.partition = _partition(_value(command, "partition"))
        return Asked(tag, calls.FetchOffset(topic, tag.group, tag.partition, namespace))


_SERVED: dict[str, Callable[[Asking, Command, Tag], Heard]] = {
    "CREATE": Asking._create_topic,
    "DELETE": Asking._delete_topic,
    "LIST": Asking._list,
    "METADATA": Asking._metadata,
    "FIND_COORDINATOR": Asking._find_coordinator,
    "PUBLISH": Asking._publish,
    "CONSUME": Asking._consume,
    "STREAM": Asking._stream,
    "JOIN_GROUP": Asking._join,
    "SYNC_GROUP": Asking._sync,
    "HEARTBEAT": Asking._heartbeat,
    "LEAVE_GROUP": Asking._leave,
    "COMMIT": Asking._commit,
    "COMMIT_OFFSET": Asking._commit,
    "BATCH_COMMIT": Asking._batch_commit,
    "FETCH_OFFSET": Asking._fetch_offset,
    "DELETE_RECORDS": Asking._delete_records,
    "HELP": Asking._help,
}


# ---------------------------------------------------------------- arguments


def _decoded(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Bad(f'invalid_name reason="a {what} is UTF-8"', ErrorCode.INVALID_NAME) from None


def _shown(value: bytes) -> str:
    return printable(value[:64].decode(errors="replace"))


def _value(command: Command, name: str) -> bytes:
    """An argument that has to be there."""
    value = command.values.get(name, b"")
    if not value:
        if not command.values and not command.rest:
            raise Bad("")
        raise Bad(f"missing_{name} command={command.keyword}")
    return value


def _text(command: Command, name: str) -> str:
    return _decoded(_value(command, name), name)


def _number(value: bytes, bounds: tuple[int, int], wording: str) -> int:
    if _NUMBER.fullmatch(value) is None or not bounds[0] <= (number := int(value)) <= bounds[1]:
        raise Bad(wording)
    return number


def _flag(values: dict[str, bytes], name: str) -> bool:
    try:
        return flag_of(values, name)
    except BadSetting as bad:
        raise Bad(str(bad)) from None


def _settings(values: dict[str, bytes]) -> calls.TopicConfig:
    try:
        return config_of(values)
    except BadSetting as bad:
        raise Bad(str(bad)) from None


def _once(request: calls.Produce, payload: bytes) -> calls.Produce:
    """A publish of the document: the topic's window of payloads applies. What is long is read in a
    thread, and its digest made there."""
    request.dedupe = True
    if len(payload) > HASHED_HERE_MAX:
        request.digest = digest_of(payload)
    return request


def _topic(command: Command, tag: Tag, missing: str = "") -> tuple[str, str]:
    """Namespace and topic that a command names; extra positions are an unknown command."""
    if command.positional and command.rest and command.keyword != "BATCH_COMMIT":
        raise Bad("")
    if missing and command.values and not command.values.get("topic"):
        raise Bad(missing)
    tag.topic = _text(command, "topic")
    return split_flat(tag.topic)


def _place(command: Command, tag: Tag, syntax: str) -> tuple[str, str, int]:
    """Namespace, topic and partition of a reader."""
    values = command.values
    wanted = ("topic", "partition", "offset") if command.positional else ("topic", "partition")
    if (command.positional and command.rest) or not all(values.get(name) for name in wanted):
        raise Bad(syntax)
    tag.topic = _text(command, "topic")
    tag.partition = _partition(values["partition"], syntax)
    return *split_flat(tag.topic), tag.partition


def _partition(value: bytes, wording: str = "invalid_partition") -> int:
    """The number of a partition; no topic has a negative one, which core would understand."""
    partition = _number(value, _INT32, wording)
    if partition < 0:
        raise Bad(f"partition_not_found partition={partition}", ErrorCode.UNKNOWN_PARTITION)
    return partition


def _start(command: Command, missing: str) -> tuple[calls.Whence, int, str]:
    """Where a reader begins: the offset it names, else what its group committed, else
    `autoOffsetReset`, else the first record.

    Args:
        missing: Refuse with these words where it names none of them; empty begins at the first.
    """
    values = command.values
    group = _decoded(values.get("group", b""), "group")
    if "offset" in values:
        bounds = (0, _INT64[1])
        return calls.Whence.OFFSET, _number(values["offset"], bounds, "invalid_offset"), group
    reset = values.get("autoOffsetReset")
    if reset not in (None, b"earliest", b"latest"):
        raise Bad(f"invalid_auto_offset_reset value={_shown(reset or b'')}")
    if missing and not group and reset is None:
        raise Bad(missing)
    if not group:
        return (calls.Whence.LATEST if reset == b"latest" else calls.Whence.EARLIEST), 0, group
    if reset == b"latest":
        return calls.Whence.COMMITTED_OR_LATEST, 0, group
    return calls.Whence.COMMITTED, 0, group


def _records_max(values: dict[str, bytes]) -> int:
    if "batch" not in values:
        return RECORDS_MAX
    return min(_number(values["batch"], (1, _INT32[1]), "invalid_batch"), RECORDS_MAX)


def _member_place(command: Command, tag: Tag) -> tuple[str, str]:
    """Namespace and topic of a group command; group and member go into the tag."""
    place = _topic(command, tag)
    tag.group = _text(command, "group")
    tag.member = _text(command, "member")
    return place


def _generation(command: Command) -> int | None:
    value = command.values.get("generation")
    return None if value is None else _number(value, _INT64, "invalid_generation")
