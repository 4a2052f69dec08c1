"""The JSON form as a client speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.rustlog import sayable
from dragoman.core.calls import (
    CommitOffset,
    CreateTopic,
    Fetch,
    FetchOffset,
    ListTopics,
    OffsetCommitted,
    OffsetFetched,
    Ping,
    Ponged,
    Produce,
    Produced,
    TopicCreated,
    TopicsListed,
    Whence,
)
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.core.calls import Reply, Request


def say(request: Request) -> bytes:
    """The payload of a request.

    Raises:
        Unsayable: The JSON form has no words for it.
    """
    try:
        return orjson.dumps(_say(request))
    except orjson.JSONEncodeError as fault:
        raise Unsayable(str(fault)) from None


def _say(request: Request) -> object:
    match request:
        case Produce(namespace=namespace, topic=topic):
            partition, values = sayable.records_of(request)
            return {
                "Produce": {
                    "topic": sayable.topic_text(namespace, topic),
                    "partition": partition,
                    "records": [list(value) for value in values],
                }
            }
        case Fetch(partition=partition, offset=offset, bytes_max=bytes_max):
            topic_text, group = sayable.fetch_place(request)
            if request.whence is Whence.COMMITTED:
                raise Unsayable("a RustLog group reads from the larger of two offsets in JSON")
            return {
                "Fetch": {
                    "topic": topic_text,
                    "partition": partition,
                    "offset": offset,
                    "max_bytes": bytes_max,
                    "group_id": group or None,
                }
            }
        case CommitOffset(group=group):
            topic_text, partition, offset = sayable.commit_place(request)
            return {
                "OffsetCommit": {
                    "topic": topic_text,
                    "partition": partition,
                    "group_id": group,
                    "offset": offset,
                }
            }
        case FetchOffset(group=group, partition=partition):
            return {
                "OffsetFetch": {
                    "topic": sayable.offset_place(request),
                    "partition": partition,
                    "group_id": group,
                }
            }
        case CreateTopic(partitions=partitions):
            name = sayable.created_topic(request)
            return {"CreateTopic": {"topic": name, "partition_count": partitions}}
        case ListTopics():
            return "ListTopics"
        case Ping():
            return "Ping"
        case _:
            raise Unsayable(f"RustLog JSON has no words for {type(request).__name__}")


def understand(request: Request, payload: bytes) -> Reply | Failure:
    """The reply to a request.

    Raises:
        ProtocolError: The payload is not one.
    """
    try:
        whole = orjson.loads(payload)
        if whole == "Pong" and type(request) is Ping:
            return Ponged()
        if "Error" in whole:
            return sayable.failure(whole["Error"]["message"])
        return _understand(request, whole)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, IndexError) as fault:
        raise ProtocolError(f"not a reply to {type(request).__name__}: {fault}") from None


def _understand(request: Request, whole: dict[str, Any]) -> Reply | Failure:
    match request:
        case Produce(route=route):
            assert isinstance(route, int)
            offsets = whole["Produce"]["offsets"]
            return Produced(route, offsets[0] if offsets else 0, len(offsets))
        case Fetch():
            body = whole["Fetch"]
            records = body["records"]
            offsets = [record["offset"] for record in records]
            payloads = [bytes(record["payload"]) for record in records]
            return sayable.fetched(request, offsets, payloads, body["next_offset"])
        case CommitOffset():
            if whole["OffsetCommit"]["success"]:
                return OffsetCommitted(1)
            return Failure(ErrorCode.UNKNOWN_TOPIC, "the commit was refused")
        case FetchOffset(partition=partition):
            return OffsetFetched(partition, whole["OffsetFetch"]["offset"], 0)
        case CreateTopic(partitions=partitions):
            if whole["CreateTopic"]["success"] is not True:
                raise ProtocolError("a create was answered without success and without error")
            name = sayable.created_topic(request)
            return TopicCreated(sayable.described(name, [(i, 0) for i in range(partitions)]))
        case ListTopics(namespace=namespace):
            topics = [
                sayable.described(item["name"], [(i, 0) for i in range(item["partition_count"])])
                for item in whole["ListTopics"]["topics"]
            ]
            return TopicsListed(
                [topic for topic in topics if namespace is None or topic.namespace == namespace]
            )
        case _:
            raise ProtocolError(f"no reply to {type(request).__name__} is known")
