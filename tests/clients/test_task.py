"""What a client asks, and what it falls back to, played against servers of a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.clients import task as tasks
from dragoman.clients.appending import produce
from dragoman.clients.error import RequestRefused
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.clients.task import Result, Task
    from dragoman.core.calls import Request


def drive(task: Task[Result], answer: Callable[[Request], Any]) -> tuple[Result, list[Request]]:
    """Runs a task; returns its result and every request that was answered."""
    asked: list[Request] = []
    send: Any = task.send
    argument: Any = None
    while True:
        try:
            requests = send(argument)
        except StopIteration as done:
            return done.value, asked
        try:
            argument = [answer(request) for request in requests]
            asked += requests
            send = task.send
        except (Unsayable, RequestRefused) as error:
            send, argument = task.throw, error


def topic(partitions: int, namespace: str = "default", name: str = "t") -> calls.TopicDescription:
    described = [calls.PartitionDescription(i, 0, 0, 0, 0, 0, 0) for i in range(partitions)]
    return calls.TopicDescription(namespace, name, 1, 0, calls.TopicConfig(), described)


def refuse(code: ErrorCode, **facts: int | str) -> RequestRefused:
    return RequestRefused(Failure(code, "", facts))


def fetched(start: int, following: int, high_watermark: int = 0) -> calls.Fetched:
    slices: list[Any] = [calls.BatchSlice(None, 0, following - start)] if following > start else []  # type: ignore[arg-type]
    return calls.Fetched("default", "t", 0, slices, start, following, high_watermark, 0)


def test_a_topic_is_created_by_whatever_word_there_is() -> None:
    def only_grows(request: Request) -> calls.TopicCreated:
        assert isinstance(request, calls.CreateTopic)
        if request.if_exists is not calls.IfExists.GROW:
            raise Unsayable("it grows")
        return calls.TopicCreated(topic(request.partitions))

    created, asked = drive(tasks.create_topic("a/t", 3), only_grows)
    assert len(created.partitions) == 3
    assert isinstance(asked[0], calls.CreateTopic)
    assert (asked[0].namespace, asked[0].topic) == ("a", "t")


def test_a_dialect_without_creation_says_so() -> None:
    def nothing(request: Request) -> None:
        raise Unsayable("no word")

    with pytest.raises(Unsayable, match="no word"):
        drive(tasks.create_topic("t", 1), nothing)


def test_topics_are_listed_stream_by_stream_where_all_at_once_cannot_be_said() -> None:
    def by_stream(request: Request) -> Any:
        match request:
            case calls.ListTopics(namespace=None):
                raise Unsayable("one at a time")
            case calls.ListTopics(namespace=str(namespace)):
                return calls.TopicsListed([topic(1, "", f"in-{namespace}")])
            case _:
                names = ("x", "y")
                return calls.NamespacesListed(
                    [calls.NamespaceDescription(name, 1, 0) for name in names]
                )

    listed, _ = drive(tasks.list_topics(), by_stream)
    assert [(one.namespace, one.name) for one in listed] == [("x", "in-x"), ("y", "in-y")]


def test_topics_that_are_only_named_are_described_one_by_one() -> None:
    def names(request: Request) -> Any:
        if isinstance(request, calls.ListTopics):
            return calls.TopicsListed([topic(0, name="a"), topic(0, name="gone")])
        assert isinstance(request, calls.DescribeTopic)
        if request.topic == "gone":
            raise refuse(ErrorCode.UNKNOWN_TOPIC)
        return calls.TopicDescribed(topic(3, name="a"))

    listed, _ = drive(tasks.list_topics(), names)
    assert [(found.name, len(found.partitions)) for found in listed] == [("a", 3), ("gone", 0)]


def test_a_dialect_without_lists_names_the_first_thing_it_cannot_say() -> None:
    def nothing(request: Request) -> None:
        raise Unsayable(type(request).__name__)

    with pytest.raises(Unsayable, match=r"^ListTopics$"):
        drive(tasks.list_topics(), nothing)
    with pytest.raises(Unsayable, match=r"^DescribeTopic$"):
        drive(tasks.describe_topic("t"), nothing)


def test_a_topic_is_described_from_the_list_where_it_must_be() -> None:
    def lists(request: Request) -> Any:
        if isinstance(request, calls.ListTopics):
            return calls.TopicsListed([topic(4)])
        raise Unsayable("lists only")

    described, _ = drive(tasks.describe_topic("t"), lists)
    assert len(described.partitions) == 4
    with pytest.raises(RequestRefused) as refused:
        drive(tasks.describe_topic("u"), lists)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC


def test_partitions_are_counted_by_reading_where_nothing_tells() -> None:
    def reads(request: Request) -> Any:
        if not isinstance(request, calls.Fetch):
            raise Unsayable("reads only")
        if request.partition >= 3:
            raise refuse(ErrorCode.UNKNOWN_PARTITION)
        return fetched(0, 0)

    assert drive(tasks.partition_count("t"), reads)[0] == 3


def test_partitions_end_where_a_dialect_has_no_words_for_more() -> None:
    def only_the_first(request: Request) -> calls.Fetched:
        if isinstance(request, calls.Fetch) and not request.partition:
            return fetched(0, 1)
        raise Unsayable("one partition a topic")

    assert drive(tasks.partition_count("t"), only_the_first)[0] == 1


def keyed(request: Request) -> Any:
    """Like Iggy: one key a request, and the server chooses where it goes."""
    if isinstance(request, calls.DescribeTopic):
        return calls.TopicDescribed(topic(2))
    assert isinstance(request, calls.Produce)
    if isinstance(request.route, int):
        raise Unsayable("by key or by partition")
    if request.batch.keys is not None and len(set(request.batch.keys)) > 1:
        raise Unsayable("one key")
    return calls.Produced(0, 0, request.batch.count)


def singly(request: Request) -> Any:
    """Like V1: one record a request."""
    if not isinstance(request, calls.Produce) or request.batch.count > 1:
        raise Unsayable("one record")
    return calls.Produced(0, 0, 1)


def chosen(request: Request) -> Any:
    """Like RustLog: the client chooses."""
    if isinstance(request, calls.DescribeTopic):
        return calls.TopicDescribed(topic(2))
    assert isinstance(request, calls.Produce)
    if not isinstance(request.route, int):
        raise Unsayable("choose")
    return calls.Produced(request.route, 0, request.batch.count)


@pytest.mark.parametrize(
    ("server", "counts"), [(keyed, [2, 1]), (singly, [1, 1, 1]), (chosen, [2, 1])]
)
def test_records_with_keys_are_written_in_as_few_requests_as_can_be_said(
    server: Callable[[Request], Any], counts: list[int]
) -> None:
    produced, _ = drive(produce("t", [b"1", b"2", b"3"], [b"a", b"a", b"b"]), server)
    assert [part.count for part in produced] == counts


def test_one_key_always_goes_to_one_partition() -> None:
    places = set()
    for turn in range(4):
        produced, _ = drive(produce("t", [b"v"], [b"key"], turn=turn), chosen)
        places.add(produced[0].partition)
    assert places == {fnv1a_64(b"key") % 2}


def test_records_without_key_take_the_partitions_in_turn() -> None:
    places = []
    for turn in range(4):
        produced, _ = drive(produce("t", [b"v", b"w"], turn=turn), chosen)
        places += [part.partition for part in produced]
    assert places == [0, 1, 0, 1]


def test_a_chosen_partition_is_never_replaced() -> None:
    def balanced(request: Request) -> Any:
        raise Unsayable("the server chooses")

    with pytest.raises(Unsayable):
        drive(produce("t", [b"v"], partition=1), balanced)


def test_nothing_to_write_asks_nothing() -> None:
    assert drive(produce("t", []), singly) == ([], [])


def test_keys_must_match_the_values() -> None:
    with pytest.raises(ValueError, match="1 keys for 2 values"):
        drive(produce("t", [b"1", b"2"], [b"k"]), singly)


def by_number(first: int, end: int, *, tells_end: bool) -> Callable[[Request], Any]:
    """A server that reads by number alone, a record at a time, from `first` to `end`."""

    def answer(request: Request) -> Any:
        assert isinstance(request, calls.Fetch)
        if request.whence is not calls.Whence.OFFSET:
            raise Unsayable("numbers only")
        at = request.offset
        if at < first:
            raise refuse(ErrorCode.OFFSET_OUT_OF_RANGE, earliest=first, latest=end)
        return fetched(at, min(at + 1, end), end if tells_end else 0)

    return answer


@pytest.mark.parametrize("tells_end", [True, False])
@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 3), (5, 9)])
def test_the_ends_of_a_log_are_found_by_number(first: int, end: int, tells_end: bool) -> None:
    server = by_number(first, end, tells_end=tells_end)
    earliest, _ = drive(tasks.fetch("t", 0, "earliest"), server)
    assert earliest.start_offset == first
    latest, _ = drive(tasks.fetch("t", 0, "latest"), server)
    assert latest.start_offset == end
    assert drive(tasks.find_start("t", 0, "latest"), server)[0] == end
    assert drive(tasks.find_start("t", 0, 7), server)[0] == 7
    assert drive(tasks.find_ends("t", 0), server)[0] == (first, end)


def test_an_offset_is_a_number_or_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="not 'newest'"):
        drive(tasks.fetch("t", 0, "newest"), by_number(0, 0, tells_end=True))


def test_fnv1a_is_the_published_function() -> None:
    assert fnv1a_64(b"") == 0xCBF29CE484222325
    assert fnv1a_64(b"foobar") == 0x85944171F73967E8
