"""What is told of a run: it goes between processes and to people."""

from __future__ import annotations

import pickle

from dragoman.simulation.report import Report

HELD = Report(7, 200, "d1", "", "", (), {"steps": 900, "power cut": 2})
BROKEN = Report(8, 50, "d2", "LOST", "LOST: b'r1' is gone (why)", ("1 a", "2 b"), {"steps": 2})


def test_a_run_that_held_is_one_line() -> None:
    assert HELD.held
    assert HELD.line() == "seed 7: held (900 steps, 2 power cut) d1"


def test_a_run_that_did_not_tells_what_it_takes_to_see_it_again() -> None:
    assert not BROKEN.held
    assert BROKEN.line() == "seed 8: LOST (2 steps) d2"
    assert BROKEN.story().splitlines() == [
        "seed 8 broke LOST: b'r1' is gone (why)",
        "its last steps:",
        "  1 a",
        "  2 b",
        "again: dragoman sim --seed 8 --operations 50 --trace",
    ]


def test_a_report_goes_between_processes() -> None:
    assert pickle.loads(pickle.dumps(BROKEN)) == BROKEN
