"""What a Cursus server says, in core's vocabulary."""

from __future__ import annotations

import re
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.acknowledged import acknowledged
from dragoman.codecs.cursus.columns import headers_of, to_batch
from dragoman.codecs.cursus.fault import refused
from dragoman.codecs.cursus.hear_event import hear_event
from dragoman.codecs.cursus.hear_group import hear_group
from dragoman.codecs.cursus.hear_legacy import hear_legacy
from dragoman.codecs.cursus.hear_topic import described, told_topic
from dragoman.codecs.kernels import cursus_l3
from dragoman.codecs.malformed import Malformed
from dragoman.core import calls
from dragoman.core.event import EventRequest
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.core.calls import BatchSlice, Reply, Request
    from dragoman.core.error import Failure

_OK = re.compile(r"OK(?: (.*))?", re.DOTALL)
_JOINED = re.compile(r"OK generation=(\d{1,19}) member=(\S+) assignments=\[?([\d ,]*)\]?")
_SYNCED = re.compile(r"OK assignments=\[?([\d ,]*)\]?")


class Batch(NamedTuple):
    """A batch frame as a client sees it."""

    topic: str
    partition: int
    slices: list[BatchSlice]


def batch_of(body: bytes) -> Batch:
    """Reads a batch frame in layout L3.

    Raises:
        ProtocolError: It is none.
    """
    try:
        head, columns = cursus_l3.decode(body, 0, len(body))
        topic = head.topic.decode()
    except (Malformed, UnicodeDecodeError) as fault:
        raise ProtocolError(f"not a batch: {fault}") from None
    if not columns.count:
        return Batch(topic, head.partition, [])
    batch = to_batch(columns, headers_of(columns))
    offsets = columns.offset
    if isinstance(offsets, range):
        batch.base_offset = offsets.start
    elif columns.count == 1 and isinstance(offsets, int):
        batch.base_offset = offsets
    else:
        if isinstance(offsets, int):
            raise ProtocolError("several messages have one offset")
        first = batch.base_offset = offsets[0]
        deltas = [offset - first for offset in offsets]
        if any(later <= delta for delta, later in pairwise(deltas)):
            raise ProtocolError("the offsets of a batch do not rise")
        if deltas[-1] >= 1 << 32:
            raise ProtocolError("the offsets of a batch lie too far apart")
        batch.offset_deltas = array("I", deltas)
        batch.last_offset_delta = deltas[-1]
    return Batch(topic, head.partition, [calls.BatchSlice(batch, 0, columns.count)])


def fetched(request: calls.Fetch, batch: Batch) -> calls.Fetched:
    """The answer of a CONSUME."""
    namespace, topic = split_flat(batch.topic)
    start = request.offset if request.whence is calls.Whence.OFFSET else 0
    next_offset = start
    if batch.slices:
        stored = batch.slices[0].batch
        start = max(start, stored.base_offset)
        next_offset = stored.next_offset
    return calls.Fetched(namespace, topic, batch.partition, batch.slices, start, next_offset, 0, 0)


def followed(request: calls.Follow, batch: Batch) -> calls.Followed:
    """A push of a STREAM."""
    namespace, topic = split_flat(batch.topic)
    stored = batch.slices[0].batch
    return calls.Followed(
        namespace,
        topic,
        batch.partition,
        batch.slices,
        stored.base_offset,
        stored.next_offset,
        0,
        0,
    )


def understand(request: Request, body: bytes) -> Reply | Failure:
    """The reply to a request.

    Raises:
        ProtocolError: The body is not one.
    """
    if isinstance(request, calls.Produce):
        return refused(body) or acknowledged(request, body)
    try:
        text = body.decode(errors="replace")
        reply = hear_legacy(request, text) or refused(body)
        if reply is not None:
            return reply
        if isinstance(request, EventRequest):
            return hear_event(request, text)
        if isinstance(request, calls.DescribeGroup | calls.ListGroups):
            return hear_group(request, text)
        found = _OK.fullmatch(text)
        if found is None:
            raise ProtocolError(f"not a reply to {type(request).__name__}: {text[:64]!r}")
        fields = dict([item.split("=", 1) for item in (found[1] or "").split(" ") if "=" in item])
        return _understand(request, text, fields)
    except (KeyError, ValueError, TypeError) as fault:
        if isinstance(fault, ProtocolError):
            raise
        raise ProtocolError(f"not a reply to {type(request).__name__}: {fault!r}") from None


def _understand(request: Request, text: str, fields: dict[str, str]) -> Reply:
    match request:
        case calls.CreateTopic():
            return calls.TopicCreated(told_topic(fields))
        case calls.DescribeTopic():
            return calls.TopicDescribed(told_topic(fields))
        case calls.DeleteTopic():
            return calls.TopicDeleted(*split_flat(fields["topic"]))
        case calls.DeleteRecords():
            return calls.RecordsDeleted(int(fields["partition"]), int(fields["log_start"]))
        case calls.ListTopics():
            names = [name for name in fields["topics"].split(",") if name]
            return calls.TopicsListed([described(name, 0) for name in names])
        case calls.CommitOffset(offsets=offsets):
            return calls.OffsetCommitted(int(fields.get("batched", len(offsets))))
        case calls.FetchOffset(partition=partition):
            return calls.OffsetFetched(partition, int(fields["offset"]), 0)
        case calls.JoinGroup() if (joined := _JOINED.fullmatch(text)) is not None:
            partitions = tuple(map(int, joined[3].replace(",", " ").split()))
            return calls.GroupJoined(joined[2], int(joined[1]), partitions)
        case calls.SyncGroup(member=member) if (synced := _SYNCED.fullmatch(text)) is not None:
            partitions = tuple(map(int, synced[1].replace(",", " ").split()))
            return calls.GroupJoined(member, request.generation or 0, partitions)
        case calls.Heartbeat():
            return calls.HeartbeatAccepted(fields["member"], int(fields["generation"]))
        case calls.LeaveGroup():
            return calls.GroupLeft(fields["member"], fields["left"] == "true")
    raise ProtocolError(f"not a reply to {type(request).__name__}: {text[:64]!r}")
