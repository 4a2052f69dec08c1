"""The choice of a partition."""

from __future__ import annotations

import pytest

from dragoman.core.calls import ROUND_ROBIN, ByHash, CreateTopic
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.route import route
from support.log import Log


@pytest.fixture
def log() -> Log:
    made = Log()
    made.ask(CreateTopic("t", 3))
    return made


def test_every_way_leads_to_its_partition(log: Log) -> None:
    directory = log.engine._directory
    topic = directory.topic("default", "t")
    ways = (2, ByHash(4), ROUND_ROBIN, 0, ROUND_ROBIN, ROUND_ROBIN, ROUND_ROBIN)
    assert [route(directory, topic, way).number for way in ways] == [2, 1, 0, 0, 1, 2, 0]


def test_a_partition_that_is_not_there_is_refused(log: Log) -> None:
    directory = log.engine._directory
    with pytest.raises(EngineError) as refused:
        route(directory, directory.topic("default", "t"), 3)
    assert refused.value.code is ErrorCode.UNKNOWN_PARTITION
