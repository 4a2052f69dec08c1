"""One high watermark for readers of all dialects, and one role of a partition."""

from __future__ import annotations

import pytest

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    CreateTopic,
    DescribeTopic,
    Produce,
    ReplicaReported,
    ReportReplica,
    Role,
    RoleSet,
    SetRole,
    TopicDescribed,
)
from dragoman.core.column import VarColumn
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.memory import MemoryStore
from dragoman.core.options import EngineOptions
from support.conversation import Exchange
from support.talk import Talk

DIALECTS = ("cursus", "v1", "iggy", "rustlog")
WRITERS = ("cursus", "iggy", "rustlog")


def talks(**options: int) -> dict[str, Talk]:
    """A client of every dialect on one server with topic t of one partition."""
    exchange = Exchange(Engine(MemoryStore(), EngineOptions(**options)))
    found = {name: Talk(name, exchange) for name in DIALECTS}
    found["rustlog"].ask(CreateTopic("t", 1))
    return found


def report(talk: Talk, offset: int) -> ReplicaReported:
    reply = talk.ask(ReportReplica("t", 0, 1, offset))
    assert isinstance(reply, ReplicaReported)
    return reply


def seen(talk: Talk) -> list[bytes | None]:
    return [record.value for record in talk.read_all("t")]


def test_readers_of_all_dialects_see_the_same_records() -> None:
    clients = talks(replica_lag_max=9)
    clients["cursus"].produce("t", b"a")
    report(clients["v1"], 0)
    for name in WRITERS:
        clients[name].produce("t", name.encode())
    written = [b"a", b"cursus", b"iggy", b"rustlog"]
    for last in range(4):
        assert report(clients["v1"], last).high_watermark == last + 1
        assert [seen(talk) for talk in clients.values()] == [written[: last + 1]] * 4
        described = clients["rustlog"].ask(DescribeTopic("t"))
        assert isinstance(described, TopicDescribed)
        assert described.topic.partitions[0].high_watermark == last + 1


def test_a_silent_v1_client_holds_the_others_back_no_longer_than_the_lag_timeout() -> None:
    clients = talks(replica_lag_max=9)
    clients["cursus"].produce("t", b"a")
    report(clients["v1"], 0)
    clients["cursus"].produce("t", b"b")
    clients["iggy"].conversation.advance(9.9)
    assert seen(clients["iggy"]) == [b"a"]
    clients["iggy"].conversation.advance(0.1)
    assert [seen(talk) for talk in clients.values()] == [[b"a", b"b"]] * 4


@pytest.mark.parametrize("name", DIALECTS)
def test_what_v1_made_a_follower_takes_no_records_of_any_dialect(name: str) -> None:
    clients = talks()
    clients["rustlog"].produce("t", b"a")
    assert isinstance(clients["v1"].ask(SetRole("t", 0, Role.FOLLOWER)), RoleSet)
    one = RecordBatch(1, VarColumn.single(b"x"), origin=Origin.NONE)
    if name == "v1":
        request = Produce("t", one)
    else:
        request = Produce("t", one, 0)
    refused = clients[name].ask(request)
    assert isinstance(refused, Failure)
    assert seen(clients[name]) == [b"a"]
    clients["v1"].ask(SetRole("t", 0, Role.LEADER))
    assert not isinstance(clients[name].ask(request), Failure)


def test_clients_that_can_tell_know_that_another_one_leads() -> None:
    clients = talks()
    clients["v1"].ask(SetRole("t", 0, Role.FOLLOWER))
    one = RecordBatch(1, VarColumn.single(b"x"), origin=Origin.NONE)
    for name, request in (("cursus", Produce("t", one, 0)), ("v1", Produce("t", one))):
        refused = clients[name].ask(request)
        assert isinstance(refused, Failure)
        assert refused.code is ErrorCode.NOT_LEADER
