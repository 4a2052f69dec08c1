"""Namespaces: made, renamed, deleted, listed, described."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.calls import (
    CreateNamespace,
    CreateTopic,
    DeleteNamespace,
    DescribeNamespace,
    DescribeTopic,
    Fetch,
    ListNamespaces,
    NamespaceDeleted,
    Produce,
    RenameNamespace,
)
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from support.log import WALL_US, Log, batch

if TYPE_CHECKING:
    from dragoman.core.calls import Request


@pytest.fixture
def log() -> Log:
    made = Log()
    made.ask(CreateNamespace("n"))
    return made


def test_a_created_namespace_is_described(log: Log) -> None:
    made = log.ask(CreateNamespace("m", 7)).namespace
    assert (made.name, made.number, made.created_us, made.topics) == ("m", 7, WALL_US, [])
    assert log.ask(DescribeNamespace("m")).namespace == made
    assert log.ask(DescribeNamespace(7)).namespace == made


def test_a_description_holds_the_topics_by_number(log: Log) -> None:
    log.ask(CreateTopic("b", 1, namespace="n", number=4))
    log.ask(CreateTopic("a", 1, namespace="n", number=3))
    found = log.ask(DescribeNamespace("n")).namespace
    assert [topic.number for topic in found.topics] == [3, 4]


def test_numbers_are_the_next_free_from_1_and_never_given_twice(log: Log) -> None:
    assert log.ask(CreateNamespace("a")).namespace.number == 2
    log.ask(DeleteNamespace("a"))
    assert log.ask(CreateNamespace("b")).namespace.number == 3
    assert log.ask(CreateNamespace("c", 2)).namespace.number == 2
    assert log.ask(CreateNamespace("d")).namespace.number == 4


def test_numbers_are_not_given_twice_across_a_restart(log: Log) -> None:
    log.ask(CreateNamespace("a"))
    log.ask(DeleteNamespace("a"))
    again = Log(log.store.restarted())
    assert again.ask(CreateNamespace("b")).namespace.number == 3


def test_the_default_number_is_never_given(log: Log) -> None:
    log.ask(CreateNamespace("a", DEFAULT_NAMESPACE_NUMBER - 1))
    assert log.ask(CreateNamespace("b")).namespace.number == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateNamespace("n"), ErrorCode.NAMESPACE_EXISTS),
        (CreateNamespace("m", 1), ErrorCode.NAMESPACE_NUMBER_EXISTS),
        (CreateNamespace("n", 1), ErrorCode.NAMESPACE_NUMBER_EXISTS),
        (CreateNamespace("m", DEFAULT_NAMESPACE_NUMBER), ErrorCode.NAMESPACE_NUMBER_EXISTS),
        (CreateNamespace("m", -1), ErrorCode.INVALID_NUMBER),
        (CreateNamespace("m", 1 << 32), ErrorCode.INVALID_NUMBER),
        (CreateNamespace("default"), ErrorCode.NAMESPACE_EXISTS),
        (CreateNamespace(".."), ErrorCode.INVALID_NAME),
        (RenameNamespace("m", "x"), ErrorCode.UNKNOWN_NAMESPACE),
        (RenameNamespace("default", "x"), ErrorCode.NAMESPACE_PROTECTED),
        (RenameNamespace("n", "default"), ErrorCode.NAMESPACE_EXISTS),
        (RenameNamespace("n", "a b"), ErrorCode.INVALID_NAME),
        (DeleteNamespace("default"), ErrorCode.NAMESPACE_PROTECTED),
        (DeleteNamespace(DEFAULT_NAMESPACE_NUMBER), ErrorCode.NAMESPACE_PROTECTED),
        (DeleteNamespace("m"), ErrorCode.UNKNOWN_NAMESPACE),
        (DescribeNamespace(9), ErrorCode.UNKNOWN_NAMESPACE),
    ],
)
def test_what_cannot_be_done_is_refused(log: Log, request_: Request, code: ErrorCode) -> None:
    assert log.code(request_) is code


def test_there_is_a_limit() -> None:
    log = Log(namespaces_max=2)
    log.ask(CreateNamespace("a"))
    assert log.code(CreateNamespace("b")) is ErrorCode.LIMIT_REACHED


def test_a_renamed_namespace_keeps_its_topics(log: Log) -> None:
    log.ask(Produce("t", batch(b"a"), 0, namespace="n", create_partitions=1))
    assert log.ask(RenameNamespace("n", "new")).namespace.name == "new"
    assert log.code(DescribeTopic("t", "n")) is ErrorCode.UNKNOWN_NAMESPACE
    reply = log.ask(Fetch("t", 0, namespace="new"))
    assert (reply.namespace, reply.count) == ("new", 1)
    assert log.ask(RenameNamespace(1, "new")).namespace.name == "new"


def test_a_deleted_namespace_takes_its_topics_along(log: Log) -> None:
    log.ask(Produce("t", batch(b"a"), 0, namespace="n", create_partitions=1))
    poll = log.hand(Fetch("t", 0, 1, namespace="n", wait_us=10**6))
    assert log.ask(DeleteNamespace("n")) == NamespaceDeleted("n")
    assert isinstance(poll.reply, Failure)
    assert poll.reply.code is ErrorCode.UNKNOWN_TOPIC
    assert log.engine.statistics()["partitions"] == 0
    log.ask(CreateNamespace("n"))
    assert log.code(DescribeTopic("t", "n")) is ErrorCode.UNKNOWN_TOPIC


def test_namespaces_are_listed_by_number_the_default_one_once_it_holds_a_topic(log: Log) -> None:
    log.ask(CreateNamespace("a", 5))
    log.ask(CreateNamespace("b", 3))
    found = log.ask(ListNamespaces()).namespaces
    assert [namespace.number for namespace in found] == [1, 3, 5]
    log.ask(CreateTopic("t", 1))
    found = log.ask(ListNamespaces()).namespaces
    assert [namespace.name for namespace in found] == ["n", "b", "a", "default"]
    assert [topic.name for topic in found[-1].topics] == ["t"]
