"""Pauses between attempts, and what is worth another one."""

from __future__ import annotations

import pytest

from dragoman.clients.error import ConnectionLost, PartlySent, RequestRefused
from dragoman.clients.plan import Address, Pause, Retry, is_worth_another
from dragoman.codecs.base import Unsayable
from dragoman.core.error import ErrorCode, Failure


def test_pauses_double_up_to_the_longest() -> None:
    retry = Retry(attempts=5, first_s=1, longest_s=3, dice=lambda: 1)
    assert [*retry.pauses()] == [Pause(1), Pause(2), Pause(3), Pause(3)]


def test_the_dice_shorten_a_pause_by_half_at_most() -> None:
    assert [*Retry(attempts=2, first_s=1, dice=lambda: 0).pauses()] == [Pause(0.5)]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RequestRefused(Failure(ErrorCode.NOT_LEADER)), True),
        (RequestRefused(Failure(ErrorCode.RECORD_TOO_LARGE)), False),
        (ConnectionLost("gone"), True),
        (PartlySent(Unsayable("no"), []), False),
        (Unsayable("no"), False),
    ],
)
def test_only_what_may_pass_is_worth_another_attempt(error: Exception, expected: bool) -> None:
    assert is_worth_another(error) is expected


@pytest.mark.parametrize("text", ["h:1", "[::1]:1"])
def test_an_address_is_read_as_servers_write_it(text: str) -> None:
    assert Address.of(text) in {Address("h", 1), Address("::1", 1)}
