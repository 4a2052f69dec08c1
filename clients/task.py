"""What a client does in several requests, without any I/O: generators that both faces drive.

A task yields a tuple of requests, which are sent together, and is resumed with their replies, or
with the exception that the first of them met (`Unsayable` or `RequestRefused`). Dialects differ in
what they can say: each task asks the best question first and falls back to what every dialect has.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.clients.error import RequestRefused
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.codecs.base import Speaker
    from dragoman.core.batch import Record
    from dragoman.core.calls import Fetched, Followed, Request, TopicDescription

Result = TypeVar("Result")
Task = Generator[tuple[calls.Request, ...], Any, Result]

EARLIEST = "earliest"
LATEST = "latest"
Offset = int | str
"""An absolute offset, EARLIEST or LATEST."""

FETCH_BYTES = 1 << 20
RECORDS_MAX = 1 << 31
"""No limit: a wire without a word for one sends a whole reply anyway, which is then cut here."""


def rendered(speaker: Speaker, requests: Sequence[Request]) -> tuple[bytes, int, Unsayable | None]:
    """The bytes of the requests up to the first that cannot be said, how many these are, and why
    that one cannot."""
    pieces: list[bytes] = []
    for number, request in enumerate(requests):
        try:
            pieces += map(bytes, speaker.ask(request))
        except Unsayable as error:
            return b"".join(pieces), number, error
    return b"".join(pieces), len(requests), None


def one(request: Request) -> Task[Any]:
    """A single request; returns its reply."""
    (reply,) = yield (request,)
    return reply


def records_of(reply: Fetched | Followed) -> list[Record]:
    """The records of a reply as rows."""
    return [
        record for piece in reply.slices for record in piece.batch.records(piece.first, piece.last)
    ]


# ---------------------------------------------------------------- topics


def create_topic(
    name: str, partitions: int, config: calls.TopicConfig | None = None
) -> Task[TopicDescription]:
    """Makes a topic; a dialect whose creation never refuses an existing one grows or keeps it."""
    namespace, topic = split_flat(name)
    reasons: list[str] = []
    for if_exists in (calls.IfExists.REFUSE, calls.IfExists.GROW, calls.IfExists.KEEP):
        request = calls.CreateTopic(
            topic,
            partitions,
            namespace=namespace,
            config=config or calls.TopicConfig(),
            if_exists=if_exists,
        )
        try:
            created = yield from one(request)
        except Unsayable as error:
            reasons.append(str(error))
        else:
            described: TopicDescription = created.topic
            return described
    # Of the three a dialect has one: what it says of the two others is not why.
    raise Unsayable(min(reasons, key=reasons.count))


def delete_topic(name: str) -> Task[None]:
    """Deletes a topic with its records."""
    namespace, topic = split_flat(name)
    yield from one(calls.DeleteTopic(topic, namespace))


def delete_records(name: str, partition: int, before: int = -1) -> Task[int]:
    """Deletes the records of a partition below an offset, -1 for all; returns where the log starts
    now."""
    namespace, topic = split_flat(name)
    reply = yield from one(calls.DeleteRecords(topic, partition, before, namespace))
    log_start: int = reply.log_start_offset
    return log_start


def list_topics() -> Task[list[TopicDescription]]:
    """All topics of all namespaces; those that a list only names are described one by one."""
    try:
        listed = yield from one(calls.ListTopics())
        topics = list(listed.topics)
    except Unsayable as unsayable:
        topics = yield from _list_by_namespace(unsayable)
    for index, topic in enumerate(topics):
        if not topic.partitions:
            request = calls.DescribeTopic(topic.name, topic.namespace)
            try:
                topics[index] = (yield from one(request)).topic
            except (Unsayable, RequestRefused):
                continue  # the list has its name, and it may be gone by now
    return topics


def _list_by_namespace(unsayable: Unsayable) -> Task[list[TopicDescription]]:
    try:
        namespaces = yield from one(calls.ListNamespaces())
    except Unsayable:
        raise unsayable from None
    found: list[TopicDescription] = []
    for namespace in namespaces.namespaces:
        listed = yield from one(calls.ListTopics(namespace.name))
        for topic in listed.topics:
            topic.namespace = namespace.name
        found += listed.topics
    return found


def describe_topic(name: str) -> Task[TopicDescription]:
    """One topic, as far as the dialect tells."""
    namespace, topic = split_flat(name)
    try:
        described = yield from one(calls.DescribeTopic(topic, namespace))
    except Unsayable as unsayable:
        try:
            listed = yield from list_topics()
        except Unsayable:
            raise unsayable from None
        for found in listed:
            if (found.namespace, found.name) == (namespace, topic):
                return found
        missing = f"there is no topic {name}"
        raise RequestRefused(Failure(ErrorCode.UNKNOWN_TOPIC, missing)) from None
    answer: TopicDescription = described.topic
    return answer


def partition_count(name: str) -> Task[int]:
    """How many partitions a topic has; counted by reading where the dialect does not tell, up to
    the first that it cannot name or that is missing."""
    try:
        described = yield from describe_topic(name)
        return len(described.partitions)
    except Unsayable:
        pass
    namespace, topic = split_flat(name)
    count = 0
    while True:
        try:
            yield from one(calls.Fetch(topic, count, namespace=namespace, records_max=1))
        except RequestRefused as refused:
            if refused.code is ErrorCode.UNKNOWN_PARTITION and count:
                return count
            raise
        except Unsayable:
            if count:
                return count
            raise
        count += 1


# ---------------------------------------------------------------- reading


def fetch(
    name: str,
    partition: int,
    offset: Offset = EARLIEST,
    *,
    records_max: int = RECORDS_MAX,
    bytes_max: int = FETCH_BYTES,
    wait_us: int = 0,
) -> Task[Fetched]:
    """Reads from an offset; nothing to read is an empty answer."""
    request = _fetch(name, partition, offset)
    request.records_max, request.bytes_max, request.wait_us = records_max, bytes_max, wait_us
    try:
        fetched = yield from one(request)
    except Unsayable:
        if request.whence is calls.Whence.OFFSET:
            raise
        start = yield from find_offset(name, partition, offset)
        request.whence, request.offset = calls.Whence.OFFSET, start
        fetched = yield from one(request)
    answer: Fetched = fetched
    return answer


def _fetch(name: str, partition: int, offset: Offset) -> calls.Fetch:
    namespace, topic = split_flat(name)
    request = calls.Fetch(topic, partition, namespace=namespace)
    if isinstance(offset, int):
        request.offset = offset
    else:
        request.whence = whence_of(offset)
    return request


def whence_of(offset: str) -> calls.Whence:
    """EARLIEST or LATEST in core's words."""
    if offset not in (EARLIEST, LATEST):
        raise ValueError(f"an offset is a number, {EARLIEST} or {LATEST}, not {offset!r}")
    return calls.Whence.EARLIEST if offset == EARLIEST else calls.Whence.LATEST


