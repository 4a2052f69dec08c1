"""A simulated client: answers go to what they answer, and what is never answered is told so."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from dragoman.codecs.registry import dialect
from dragoman.core.calls import CreateTopic, ListTopics, Ping, TopicCreated
from dragoman.simulation.client import Client
from dragoman.simulation.clock import SimClock
from dragoman.simulation.rule import Broken
from dragoman.simulation.server import Server, Stop
from dragoman.simulation.trace import Trace


def client() -> tuple[Server, Client]:
    trace = Trace()
    server = Server(Random(1), SimClock(), trace)
    server.start()
    known = dialect("rustlog")
    client = Client("c", server, trace, known, partial(known.speaker))
    assert client.connect()
    return server, client


def settle(server: Server) -> None:
    for connection in list(server.connections):
        while connection.is_heard:
            server.bring(connection, 7)
    server.settle()


def test_answers_come_in_the_order_of_requests_however_they_are_cut() -> None:
    server, asker = client()
    heard: list[Any] = []
    asker.ask(CreateTopic("t", 2), heard.append)
    asker.ask(Ping(), heard.append)
    settle(server)
    while asker.has_news:
        asker.hear(3)
    assert isinstance(heard[0], TopicCreated)
    assert len(heard) == 2
    assert not asker.pending


def test_what_was_not_answered_is_lost_with_the_connection() -> None:
    server, asker = client()
    lost: list[str] = []
    asker.ask(Ping(), lost.append, lambda is_over: lost.append(f"lost {is_over}"))
    server.crash(Stop.KILL)
    asker.hear(100)
    assert lost == ["lost True"]
    assert asker.connection is None
    assert not asker.connect()


def test_an_answer_to_nothing_is_one_too_many() -> None:
    server, asker = client()
    asker.ask(Ping(), lambda reply: None)
    asker.pending.clear()
    settle(server)
    with pytest.raises(Broken, match="ANSWER"):
        asker.hear(100)


def test_bytes_that_are_no_reply_break_the_protocol() -> None:
    _, asker = client()
    assert asker.connection is not None
    asker.ask(ListTopics(), lambda reply: None)
    asker.connection.to_client += b"\0\0\0\x03zzz"
    with pytest.raises(Broken, match="PROTOCOL"):
        asker.hear(100)


def test_a_sound_server_does_not_hang_up() -> None:
    _, asker = client()
    assert asker.connection is not None
    asker.connection.is_gone = True
    with pytest.raises(Broken, match="CLOSED"):
        asker.hear(100)


def test_who_hangs_up_may_connect_again() -> None:
    server, asker = client()
    asker.hang_up(reset=True)
    assert server.connections == []
    assert asker.connect()
    assert asker.connections == 2
