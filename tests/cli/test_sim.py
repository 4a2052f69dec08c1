"""`dragoman sim`: what it prints and exits with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.cli.sim import sim
from dragoman.core.engine import Engine

if TYPE_CHECKING:
    import pytest

    from dragoman.core.clock import Now


def test_a_run_that_held_is_a_line(capsys: Any) -> None:
    assert sim(seed=4, operations=20) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("seed 4: held (")


def test_several_runs_are_summed_up(capsys: Any) -> None:
    assert sim(seed=4, seeds=2, operations=10) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 runs held"


def test_a_trace_has_every_step(capsys: Any) -> None:
    assert sim(seed=4, operations=10, trace=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 50
    assert lines[-1].startswith("seed 4: held (")


def test_a_broken_rule_is_told_and_exits_with_one(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Engine, now: Now) -> None:
        raise RuntimeError("no time")

    monkeypatch.setattr(Engine, "tick", broken)
    assert sim(seed=4, operations=10) == 1
    out = capsys.readouterr().out
    assert "broke FAULT" in out
    assert "again: dragoman sim --seed 4 --operations 10 --trace" in out


def test_no_runs_are_no_test(capsys: Any) -> None:
    assert sim(seeds=0) == 2
    assert "at least 1" in capsys.readouterr().err