def find_offset(name: str, partition: int, offset: Offset) -> Task[int]:
    """The number of EARLIEST or LATEST in dialects that read by number alone."""
    if isinstance(offset, int):
        return offset
    at = 0
    latest = whence_of(offset) is calls.Whence.LATEST
    while True:
        request = _fetch(name, partition, at)
        if not latest:
            request.records_max = 1
        try:
            fetched = yield from one(request)
        except RequestRefused as refused:
            earliest = refused.failure.facts.get("earliest")
            if refused.code is not ErrorCode.OFFSET_OUT_OF_RANGE or not isinstance(earliest, int):
                raise
            if earliest <= at:
                return at
            at = earliest
            continue
        if not latest:
            return int(fetched.start_offset)
        if fetched.high_watermark:
            return int(fetched.high_watermark)
        if not fetched.count:
            return at
        at = fetched.next_offset


def find_ends(name: str, partition: int) -> Task[tuple[int, int]]:
    """The first offset kept and the one after the last, where a description does not tell."""
    earliest = yield from find_offset(name, partition, EARLIEST)
    latest = yield from find_start(name, partition, LATEST)
    return earliest, latest


def find_start(name: str, partition: int, offset: Offset) -> Task[int]:
    """The number where a follow begins that has to ask again and again."""
    if offset == LATEST:
        try:
            fetched = yield from one(_fetch(name, partition, offset))
        except Unsayable:
            pass
        else:
            if fetched.next_offset:
                return int(fetched.next_offset)
    return (yield from find_offset(name, partition, offset))


