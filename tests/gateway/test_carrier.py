from __future__ import annotations

from dragoman.core.clock import Now
from dragoman.gateway.carrier import REPLIES_STALLED_US, SLOW_READER_US, Pulse, overdue
from support.conversation import Conversation
from support.toy import TOY

IDLE_US = 60_000_000


def at(toy: Conversation, passed_us: int) -> Now:
    """A while after the conversation's clock."""
    return Now(toy.now.wall_us, toy.now.mono_us + passed_us)


def test_idle_time_counts_only_while_nothing_is_owed() -> None:
    toy = Conversation(TOY)
    pulse = Pulse(toy.now.mono_us)
    toy.send(b"p a\n")
    assert overdue(toy.session, pulse, IDLE_US, SLOW_READER_US, at(toy, IDLE_US)) == "idle"
    toy.send(b"w 1 300000\n")
    assert overdue(toy.session, pulse, IDLE_US, SLOW_READER_US, at(toy, IDLE_US)) == ""


def test_without_an_idle_timeout_nothing_is_idle() -> None:
    toy = Conversation(TOY)
    assert overdue(toy.session, Pulse(0), 0, SLOW_READER_US, at(toy, 10**12)) == ""


def test_a_peer_that_takes_no_replies_but_is_heard_stays() -> None:
    toy = Conversation(TOY)
    pulse = Pulse(0, stalled_us=at(toy, 0).mono_us)
    pulse.heard_us = at(toy, 1_000_000).mono_us
    assert overdue(toy.session, pulse, 0, SLOW_READER_US, at(toy, REPLIES_STALLED_US)) == ""
    assert (
        overdue(toy.session, pulse, 0, SLOW_READER_US, at(toy, REPLIES_STALLED_US + 1_000_000))
        == "stopped reading"
    )


def test_who_asked_for_records_goes_sooner_than_who_only_sends() -> None:
    toy = Conversation(TOY)
    pulse = Pulse(toy.now.mono_us, toy.now.mono_us)
    toy.send(b"p a\n")
    assert overdue(toy.session, pulse, 0, SLOW_READER_US, at(toy, SLOW_READER_US)) == ""
    toy.send(b"f 0\n")
    late = at(toy, SLOW_READER_US - 1)
    assert overdue(toy.session, pulse, 0, SLOW_READER_US, late) == ""
    late = at(toy, SLOW_READER_US)
    assert overdue(toy.session, pulse, 0, SLOW_READER_US, late) == "stopped reading"


def test_what_a_stalled_follower_says_does_not_save_it() -> None:
    toy = Conversation(TOY)
    pulse = Pulse(at(toy, SLOW_READER_US).mono_us, toy.now.mono_us)
    toy.send(b"p a\ns 0 0\n")
    late = at(toy, SLOW_READER_US)
    assert overdue(toy.session, pulse, 0, SLOW_READER_US, late) == "stopped reading"
