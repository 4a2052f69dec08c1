"""Commands of consumer groups and their committed offsets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zlib import crc32

from dragoman.codecs.base import Asked
from dragoman.codecs.cursus.argument import (
    INT32,
    INT64,
    Bad,
    generation_of,
    member_place,
    number_in,
    partition_of,
    text_of,
    topic_of,
    value_of,
)
from dragoman.core import calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command
    from dragoman.codecs.cursus.translate import Tag

_PAIR = re.compile(rb"P?(\d{1,10}):(-?\d{1,20})")
_SUFFIXED = re.compile(r".*-\d{4}")


def _join(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    is_new = not _SUFFIXED.fullmatch(tag.member)
    if is_new:
        context.joined += 1
        digits = crc32(context.token + context.joined.to_bytes(4, "big")) % 10_000
        tag.member = f"{tag.member}-{digits:04d}"
    request = calls.JoinGroup(topic, tag.group, tag.member, namespace, is_new=is_new)
    return Asked(tag, request)


def _sync(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    return Asked(tag, calls.SyncGroup(topic, tag.group, tag.member, namespace=namespace))


def _heartbeat(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    generation = generation_of(command)
    return Asked(tag, calls.Heartbeat(topic, tag.group, tag.member, generation, namespace))


def _leave(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    return Asked(tag, calls.LeaveGroup(topic, tag.group, tag.member, namespace=namespace))


def _commit(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    tag.group = text_of(command, "group")
    tag.partition = partition_of(value_of(command, "partition"))
    offset = number_in(value_of(command, "offset"), (0, INT64[1]), "invalid_offset")
    return _commit_of(command, tag, namespace, topic, ((tag.partition, offset),))


def _batch_commit(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    pairs = []
    for item in b",".join(command.rest).split(b","):
        if not item:
            continue
        found = _PAIR.fullmatch(item)
        if found is None:
            raise Bad("no_valid_offsets")
        offset = number_in(found[2], (0, INT64[1]), "invalid_offset")
        pairs.append((number_in(found[1], INT32, "invalid_partition"), offset))
    if not pairs:
        raise Bad("no_valid_offsets")
    return _commit_of(command, tag, namespace, topic, tuple(pairs))


def _commit_of(
    command: Command,
    tag: Tag,
    namespace: str,
    topic: str,
    offsets: tuple[tuple[int, int], ...],
) -> Heard:
    if "member" in command.values:
        tag.member = text_of(command, "member")
    request = calls.CommitOffset(
        topic,
        tag.group,
        offsets,
        namespace,
        member=tag.member,
        generation=generation_of(command) if tag.member else None,
        monotonic=True,
    )
    return Asked(tag, request)


def _fetch_offset(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    tag.group = text_of(command, "group")
    tag.partition = partition_of(value_of(command, "partition"))
    return Asked(tag, calls.FetchOffset(topic, tag.group, tag.partition, namespace))


GROUPS: Final[Mapping[str, Handler]] = {
    "JOIN_GROUP": _join,
    "SYNC_GROUP": _sync,
    "HEARTBEAT": _heartbeat,
    "LEAVE_GROUP": _leave,
    "COMMIT": _commit,
    "COMMIT_OFFSET": _commit,
    "BATCH_COMMIT": _batch_commit,
    "FETCH_OFFSET": _fetch_offset,
}
"""Which function asks what each of these commands means."""
