"""Hostile bytes against every dialect, without sockets: nothing raises, hangs or answers nonsense.

`FUZZ_INPUTS` is how many mutated inputs each dialect gets, `FUZZ_SEED` where they begin.
"""

from __future__ import annotations

import random

import pytest

from dragoman.codecs.registry import dialect
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from support.assault import assaulting
from support.conversation import Conversation, Exchange
from support.cursus import framed
from support.effort import effort
from support.mutation import (
    DIALECTS,
    body_of,
    boundary_inputs,
    corpus,
    mutated,
    reframed,
    shapes,
)
from support.vectors import Connections, Vector, data_of, load_vectors

INPUTS = effort("FUZZ_INPUTS", 20_000)
SEED = effort("FUZZ_SEED", 20_240_229)
VECTORS = 40
PIPELINED = 1_000


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.timeout(60 + INPUTS // 200)
def test_mutated_requests_are_answered_in_the_dialect_or_refused(name: str) -> None:
    dice = random.Random(f"{SEED} {name}")
    with assaulting(name) as assault:
        for _ in range(INPUTS):
            data, whole = mutated(name, dice)
            assault.play(data, whole=whole)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_integer_field_takes_every_boundary(name: str) -> None:
    with assaulting(name) as assault:
        for frame in shapes(name):
            for data in boundary_inputs(name, frame):
                assault.play(data, whole=True)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_frame_cut_anywhere_inside_its_body_is_still_one_frame(name: str) -> None:
    with assaulting(name) as assault:
        for frame in shapes(name):
            body = body_of(name, frame)
            for size in range(1, len(body)):
                assault.play(reframed(name, body[:size]), whole=True)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_frame_that_ends_with_its_stream_anywhere_leaves_nothing_behind(name: str) -> None:
    exchange = Exchange()
    for frame in shapes(name):
        for size in range(len(frame)):
            connection = Conversation(name, exchange=exchange)
            connection.send(frame[:size])
            connection.hang_up()
            connection.advance(0.05)
            exchange.sessions.remove(connection.session)
            assert connection.closed or connection.session.waiting
            connection.session.gone(exchange.now)
    assert exchange.engine.statistics()["waiting"] == 0
    assert exchange.engine.statistics()["clients"] == 0


@pytest.mark.parametrize("name", DIALECTS)
def test_every_split_into_two_writes_gives_the_same_answer(name: str) -> None:
    vectors = sorted(load_vectors(name), key=_longest_step)[:VECTORS]
    assert len(vectors) == VECTORS
    for vector in vectors:
        for at in range(1, _longest_step(vector)):
            _play_split(vector, at)


def _longest_step(vector: Vector) -> int:
    return max(len(data_of(step.get("send"))) for step in vector.steps)


def _play_split(vector: Vector, at: int) -> None:
    """Plays a vector with every step cut in two at this byte."""
    connections = Connections(vector)
    for index, step in enumerate(vector.steps):
        connection = connections.of(step)
        if "advance" in step:
            heard = connection.advance(step["advance"])
        elif step.get("hang_up"):
            heard = connection.hang_up()
        else:
            data = data_of(step["send"])
            heard = b"".join([connection.send(part) for part in (data[:at], data[at:]) if part])
        where = f"{vector.id}, step {index + 1}, cut at {at}"
        assert heard == data_of(step.get("expect")), where
        assert connection.closed is step.get("closed", False), where


@pytest.mark.parametrize("name", DIALECTS)
def test_one_byte_at_a_time_gives_the_same_answers_as_one_write(name: str) -> None:
    quick, slow = Conversation(name), Conversation(name)
    for frame in corpus(name):
        whole = quick.send(frame)
        assert b"".join([slow.send(frame[at : at + 1]) for at in range(len(frame))]) == whole
        assert slow.closed is quick.closed
        if quick.closed:
            quick, slow = quick.another(name), slow.another(name)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("pieces", [1, 2, 1000])
def test_a_thousand_pipelined_requests_are_answered_in_their_order(name: str, pieces: int) -> None:
    exchange = Exchange()
    place = _fill(exchange, name)
    speaker = dialect(name).speaker()
    asked = b"".join(
        [
            b"".join(map(bytes, speaker.ask(calls.Fetch(*place, offset=offset, records_max=1))))
            for offset in range(PIPELINED)
        ]
    )
    connection = Conversation(name, exchange=exchange)
    size = len(asked) // pieces + 1
    told = []
    for at in range(0, len(asked), size):
        told += speaker.receive(connection.send(asked[at : at + size]))
    offsets = []
    for reply, _ in told:
        assert isinstance(reply, calls.Fetched), reply
        offsets.append(reply.slices[0].batch.base_offset + reply.slices[0].first)
    assert offsets == list(range(PIPELINED))


def _fill(exchange: Exchange, name: str) -> tuple[str, int]:
    """A topic with as many records as are read; returns it with its partition."""
    Conversation("cursus", exchange=exchange).send(framed("CREATE t 1"))
    values = VarColumn.of([b"%d" % number for number in range(PIPELINED)])
    batch = RecordBatch(PIPELINED, values, origin=Origin.NONE)
    route = calls.ROUND_ROBIN if name == "v1" else 0
    asked = dialect(name).speaker().ask(calls.Produce("t", batch, route))
    Conversation(name, exchange=exchange).send(b"".join(map(bytes, asked)))
    return "t", 0
