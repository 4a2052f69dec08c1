"""Core's requests as a Cursus client says them: the body of a frame, in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Unsayable
from dragoman.codecs.cursus.argument import RECORDS_MAX
from dragoman.codecs.cursus.columns import SHORT_MAX, render
from dragoman.codecs.cursus.say_event import say_event
from dragoman.codecs.cursus.sentence import command, topic_of
from dragoman.codecs.cursus.setting import words_of
from dragoman.codecs.cursus.wire import COUNT_MAX
from dragoman.codecs.kernels import cursus_l3
from dragoman.core import calls
from dragoman.core.event import EventRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Buffer
    from dragoman.core.batch import RecordBatch
    from dragoman.core.calls import Request

PRODUCER: Final = "dragoman"
"""The producer of a text publish whose record names none: the command must have one."""
MEMBER: Final = "dragoman"
"""The member of a CONSUME, which the published brokers want and do not look at."""

_ACKS: Final = {calls.Acks.NONE: b"0", calls.Acks.LEADER: b"1", calls.Acks.ALL: b"-1"}


def say(request: Request) -> Sequence[Buffer]:
    """The body of the frame that asks for something.

    Raises:
        Unsayable: This dialect has no words for it.
    """
    match request:
        case calls.Produce():
            return _produce(request)
        case calls.Fetch():
            return command("CONSUME", **_fetch(request))
        case calls.Follow():
            return command("STREAM", **_follow(request))
        case calls.CreateTopic():
            return command("CREATE", **_create(request))
        case calls.DeleteTopic(topic, namespace):
            return command("DELETE", topic=topic_of(namespace, topic))
        case calls.DeleteRecords(topic, partition, before, namespace):
            return command(
                "DELETE_RECORDS",
                topic=topic_of(namespace, topic),
                partition=partition,
                before=before,
            )
        case calls.DescribeTopic(topic, namespace):
            return command("METADATA", topic=topic_of(namespace, topic))
        case calls.ListTopics(namespace):
            if namespace is not None:
                raise Unsayable("Cursus lists the topics of all namespaces together")
            return command("LIST")
        case calls.CommitOffset():
            return _commit(request)
        case calls.FetchOffset():
            _check_kind(request.kind)
            return command(
                "FETCH_OFFSET",
                topic=topic_of(request.namespace, request.topic),
                partition=request.partition,
                group=request.group,
            )
        case calls.JoinGroup() | calls.SyncGroup() | calls.Heartbeat() | calls.LeaveGroup():
            return _group(request)
        case calls.DescribeGroup(topic, group, namespace):
            place = {"topic": topic_of(namespace, topic)} if topic else {}
            return command("GROUP_STATUS", group=group, **place)
        case calls.ListGroups(topic, namespace):
            place = {} if topic is None else {"topic": topic_of(namespace, topic)}
            return command("LIST_GROUPS", **place)
        case _ if isinstance(request, EventRequest):
            return say_event(request)
    raise Unsayable(f"Cursus has no words for {type(request).__name__}")


# ---------------------------------------------------------------- records


def _produce(request: calls.Produce) -> list[Buffer]:
    batch = request.batch
    if request.create_partitions:
        raise Unsayable("Cursus makes no topic by writing to it")
    if not batch.count:
        raise Unsayable("a Cursus batch has at least one message")
    if batch.count > COUNT_MAX:
        raise Unsayable(f"a Cursus batch has at most {COUNT_MAX} messages")
    if request.dedupe:
        raise Unsayable("in Cursus only the document's publishes have a window of payloads")
    topic = topic_of(request.namespace, request.topic)
    if not isinstance(request.route, int):
        return _publish(request, topic)
    rendering = render(batch, offsets=0)
    _check_sayable(batch, rendering.inexact)
    head = cursus_l3.encode_head(
        topic.encode(),
        request.route,
        _ACKS[request.acks],
        request.idempotent,
        batch.sequence_at(0) or 0,
        batch.sequence_at(batch.count - 1) or 0,
        batch.count,
    )
    return [head, rendering.data]


def _check_sayable(batch: RecordBatch, inexact: int) -> None:
    """Refuses what the wire would not bring to the other side as it is."""
    if inexact:
        raise Unsayable("a Cursus message has a value, no empty key, and no headers of its own")
    keys = batch.keys
    if keys is None:
        return
    for key in keys:
        if key is not None and not 0 < len(key) <= SHORT_MAX:
            raise Unsayable(f"a Cursus key has 1 to {SHORT_MAX} bytes")


def _publish(request: calls.Produce, topic: str) -> list[Buffer]:
    """One record as a text command: only there the server chooses the partition."""
    batch = request.batch
    if batch.count != 1:
        raise Unsayable("in Cursus the client chooses the partition of a batch")
    record = batch.record(0)
    if record.value is None or record.headers:
        raise Unsayable("a Cursus PUBLISH has a message and no headers")
    if not isinstance(request.route, calls.RoundRobin):
        raise Unsayable("a Cursus PUBLISH is routed by the server's own hash of its key")
    key = None if record.key is None else record.key.decode(errors="replace")
    if key is not None and key.encode() != record.key:
        raise Unsayable("the key of a Cursus PUBLISH is text")
    if record.epoch is not None or record.sequence is not None:
        raise Unsayable("a Cursus batch carries epochs and sequences")
    producer = (record.producer or PRODUCER.encode()).decode(errors="replace")
    return command(
        "PUBLISH",
        b" message=",
        record.value,
        topic=topic,
        acks=_ACKS[request.acks].decode(),
        producerId=producer,
        key=key,
    )


def _fetch(request: calls.Fetch) -> dict[str, object]:
    if request.create_partitions:
        raise Unsayable("Cursus makes no topic by reading from it")
    if request.auto_commit:
        raise Unsayable("a Cursus CONSUME commits nothing")
    if request.partition == calls.ASSIGNED:
        raise Unsayable("a Cursus CONSUME names its partition")
    arguments: dict[str, object] = {
        "topic": topic_of(request.namespace, request.topic),
        "partition": request.partition,
    }
    arguments |= _start(request)
    arguments["member"] = request.member or MEMBER
    arguments["generation"] = request.generation
    if 0 < request.records_max < RECORDS_MAX:
        arguments["batch"] = request.records_max
    if request.wait_us > 0:
        arguments["wait_ms"] = (request.wait_us + 999) // 1000
    return arguments


def _follow(request: calls.Follow) -> dict[str, object]:
    arguments: dict[str, object] = {
        "topic": topic_of(request.namespace, request.topic),
        "partition": request.partition,
    }
    arguments |= _start(request)
    if request.member:
        arguments["member"] = request.member
        arguments["generation"] = request.generation
    if 0 < request.records_max < RECORDS_MAX:
        arguments["batch"] = request.records_max
    return arguments


def _start(request: calls.Fetch | calls.Follow) -> dict[str, object]:
    group: dict[str, object] = {"group": request.group} if request.group else {}
    if request.group:
        _check_kind(request.kind)
    match request.whence:
        case calls.Whence.OFFSET:
            return {"offset": request.offset} | group
        case calls.Whence.EARLIEST if not request.group:
            return {"offset": 0}
        case calls.Whence.LATEST if not request.group:
            return {"autoOffsetReset": "latest"}
        case calls.Whence.COMMITTED if request.group and request.offset == 0:
            return {"autoOffsetReset": "earliest"} | group
        case calls.Whence.COMMITTED_OR_LATEST if request.group:
            return {"autoOffsetReset": "latest"} | group
    raise Unsayable(f"Cursus cannot begin reading at {request.whence.name}")


# ---------------------------------------------------------------- topics, groups, offsets


def _create(request: calls.CreateTopic) -> dict[str, object]:
    config = request.config
    if request.number:
        raise Unsayable("Cursus names topics; it has no numbers for them")
    if request.if_exists is not calls.IfExists.GROW:
        raise Unsayable("a Cursus CREATE of a topic that exists adds partitions")
    return {
        "topic": topic_of(request.namespace, request.topic),
        "partitions": request.partitions,
        **words_of(config),
    }


def _check_kind(kind: calls.OffsetKind) -> None:
    if kind is not calls.OffsetKind.GROUP:
        raise Unsayable("Cursus keeps offsets of groups alone")


def _commit(request: calls.CommitOffset) -> list[Buffer]:
    _check_kind(request.kind)
    if request.within_log:
        raise Unsayable("a Cursus commit is not held against the end of the log")
    topic = topic_of(request.namespace, request.topic)
    member = request.member or None
    if len(request.offsets) == 1:
        ((partition, offset),) = request.offsets
        return command(
            "COMMIT_OFFSET",
            topic=topic,
            partition=partition,
            group=request.group,
            offset=offset,
            generation=request.generation,
            member=member,
        )
    if member is None or not request.offsets:
        raise Unsayable("a Cursus BATCH_COMMIT is a member's and names partitions")
    pairs = ",".join([f"P{partition}:{offset}" for partition, offset in request.offsets])
    return command(
        "BATCH_COMMIT",
        f" {pairs}".encode(),
        topic=topic,
        group=request.group,
        member=member,
        generation=request.generation,
    )


def _group(
    request: calls.JoinGroup | calls.SyncGroup | calls.Heartbeat | calls.LeaveGroup,
) -> list[Buffer]:
    arguments: dict[str, object] = {
        "topic": topic_of(request.namespace, request.topic),
        "group": request.group,
        "member": request.member,
    }
    match request:
        case calls.JoinGroup():
            if (
                request.assignor is not None
                or request.assume_partitions
                or request.bound
                or request.must_exist
            ):
                raise Unsayable("a Cursus member joins with its name alone")
            return command("JOIN_GROUP", **arguments)
        case calls.SyncGroup():
            return command("SYNC_GROUP", **arguments, generation=request.generation)
        case calls.Heartbeat():
            return command("HEARTBEAT", **arguments, generation=request.generation)
        case calls.LeaveGroup():
            return command("LEAVE_GROUP", **arguments)
