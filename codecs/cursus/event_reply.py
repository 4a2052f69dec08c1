"""What commands of the event store are answered.

Snapshots, and the head of a stream, are JSON. Payloads and keys are bytes and JSON is text: what is
no UTF-8 is shown as lone low surrogates, one `\\udcXX` a byte, from which it can be had back; the
event itself goes in a batch and stays as it is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import orjson

from dragoman.codecs.cursus import translate
from dragoman.codecs.cursus.reply import batch_frames, frame
from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.codecs.cursus.translate import Tag
    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.event import EventReply, Snapshot


def frames(
    tag: Tag, reply: EventReply, renderings: RenderingCache, *, legacy: bool
) -> Sequence[Buffer]:
    """The frames of an answer: one, or for a stream its head and a batch.

    Args:
        legacy: As brokers before July 2026 did.
    """
    body = _head(tag, reply, legacy=legacy).encode()
    if len(body) > FRAME_BYTES_MAX:
        facts: dict[str, int | str] = {"size": len(body), "limit": FRAME_BYTES_MAX}
        failure = Failure(ErrorCode.RECORD_TOO_LARGE, "the snapshot fits in no frame", facts)
        told = refusal(tag, failure, "", legacy=legacy)
        return [frame(translate.refusal(tag, failure) if told is None else told)]
    if not isinstance(reply, calls.EventsRead):
        return [frame(body)]
    tag.partition = reply.partition
    return [frame(body), *batch_frames(reply.slices, tag, renderings, only_first=True)]


def _head(tag: Tag, reply: EventReply, *, legacy: bool) -> str:
    match reply:
        case calls.EventAppended(version, offset, partition):
            return f"OK version={version} offset={offset} partition={partition}"
        case calls.VersionRead(version):
            return str(version) if legacy else f"OK version={version}"
        case calls.SnapshotSaved(version, partition):
            return f"OK version={version} partition={partition}"
        case calls.SnapshotRead(snapshot):
            if legacy:
                return "NULL" if snapshot is None else _snapshot(snapshot)
            return f"OK snapshot={'null' if snapshot is None else _snapshot(snapshot)}"
        case calls.EventsRead(partition, _, snapshot):
            status = "" if legacy else '"status":"OK",'
            kept = "" if snapshot is None else f',"snapshot":{_snapshot(snapshot)}'
            return (
                f'{{{status}"topic":{_text(tag.topic.encode())},"key":{_text(tag.key)},'
                f'"partition":{partition},"count":{reply.count}{kept}}}'
            )


def _snapshot(snapshot: Snapshot) -> str:
    return f'{{"version":{snapshot.version},"payload":{_text(snapshot.payload)}}}'


def _text(value: bytes) -> str:
    """Bytes as a JSON string."""
    try:
        return orjson.dumps(value.decode()).decode()
    except UnicodeDecodeError:
        return json.dumps(value.decode(errors="surrogateescape"))


def refusal(tag: Tag, failure: Failure, leader: str, *, legacy: bool) -> str | None:
    """The body that tells of a failure where a READ_STREAM does not; None for other commands, and
    for one that is none because it is positional."""
    if tag.command != "READ_STREAM" or tag.positional:
        return None
    told = translate.words(tag, failure, leader).replace('"', "'")
    return orjson.dumps({"error": told} if legacy else {"error": told, "status": "ERROR"}).decode()
