"""Who asks the engine itself: answers when they are ready, and none of a server that is gone."""

from __future__ import annotations

from random import Random
from typing import Any

from dragoman.core.calls import CreateTopic, TopicCreated
from dragoman.simulation.clock import SimClock
from dragoman.simulation.hotline import Hotline
from dragoman.simulation.server import Server, Stop
from dragoman.simulation.trace import Trace


def asking() -> tuple[Server, Hotline, list[Any]]:
    trace, clock = Trace(), SimClock()
    server = Server(Random(1), clock, trace)
    server.start()
    hotline = Hotline("h", server, clock, trace)
    heard: list[Any] = []
    assert hotline.connect()
    hotline.ask(CreateTopic("t", 1), heard.append)
    return server, hotline, heard


def test_an_answer_comes_once_it_is_ready() -> None:
    server, hotline, heard = asking()
    assert not hotline.has_news
    server.settle()
    assert hotline.has_news
    hotline.hear(0)
    assert isinstance(heard[0], TopicCreated)
    assert not hotline.pending


def test_a_server_that_is_gone_does_not_answer() -> None:
    server, hotline, heard = asking()
    server.crash(Stop.KILL)
    assert hotline.has_news
    hotline.hear(0)
    assert heard == []
    assert not hotline.connect()
    server.start()
    assert hotline.connect()


def test_who_asks_no_more_is_counted_no_more() -> None:
    server, hotline, _ = asking()
    hotline.hang_up(reset=True)
    server.settle()
    assert server.engine is not None
    assert server.engine.statistics()["clients"] == 0
    assert server.engine.statistics()["waiting"] == 0