def follow_request(
    name: str, partition: int, offset: Offset, *, group: str = "", idle_us: int = 0
) -> calls.Follow:
    """The subscription to one partition."""
    namespace, topic = split_flat(name)
    request = calls.Follow(topic, partition, namespace=namespace, group=group, idle_us=idle_us)
    if isinstance(offset, int):
        request.offset = offset
    else:
        request.whence = whence_of(offset)
    return request


def as_followed(fetched: Fetched | Followed) -> Followed:
    """A fetch's answer in the form of a push."""
    return calls.Followed(
        fetched.namespace,
        fetched.topic,
        fetched.partition,
        fetched.slices,
        fetched.start_offset,
        fetched.next_offset,
        fetched.high_watermark,
        fetched.log_start_offset,
    )


# ---------------------------------------------------------------- offsets


def commit(
    name: str,
    group: str,
    partition: int,
    offset: int,
    *,
    member: str = "",
    generation: int | None = None,
) -> Task[None]:
    """Stores the next offset that the group is to read; where a group commits as its member alone,
    the consumer of that name does."""
    namespace, topic = split_flat(name)
    request = calls.CommitOffset(
        topic, group, ((partition, offset),), namespace, member=member, generation=generation
    )
    yield from _of_group_or_consumer(request)


def committed(name: str, group: str, partition: int) -> Task[int | None]:
    """The next offset that the group is to read, or None where nothing was committed."""
    namespace, topic = split_flat(name)
    request = calls.FetchOffset(topic, group, partition, namespace)
    fetched = yield from _of_group_or_consumer(request)
    answer: int | None = fetched.offset
    return answer


def _of_group_or_consumer(request: calls.CommitOffset | calls.FetchOffset) -> Task[Any]:
    try:
        return (yield from one(request))
    except Unsayable as unsayable:
        request.kind = calls.OffsetKind.CONSUMER
        try:
            return (yield from one(request))
        except Unsayable:
            raise unsayable from None


# ---------------------------------------------------------------- groups


def join(name: str, group: str, member: str) -> Task[calls.GroupJoined]:
    """Becomes a member of a group; where members are connections, of a group that is made first."""
    namespace, topic = split_flat(name)
    request = calls.JoinGroup(topic, group, member, namespace)
    try:
        joined = yield from one(request)
    except Unsayable as unsayable:
        try:
            yield from one(calls.CreateGroup(topic, group, namespace=namespace))
        except Unsayable:
            raise unsayable from None
        except RequestRefused as refused:
            if refused.code is not ErrorCode.GROUP_EXISTS:
                raise
        request.bound = request.must_exist = True
        joined = yield from one(request)
    answer: calls.GroupJoined = joined
    return answer


def heartbeat(name: str, group: str, member: str, generation: int) -> Task[None]:
    """Keeps a member alive that no connection does."""
    namespace, topic = split_flat(name)
    yield from one(calls.Heartbeat(topic, group, member, generation, namespace))


def leave(name: str, group: str, member: str, generation: int | None = None) -> Task[None]:
    """Gives up membership."""
    namespace, topic = split_flat(name)
    yield from one(calls.LeaveGroup(topic, group, member, generation, namespace))


def poll(name: str, group: str, *, records_max: int = RECORDS_MAX) -> Task[Fetched]:
    """Reads on in the next of the member's partitions, and commits what it read."""
    namespace, topic = split_flat(name)
    request = calls.Fetch(
        topic,
        calls.ASSIGNED,
        namespace=namespace,
        whence=calls.Whence.COMMITTED,
        records_max=records_max,
        group=group,
        auto_commit=True,
    )
    fetched: Fetched = yield from one(request)
    return fetched
