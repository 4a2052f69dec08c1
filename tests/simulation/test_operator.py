"""The operator of a run: what it deletes stays deleted, and is told to the model before."""

from __future__ import annotations

import pytest

from dragoman.core.calls import RecordsDeleted
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.audit import Auditor
from dragoman.simulation.operator import Operator
from dragoman.simulation.rule import Broken
from dragoman.simulation.run import Simulation
from dragoman.simulation.writer import Writer


def staged() -> tuple[Simulation, Operator]:
    """A run with some records, and an operator who has asked nothing."""
    simulation = Simulation(1)
    simulation.server.start()
    Auditor(simulation).prepare()
    writer = Writer("w", simulation.world, "rustlog")
    simulation.actors = [writer]
    for _ in range(40):
        writer.act()
        simulation.exchange()
        simulation.server.tick(10_000)
    operator = Operator("o", simulation.world)
    simulation.actors = [writer, operator]
    return simulation, operator


def test_what_is_deleted_and_expires_may_be_missing_in_the_end() -> None:
    simulation, operator = staged()
    for _ in range(20):
        operator.act()
        simulation.exchange()
        simulation.server.tick(10_000)
    assert operator.is_idle
    topics = simulation.world.model.topics.values()
    assert any(log.gone for topic in topics for log in topic.logs.values())
    Auditor(simulation).conclude()


def test_a_refusal_has_a_reason() -> None:
    _, operator = staged()
    operator.act()
    with pytest.raises(Broken, match="REFUSED"):
        operator._updated(Failure(ErrorCode.INVALID_OFFSET))


def test_records_that_come_back_are_found_out() -> None:
    simulation, operator = staged()
    model = simulation.world.model
    topic = model.topic("s0")
    partition = next(number for number, log in topic.logs.items() if log.visible > 1)
    moment = model.moment(topic, partition)
    model.deletes(topic, partition, 1)
    operator._deleted(RecordsDeleted(partition, 1), moment, 1)
    value = topic.log(partition).values[0]
    with pytest.raises(Broken, match="DELETED"):
        model.read_records(model.moment(topic, partition), 0, [(0, value)], 1)
