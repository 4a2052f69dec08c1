from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.core.clock import Now
from dragoman.gateway.health import FLUSH_US_MAX, Health, Phase


def health_of(
    *, accepting: bool = True, flushing_us: int = 0, phase: Phase = Phase.SERVING, **figures: Any
) -> Health:
    engine: Any = SimpleNamespace(statistics=lambda: {"failure": "", "store_full": 0, **figures})
    flusher: Any = SimpleNamespace(flushing_us=lambda now: flushing_us)
    listener: Any = SimpleNamespace(is_accepting=accepting, dialect=SimpleNamespace(name="v1"))
    health = Health(engine, flusher, [listener], lambda: Now(0, 0))
    health.phase = phase
    return health


def test_a_server_that_serves_is_there_and_all_checks_hold() -> None:
    health = health_of()
    assert health.unavailable() == ""
    assert health.checks() == {"listeners": "", "log": "", "disk": "", "flusher": ""}


def test_before_the_start_no_listener_is_active() -> None:
    assert health_of(phase=Phase.STARTING).unavailable() == "Main listener not active"
    assert health_of(accepting=False).unavailable() == "Main listener not active"


def test_a_server_that_drains_is_not_there() -> None:
    health = health_of(phase=Phase.DRAINING)
    assert health.unavailable() == health.checks()["listeners"] == "Shutting down"


@pytest.mark.parametrize(
    ("check", "parts", "sentence"),
    [
        ("listeners", {"accepting": False}, "not accepting: v1"),
        ("log", {"failure": "no more"}, "no more"),
        ("disk", {"store_full": 1}, "the disk is full: records are refused"),
        ("flusher", {"flushing_us": FLUSH_US_MAX + 1}, "a flush has not ended for 30 s"),
    ],
)
def test_a_check_that_fails_says_why(check: str, parts: dict[str, Any], sentence: str) -> None:
    checks = health_of(**parts).checks()
    assert checks.pop(check) == sentence
    assert not any(checks.values())
