"""Connections of a pool: kept while they are good, thrown away once they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from dragoman.clients.error import ConnectionLost, NoAnswer, PartlySent, Unreachable
from dragoman.clients.plan import Address, Ask, Pause, ask_one, on
from dragoman.clients.pool import Pool, SyncPool
from dragoman.clients.task import describe_topic
from dragoman.codecs.base import Unsayable
from dragoman.core import calls
from support.scripted import Expect, Scripted

if TYPE_CHECKING:
    from dragoman.clients.plan import Plan

LIST = Expect(b"LIST", "OK count=0 topics=")
FACES = pytest.mark.parametrize("face", ["trio", "sync"])


def at(server: Scripted) -> Address:
    return Address("127.0.0.1", server.port)


async def run(face: str, plan: Plan[Any], **options: Any) -> Any:
    if face == "sync":
        pool = SyncPool("cursus", **options)
        try:
            return pool.run(plan)
        finally:
            pool.close()
    trio_pool = Pool("cursus", **options)
    try:
        return await trio_pool.run(plan)
    finally:
        await trio_pool.aclose()


def each(*asks: Ask) -> Plan[list[Any]]:
    """One ask after the other; returns what became of each."""
    found = []
    for ask in asks:
        yield Pause(0)
        found += yield (ask,)
    return found


@FACES
async def test_a_connection_is_kept_for_the_next_ask(face: str) -> None:
    with Scripted(LIST, LIST) as server:
        ask = Ask(at(server), (calls.ListTopics(),))
        assert await run(face, each(ask, ask)) == [[calls.TopicsListed([])]] * 2
    assert {number for number, _ in server.seen} == {0}


@FACES
async def test_several_servers_are_asked_in_one_step(face: str) -> None:
    def both(*asks: Ask) -> Plan[Any]:
        return (yield asks)

    with Scripted(LIST) as one, Scripted(LIST) as other:
        asks = [Ask(at(server), (calls.ListTopics(),)) for server in (one, other)]
        assert await run(face, both(*asks)) == [[calls.TopicsListed([])]] * 2


@FACES
async def test_a_broken_connection_is_not_used_again(face: str) -> None:
    with Scripted(Expect(b"LIST", closes=True), LIST) as server:
        ask = Ask(at(server), (calls.ListTopics(),))
        lost, heard = await run(face, each(ask, ask))
    assert isinstance(lost, ConnectionLost)
    assert heard == [calls.TopicsListed([])]


@FACES
async def test_an_overdue_answer_dies_with_its_connection(face: str) -> None:
    late = "OK count=1 topics=late"
    with Scripted(Expect(b"LIST", late=late), LIST) as server:
        ask = Ask(at(server), (calls.ListTopics(),))
        silent, heard = await run(face, each(ask, ask), read_timeout_s=0.2)
    assert isinstance(silent, NoAnswer)
    assert heard == [calls.TopicsListed([])]


async def test_a_cancelled_ask_takes_its_connection_with_it() -> None:
    with Scripted(Expect(b"LIST"), LIST) as server:
        ask = Ask(at(server), (calls.ListTopics(),))
        pool = Pool("cursus")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pool.run, each(ask))
                while not server.seen:
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        assert await pool.run(each(ask)) == [[calls.TopicsListed([])]]
        await pool.aclose()


@FACES
async def test_what_cannot_be_asked_is_an_answer_too(face: str) -> None:
    with Scripted(LIST, LIST) as server:
        here = at(server)
        asks = [
            Ask(here, (calls.Ping(),)),
            Ask(here, (calls.ListTopics(), calls.Ping())),
            Ask(here, (calls.ListTopics(),)),
            Ask(Address("127.0.0.1", 1), (calls.ListTopics(),)),
        ]
        unsayable, partly, heard, nobody = await run(face, each(*asks))
    assert isinstance(unsayable, Unsayable)
    assert isinstance(partly, PartlySent)
    assert heard == [calls.TopicsListed([])]
    assert isinstance(nobody, Unreachable)
    assert {number for number, _ in server.seen} == {0}


@FACES
async def test_a_task_runs_at_one_server(face: str) -> None:
    told = "OK topic=t partitions=2 leaders=h:1,h:2 epochs=0,0"
    with Scripted(Expect(b"METADATA", told)) as server:
        topic = await run(face, on(at(server), describe_topic("t")))
    assert [partition.leader for partition in topic.partitions] == ["h:1", "h:2"]


@FACES
async def test_what_a_plan_raises_comes_out(face: str) -> None:
    with pytest.raises(Unreachable):
        await run(face, ask_one(Address("127.0.0.1", 1), calls.ListTopics()))
