"""What an Iggy server's success means as core's reply to the request that was asked.

Half of the successes carry nothing; their replies repeat the request. The generation says "last
offset 0" both of an empty partition and of one with a single record; where nothing else tells them
apart the partition counts as empty, so that a reader reads twice rather than skips.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from construct import ConstructError

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.iggy import error, polled, wire
from dragoman.codecs.iggy.group import group_number
from dragoman.codecs.iggy.translate import stored_name
from dragoman.codecs.kernels import iggy_poll
from dragoman.codecs.malformed import Malformed
from dragoman.core import calls
from dragoman.core.name import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from dragoman.core.calls import Key, Reply, Request


def heard(code: int, request: Request, body: bytes) -> Reply:
    """The reply of a success.

    Raises:
        ProtocolError: The body is not what the command answers.
    """
    declared = wire.RESPONSES.get(code)
    try:
        if isinstance(request, calls.Fetch):
            return _fetched(request, body)
        found = None if declared is None else declared.parse(body)
    except (ConstructError, Malformed, ValueError, OverflowError, struct.error) as reason:
        raise ProtocolError(f"the answer to command {code} is malformed: {reason}") from None
    match request:
        case calls.Ping():
            return calls.Ponged()
        case calls.Produce():
            partition = request.route if isinstance(request.route, int) else -1
            return calls.Produced(partition, -1, request.batch.count)
        case calls.CommitOffset():
            return calls.OffsetCommitted(len(request.offsets))
        case calls.FetchOffset():
            assert found is not None
            stored = found.stored_offset + 1 if found.stored_offset else None
            end = _end(found.current_offset)
            return calls.OffsetFetched(_partition_of(request, found), stored, end)
        case calls.ListNamespaces():
            return calls.NamespacesListed([_namespace(stream) for stream in found or ()])
        case calls.DescribeNamespace():
            assert found is not None
            return calls.NamespaceDescribed(_namespace(found.stream, found.topics))
        case calls.CreateNamespace():
            made = calls.NamespaceDescription(_stored(request.name), request.number, 0)
            return calls.NamespaceCreated(made)
        case calls.RenameNamespace():
            return calls.NamespaceCreated(calls.NamespaceDescription(_stored(request.name), 0, 0))
        case calls.DeleteNamespace():
            return calls.NamespaceDeleted(str(request.namespace))
        case calls.ListTopics():
            namespace = DEFAULT_NAMESPACE if request.namespace is None else request.namespace
            return calls.TopicsListed([_topic(namespace, topic) for topic in found or ()])
        case calls.DescribeTopic():
            assert found is not None
            described = _topic(request.namespace, found.topic)
            described.partitions = [_partition(partition) for partition in found.partitions]
            return calls.TopicDescribed(described)
        case calls.DeleteTopic():
            return calls.TopicDeleted(str(request.namespace), str(request.topic))
        case calls.CreateTopic():
            made_topic = _said(request.namespace, _stored(request.topic), request.number)
            made_topic.config = request.config
            made_topic.partitions = [_blank(index) for index in range(request.partitions)]
            return calls.TopicCreated(made_topic)
        case calls.UpdateTopic():
            return calls.TopicCreated(_said(request.namespace, _stored(request.name or "")))
        case calls.AddPartitions() | calls.RemovePartitions():
            return calls.TopicCreated(_said(request.namespace, request.topic))
    return _heard_of_group(request, found)


def _heard_of_group(request: Request, found: Any) -> Reply:
    match request:
        case calls.JoinGroup():
            return calls.GroupJoined(request.member, 0, ())
        case calls.LeaveGroup():
            return calls.GroupLeft(request.member, known=True)
        case calls.CreateGroup():
            return calls.GroupCreated(_group(request, group_number(request.group, request.number)))
        case calls.DeleteGroup():
            return calls.GroupDeleted(str(group_number(request.group, request.group_number)))
        case calls.DescribeGroup():
            assert found is not None
            described_group = _group(request, found.group.number, found.group.partitions)
            described_group.members = [
                calls.MemberDescription(
                    str(member.number),
                    "",
                    tuple([partition - 1 for partition in member.partitions]),
                    bound=False,
                )
                for member in found.members
            ]
            return calls.GroupDescribed(described_group)
        case calls.ListGroups():
            return calls.GroupsListed(
                [_group(request, group.number, group.partitions) for group in found or ()]
            )
    raise AssertionError("every request that can be asked has its reply")


def _stored(name: str) -> str:
    """A new name as servers of this generation store it."""
    return stored_name(name.encode(), error.INVALID_TOPIC_NAME)


def _end(current_offset: int) -> int:
    return current_offset + 1 if current_offset else 0


def _partition_of(request: calls.Fetch | calls.FetchOffset, found: Any) -> int:
    """Only a member has to be told where it is; a member without partitions is nowhere."""
    if request.partition != calls.ASSIGNED:
        return request.partition
    return int(found.partition) - 1


def _group(
    request: calls.CreateGroup | calls.DescribeGroup | calls.ListGroups,
    number: int,
    partitions: int = 0,
) -> calls.GroupDescription:
    """A group in a list or of a request, which say nothing of its members."""
    return calls.GroupDescription(
        namespace=str(request.namespace),
        topic=str(request.topic),
        name=str(number),
        number=number,
        generation=0,
        assignor=calls.Assignor.ROUND_ROBIN,
        partition_count=partitions,
        members=[],
    )


def _fetched(request: calls.Fetch, body: bytes) -> calls.Fetched:
    slices = []
    start = request.offset if request.whence is calls.Whence.OFFSET else 0
    if not body:
        return _fetched_at(request, request.partition, start, start, 0, [])
    head, columns = iggy_poll.decode(body, 0, len(body))
    end = _end(head.current_offset)
    partition = _partition_of(request, head)
    if columns.count:
        batch = polled.batch_of(columns)
        slices.append(calls.BatchSlice(batch, 0, batch.count))
        first, following = batch.base_offset, batch.next_offset
        return _fetched_at(request, partition, first, following, head.current_offset + 1, slices)
    if request.whence is not calls.Whence.OFFSET:
        start = end
    return _fetched_at(request, partition, start, start, end, slices)


def _fetched_at(
    request: calls.Fetch,
    partition: int,
    start: int,
    following: int,
    end: int,
    slices: list[calls.BatchSlice],
) -> calls.Fetched:
    return calls.Fetched(
        namespace=str(request.namespace),
        topic=str(request.topic),
        partition=partition,
        slices=slices,
        start_offset=start,
        next_offset=following,
        high_watermark=end,
        log_start_offset=0,
    )


def _namespace(stream: Any, topics: Any = ()) -> calls.NamespaceDescription:
    name = stream.name.decode("utf-8", "replace")
    return calls.NamespaceDescription(
        name, stream.number, stream.created_us, [_topic(name, topic) for topic in topics]
    )


def _said(namespace: Key, topic: Key, number: int = 0) -> calls.TopicDescription:
    """A topic of which only the request is known."""
    return calls.TopicDescription(str(namespace), str(topic), number, 0, calls.TopicConfig(), [])


def _topic(namespace: Key, topic: Any) -> calls.TopicDescription:
    """A topic in a list, which says sums only: they stand on its first partition."""
    partitions = [_blank(index) for index in range(min(topic.partitions, 100_000))]
    if partitions:
        partitions[0].size_bytes = topic.size_bytes
        partitions[0].log_end_offset = partitions[0].high_watermark = topic.messages
    return calls.TopicDescription(
        namespace=str(namespace),
        name=topic.name.decode("utf-8", "replace"),
        number=topic.number,
        created_us=topic.created_us,
        config=calls.TopicConfig(retention_ms=1000 * topic.expiry_s),
        partitions=partitions,
    )


def _blank(partition: int) -> calls.PartitionDescription:
    return calls.PartitionDescription(partition, 0, 0, 0, 0, 0, 0)


def _partition(found: Any) -> calls.PartitionDescription:
    end = found.current_offset + 1 if found.messages or found.current_offset else 0
    return calls.PartitionDescription(
        partition=found.number - 1,
        created_us=found.created_us,
        log_start_offset=end - found.messages,
        log_end_offset=end,
        high_watermark=end,
        size_bytes=found.size_bytes,
        segments=found.segments,
    )
