"""A running flusher over a log in memory, with threads and a clock that a test can move."""

from __future__ import annotations

import itertools
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from dragoman.codecs.base import Facts
from dragoman.codecs.rendering import RenderingCache
from dragoman.core.clock import Now
from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.flusher import Flusher
from dragoman.gateway.inflow import Inflow
from dragoman.gateway.lane import Lane
from dragoman.gateway.session import Session
from support.toy import TOY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman.codecs.base import Dialect
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.lane import Connection

ANSWER_SECONDS_MAX = 5
"""A test that waits longer than this for bytes has failed."""


class House:
    """An engine, its flusher, one lane, and sessions of the toy dialect."""

    def __init__(
        self, engine: LogEngine, nursery: trio.Nursery, inflow: Inflow | None = None
    ) -> None:
        self.engine = engine
        self.nursery = nursery
        self.ahead_us = 0
        self.flusher = Flusher(engine, self.clock)
        self.inflow = Inflow() if inflow is None else inflow
        self.lane = Lane(self.flusher, idle_us=60_000_000, inflow=self.inflow, clock=self.clock)
        self.renderings = RenderingCache()
        self._numbers = itertools.count(1)
        self.peers: list[trio.SocketStream] = []
        self.last: Connection | None = None

    def clock(self) -> Now:
        """The machine's clocks, moved ahead by what the test let pass."""
        now = read_clocks()
        return Now(now.wall_us + self.ahead_us, now.mono_us + self.ahead_us)

    def pass_time(self, seconds: float) -> None:
        """Lets time pass at once, and does what is due."""
        self.ahead_us += round(seconds * 1_000_000)
        now = self.clock()
        self.engine.tick(now)
        self.flusher.poke(now)
        self.lane.wake_resting(now)
        self.lane.sweep(now)
        self.inflow.wake_resting(now)
        self.inflow.sweep(now)

    def session(self, spoken: Dialect = TOY) -> Session:
        """A session for a carrier."""
        facts = Facts(limits=spoken.limits, renderings=self.renderings)
        client = Client(next(self._numbers), spoken.name, "test")
        return Session(spoken.codec(facts), self.engine, client, self.clock())

    def connect(self, spoken: Dialect = TOY) -> trio.SocketStream:
        """A connection through the lane; returns the peer's end."""
        ours, theirs = socket.socketpair()
        self.last = self.lane.add(ours, self.session(spoken), self.clock())
        peer = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
        self.peers.append(peer)
        return peer


@asynccontextmanager
async def open_house(inflow: Inflow | None = None) -> AsyncIterator[House]:
    """Runs a house's tasks around a test."""
    async with trio.open_nursery() as nursery:
        house = House(Engine(MemoryStore()), nursery, inflow)
        nursery.start_soon(house.flusher.run)
        nursery.start_soon(house.lane.run)
        try:
            with trio.fail_after(4 * ANSWER_SECONDS_MAX):
                yield house
        finally:
            nursery.cancel_scope.cancel()
    house.flusher.close()
    for peer in house.peers:
        await peer.aclose()


async def hear(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    """Receives exactly so many bytes."""
    got = b""
    with trio.fail_after(ANSWER_SECONDS_MAX):
        while len(got) < count:
            piece = await stream.receive_some(count - len(got))
            assert piece, f"the stream ended after {got[-100:]!r}"
            got += piece
    return got


async def hear_end(stream: trio.abc.ReceiveStream) -> bytes:
    """Receives until the stream ends, gracefully or not."""
    got = b""
    with trio.fail_after(ANSWER_SECONDS_MAX):
        while True:
            try:
                piece = await stream.receive_some(65_536)
            except trio.BrokenResourceError:
                return got
            if not piece:
                return got
            got += piece


async def ask(stream: trio.abc.Stream, question: bytes, answer: bytes) -> None:
    """Sends a question and checks the answer byte by byte."""
    await stream.send_all(question)
    assert await hear(stream, len(answer)) == answer
