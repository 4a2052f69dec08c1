"""Commands of consumer groups and their committed offsets.

In the document's form a member may be named as it joined, by its consumer's name: nothing there
says how a client learns the id that it was given.
"""

from __future__ import annotations

import re
from hashlib import blake2b
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
from dragoman.codecs.cursus.ask_read import PUSH_BYTES
from dragoman.codecs.cursus.rejoin import is_told_by_reads, member_of
from dragoman.codecs.cursus.translate import Style, Tag
from dragoman.core import calls
from dragoman.core.name import DEFAULT_NAMESPACE, split_flat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command

CONSUMERS_MAX: Final = 1024
"""So many consumers' names are remembered of a connection; the oldest are forgotten."""
_PAIR = re.compile(rb"P?(\d{1,10}):(-?\d{1,20})")
_SUFFIXED = re.compile(r".*-\d{4}")


def _join(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    is_new = not _SUFFIXED.fullmatch(tag.member)
    if is_new:
        name = tag.member
        known = member_of(name)
        if command.positional:
            tag.consumer = name
            known = context.consumers.get((tag.topic, tag.group, name))
        if known is None:
            context.joined += 1
            digits = crc32(context.token + context.joined.to_bytes(4, "big")) % 10_000
            tag.member = f"{name}-{digits:04d}"
        else:
            tag.member = known
            is_new = False
    request = calls.JoinGroup(topic, tag.group, tag.member, namespace, is_new=is_new)
    return Asked(tag, request)


def joined(context: Context, tag: Tag, member: str) -> None:
    """Remembers as which member a consumer joined, of the newest of this connection."""
    consumers = context.consumers
    consumers[tag.topic, tag.group, tag.consumer] = member
    if len(consumers) > CONSUMERS_MAX:
        del consumers[next(iter(consumers))]


def _place_of_member(context: Context, command: Command, tag: Tag) -> tuple[str, str]:
    """Namespace and topic; a consumer's name stands for the member as which it joined."""
    place = member_place(command, tag)
    if command.positional:
        tag.member = context.consumers.get((tag.topic, tag.group, tag.member), tag.member)
    return place


def _sync(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = _place_of_member(context, command, tag)
    generation = generation_of(command) if command.positional else None
    return Asked(tag, calls.SyncGroup(topic, tag.group, tag.member, generation, namespace))


def _heartbeat(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = _place_of_member(context, command, tag)
    generation = generation_of(command)
    if not command.positional and is_told_by_reads(tag.member):
        generation = None
    return Asked(tag, calls.Heartbeat(topic, tag.group, tag.member, generation, namespace))


def _leave(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = member_place(command, tag)
    request = calls.LeaveGroup(
        topic, tag.group, tag.member, namespace=namespace, is_stem=command.positional
    )
    return Asked(tag, request)


def _subscribe(context: Context, command: Command, tag: Tag) -> Heard | list[Heard]:
    namespace, topic = topic_of(command, tag)
    tag.group = text_of(command, "group")
    if not (command.positional and context.pushes):
        return Asked(tag, calls.CreateGroup(topic, tag.group, namespace=namespace))
    # One connection is one member of a group, however often it subscribes.
    tag.member = f"subscriber-{blake2b(context.token, digest_size=8).hexdigest()}"
    join = calls.JoinGroup(topic, tag.group, tag.member, namespace, bound=True)
    pushes = Tag(tag.command, tag.topic, group=tag.group, member=tag.member, style=Style.FRAMES)
    pushes.after = tag
    follow = calls.Follow(
        topic,
        calls.ASSIGNED,
        0,
        namespace,
        calls.Whence.LATEST,
        context.push_records,
        min(PUSH_BYTES, context.limits.reply_bytes_max),
        tag.group,
        replaces=True,
    )
    return [Asked(tag, join), Asked(pushes, follow)]


def _register(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    tag.group = text_of(command, "group")
    return Asked(tag, calls.CreateGroup(topic, tag.group, namespace=namespace))


def _status(context: Context, command: Command, tag: Tag) -> Heard:
    tag.group = text_of(command, "group")
    namespace, topic = DEFAULT_NAMESPACE, ""
    if command.values.get("topic"):
        tag.topic = text_of(command, "topic")
        namespace, topic = split_flat(tag.topic)
    return Asked(tag, calls.DescribeGroup(topic, tag.group, namespace))


def _list_groups(context: Context, command: Command, tag: Tag) -> Heard:
    if "topic" not in command.values:
        return Asked(tag, calls.ListGroups(names_only=True))
    namespace, topic = topic_of(command, tag)
    return Asked(tag, calls.ListGroups(topic, namespace, names_only=True))


def _commit(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    tag.group = text_of(command, "group")
    tag.partition = partition_of(value_of(command, "partition"))
    offset = number_in(value_of(command, "offset"), (0, INT64[1]), "invalid_offset")
    return _commit_of(command, tag, namespace, topic, ((tag.partition, offset),))


def _batch_commit(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = _place_of_member(context, command, tag)
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
    if "member" in command.values and not tag.member:
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
    "SUBSCRIBE": _subscribe,
    "REGISTER_GROUP": _register,
    "GROUP_STATUS": _status,
    "LIST_GROUPS": _list_groups,
}
"""Which function asks what each of these commands means."""
