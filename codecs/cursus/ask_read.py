"""Commands that read: CONSUME and STREAM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Asked
from dragoman.codecs.cursus.argument import (
    INT32,
    number_in,
    place_of,
    records_max,
    start_of,
)
from dragoman.codecs.cursus.columns import MESSAGE_BYTES
from dragoman.codecs.cursus.rejoin import fence
from dragoman.codecs.cursus.translate import Style
from dragoman.core import calls
from dragoman.core.pattern import is_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command
    from dragoman.codecs.cursus.translate import Tag

CONSUME_BYTES: Final = 8 * 1024 * 1024
"""About the bytes of one CONSUME's batch, so that one reader does not hold up the others."""
PUSH_BYTES: Final = 1024 * 1024
"""About the bytes of one push, of a STREAM as of a SUBSCRIBE."""
KEEP_ALIVE_US: Final = 2_400_000
"""A stream that is silent for so long is due a keep-alive. Streams are looked at once a second, so
that silence lasts 3.5 s at most; clients give up after 5 s."""
STREAM_COMMIT_US: Final = 5_000_000


def _consume(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, partition = place_of(command, tag, "invalid_consume_syntax")
    values = command.values
    whence, offset, group = start_of(command, "invalid_consume_syntax")
    wait_us = 0 if command.positional else context.empty_wait_us
    if "wait_ms" in values:
        wait_us = 1000 * number_in(values["wait_ms"], (0, INT32[1]), "invalid_wait_ms")
    if is_pattern(topic) and not command.positional:
        tag.style = context.layout
        tag.is_pattern = True
        matching = calls.FetchMatching(
            topic,
            partition,
            offset,
            namespace,
            whence,
            records_max=records_max(values),
            bytes_max=min(CONSUME_BYTES, context.limits.reply_bytes_max),
            record_overhead=MESSAGE_BYTES,
            count_all=True,
            group=group,
        )
        return Asked(tag, matching)
    request = calls.Fetch(
        topic,
        partition,
        offset,
        namespace,
        whence,
        records_max=records_max(values),
        bytes_max=min(CONSUME_BYTES, context.limits.reply_bytes_max),
        record_overhead=MESSAGE_BYTES,
        count_all=True,
        wait_us=wait_us,
        group=group,
    )
    tag.style = context.layout
    if command.positional:
        tag.style = context.style
        tag.closes = tag.style is Style.FRAMES
        request.bytes_max = context.limits.reply_bytes_max
    fence(command, tag, request)
    return Asked(tag, request)


def _stream(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic, partition = place_of(command, tag, "invalid_stream_syntax")
    whence, offset, group = start_of(command, "")
    tag.style = Style.DOCUMENT if command.positional else context.layout
    request = calls.Follow(
        topic,
        partition,
        offset,
        namespace,
        whence,
        min(records_max(command.values), context.push_records),
        min(PUSH_BYTES, context.limits.reply_bytes_max),
        group,
        commit_us=STREAM_COMMIT_US if group else 0,
        idle_us=KEEP_ALIVE_US,
        replaces=True,
    )
    fence(command, tag, request)
    return Asked(tag, request)


READING: Final[Mapping[str, Handler]] = {
    "CONSUME": _consume,
    "STREAM": _stream,
}
"""Which function asks what each of these commands means."""
