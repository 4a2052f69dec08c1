from __future__ import annotations

import pytest

from dragoman.core.calls import CommitOffset, CreateTopic, OffsetKind, RemovePartitions
from dragoman.core.lag import Lag, Lags
from support.log import Log


@pytest.fixture
def log() -> Log:
    """A topic of two partitions with three records in the first."""
    log = Log()
    log.ask(CreateTopic("t", 2))
    log.put("t", b"a", b"b", b"c")
    return log


def test_what_is_visible_and_not_committed_is_lag(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 1), (1, 0))))
    listed = [Lag("default", "t", 0, "g", 2), Lag("default", "t", 1, "g", 0)]
    assert log.engine.lags(10) == Lags(listed, 0)


@pytest.mark.parametrize(("committed", "behind"), [(3, 0), (99, 0), (-5, 3)])
def test_offsets_outside_the_log_lag_by_what_there_is(
    log: Log, committed: int, behind: int
) -> None:
    log.ask(CommitOffset("t", "g", ((0, committed),)))
    assert log.engine.lags(10).listed[0].records == behind


def test_single_consumers_are_no_groups(log: Log) -> None:
    log.ask(CommitOffset("t", "c", ((0, 1),), kind=OffsetKind.CONSUMER))
    assert log.engine.lags(10) == Lags([], 0)


def test_what_has_no_room_is_counted(log: Log) -> None:
    for group in ("g", "h"):
        log.ask(CommitOffset("t", group, ((0, 1), (1, 0))))
    for room in range(5):
        found = log.engine.lags(room)
        assert (len(found.listed), found.left_out) == (room, 4 - room)


def test_partitions_that_are_gone_have_no_lag(log: Log) -> None:
    log.ask(CommitOffset("t", "g", ((0, 1), (1, 0))))
    log.ask(RemovePartitions("t", 1))
    assert [lag.partition for lag in log.engine.lags(10).listed] == [0]
