"""The budget of what arrives: who is read while it is short, and who is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.core.clock import Now
from dragoman.gateway.inflow import PROGRESS_BYTES_MIN, SMALL_FRAME_BYTES_MAX, Inflow

if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[[int], list["FakeInbound"]]

BYTES_MAX = 1_000_000
HIGH = 750_000
STALL_US = 10_000_000


class FakeSession:
    """A session whose arrivals a test sets."""

    def __init__(self) -> None:
        self.arrived = 0
        self.missing = 10_000_000
        self.wants_read = True

    def wanted(self) -> int:
        return self.missing


class FakeInbound:
    """A connection that writes down what the budget tells it."""

    def __init__(self, inflow: Inflow) -> None:
        self.inflow = inflow
        self.session = FakeSession()
        self.charged = 0
        self.kernel_bytes = 0
        self.read_ons = 0
        self.shed_for = ""

    def willing(self) -> bool:
        return self.session.wants_read

    def read_on(self, now: Now) -> None:
        self.read_ons += 1

    def backlog(self) -> int:
        return self.kernel_bytes

    def shed(self, reason: str, now: Now) -> None:
        self.shed_for = reason
        self.inflow.forget(self, now)  # type: ignore[arg-type]

    def holds(self, count: int, second: float = 0) -> None:
        """So much of it has arrived and is not served."""
        self.session.arrived = count
        self.inflow.count(self, at(second))  # type: ignore[arg-type]

    @property
    def may_read(self) -> bool:
        return self.inflow.may_read(self)  # type: ignore[arg-type]


def at(second: float) -> Now:
    return Now(0, round(second * 1_000_000))


@pytest.fixture
def inflow() -> Inflow:
    return Inflow(BYTES_MAX, STALL_US)


@pytest.fixture
def connect(inflow: Inflow) -> Connect:
    def several(count: int) -> list[FakeInbound]:
        return [FakeInbound(inflow) for _ in range(count)]

    return several


def test_everybody_is_read_below_three_quarters(inflow: Inflow, connect: Connect) -> None:
    peers = connect(3)
    for peer in peers:
        peer.holds(HIGH // 3)
    assert inflow.bytes_held == HIGH
    assert not inflow.short
    assert all(peer.may_read for peer in peers)


def test_above_it_only_the_oldest_half_frame_is_read(inflow: Inflow, connect: Connect) -> None:
    peers = connect(3)
    for peer in peers:
        peer.holds(300_000)
    assert inflow.short
    assert [peer.may_read for peer in peers] == [True, False, False]


def test_who_has_no_half_frame_is_read_as_ever(inflow: Inflow, connect: Connect) -> None:
    first, second, idle = connect(3)
    first.holds(500_000)
    second.holds(500_000)
    assert idle.may_read


def test_a_small_frame_goes_on_until_the_last_quarter_is_full(
    inflow: Inflow, connect: Connect
) -> None:
    big, bigger, small = connect(3)
    big.holds(400_000)
    bigger.holds(400_000)
    small.holds(1000)
    small.session.missing = SMALL_FRAME_BYTES_MAX - 1000
    assert small.may_read
    small.session.missing += 1
    assert not small.may_read
    small.session.missing = 0
    bigger.holds(BYTES_MAX)
    assert not small.may_read


def test_the_next_oldest_goes_on_once_the_oldest_is_served(
    inflow: Inflow, connect: Connect
) -> None:
    peers = connect(4)
    for peer in peers:
        peer.holds(300_000)
    assert [peer.may_read for peer in peers] == [True, False, False, False]
    peers[0].holds(0)
    assert [peer.read_ons for peer in peers] == [0, 1, 0, 0]
    assert [peer.may_read for peer in peers[1:]] == [True, False, False]


def test_a_frame_that_begins_behind_a_served_one_is_the_youngest(
    inflow: Inflow, connect: Connect
) -> None:
    first, second = connect(2)
    first.holds(500_000)
    second.holds(500_000)
    first.holds(400_000)
    assert second.may_read
    assert not first.may_read


def test_all_go_on_once_there_is_memory(inflow: Inflow, connect: Connect) -> None:
    peers = connect(4)
    for peer in peers:
        peer.holds(200_000)
        assert peer.may_read == (peer is not peers[3])
    assert not any(peer.may_read for peer in peers[1:])
    peers[0].holds(0)
    assert inflow.bytes_held == 600_000
    assert not inflow.short
    assert [peer.read_ons for peer in peers] == [0, 1, 1, 1]


def test_one_that_waits_for_a_thread_does_not_hold_the_turn(
    inflow: Inflow, connect: Connect
) -> None:
    first, second = connect(2)
    first.holds(500_000)
    second.holds(500_000)
    assert not second.may_read
    first.session.wants_read = False
    inflow.wake_resting(at(0))
    assert second.read_ons == 1
    assert second.may_read


def test_a_connection_that_is_gone_gives_everything_back(inflow: Inflow, connect: Connect) -> None:
    first, second = connect(2)
    first.holds(500_000)
    second.holds(500_000)
    assert not second.may_read
    inflow.forget(first, at(0))  # type: ignore[arg-type]
    inflow.forget(first, at(0))  # type: ignore[arg-type]
    assert inflow.bytes_held == 500_000
    assert second.read_ons == 1


def test_lanes_read_small_pieces_while_memory_is_short(inflow: Inflow, connect: Connect) -> None:
    told: list[bool] = []
    inflow.narrows(told.append)
    (peer,) = connect(1)
    peer.holds(HIGH + 1)
    peer.holds(0)
    assert told == [True, False]


def test_half_a_frame_without_progress_is_closed_while_memory_is_short(
    inflow: Inflow, connect: Connect
) -> None:
    peers = connect(3)
    for peer in peers:
        peer.holds(300_000)
        assert peer.may_read == (peer is not peers[2])
    assert not peers[1].may_read
    inflow.sweep(at(1))
    inflow.sweep(at(10.9))
    assert not any(peer.shed_for for peer in peers)
    inflow.sweep(at(11))
    assert all("no progress" in peer.shed_for for peer in peers)
    assert inflow.sheds == 3
    assert inflow.bytes_held == 0


def test_nobody_is_closed_while_there_is_memory(inflow: Inflow, connect: Connect) -> None:
    (peer,) = connect(1)
    peer.holds(HIGH)
    for second in (1, 20, 40):
        inflow.sweep(at(second))
    assert not peer.shed_for


def test_bytes_that_wait_in_the_kernel_are_progress_of_one_that_rests(
    inflow: Inflow, connect: Connect
) -> None:
    first, resting = connect(2)
    first.holds(500_000)
    resting.holds(500_000)
    assert not resting.may_read
    resting.kernel_bytes = PROGRESS_BYTES_MIN
    first.kernel_bytes = PROGRESS_BYTES_MIN
    inflow.sweep(at(1))
    inflow.sweep(at(12))
    assert first.shed_for
    assert not resting.shed_for


def test_the_last_bytes_of_a_frame_are_progress_however_few(
    inflow: Inflow, connect: Connect
) -> None:
    first, resting = connect(2)
    first.holds(500_000)
    resting.holds(500_000)
    assert not resting.may_read
    resting.kernel_bytes = resting.session.missing = 10
    inflow.sweep(at(1))
    inflow.sweep(at(12))
    assert not resting.shed_for


def test_a_byte_now_and_then_is_no_progress(inflow: Inflow, connect: Connect) -> None:
    (peer,) = connect(1)
    peer.holds(HIGH + 1)
    inflow.sweep(at(1))
    for second in range(2, 11):
        peer.holds(HIGH + second, second)
        inflow.sweep(at(second))
    assert not peer.shed_for
    inflow.sweep(at(11))
    assert peer.shed_for


def test_whoever_goes_on_has_the_whole_time_again(inflow: Inflow, connect: Connect) -> None:
    first, second = connect(2)
    first.holds(500_000)
    second.holds(500_000)
    assert not second.may_read
    second.kernel_bytes = PROGRESS_BYTES_MIN
    inflow.sweep(at(1))
    first.holds(500_000 + PROGRESS_BYTES_MIN, 9)
    first.holds(100, 10)
    second.holds(900_000, 10)
    inflow.sweep(at(19))
    assert not second.shed_for


def test_any_byte_that_waits_may_end_a_line(inflow: Inflow, connect: Connect) -> None:
    first, resting = connect(2)
    first.holds(500_000)
    resting.holds(500_000)
    resting.session.missing = 0
    assert not resting.may_read
    resting.kernel_bytes = 1
    inflow.sweep(at(1))
    inflow.sweep(at(12))
    assert not resting.shed_for
