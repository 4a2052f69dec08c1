"""Closes a run with what each suite took against its budget, the counts that were in force, and
what the rules of the crash battery came to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from support.effort import IN_FORCE
from support.verdict import ROWS, table

if TYPE_CHECKING:
    import pytest

BUDGET_S = {
    "core": 60,
    "codecs": 90,
    "gateway": 20,
    "clients": 20,
    "cli": 40,
    "crash": 300,
    "simulation": 120,
    "fuzz": 90,
    "mutants": 20,
    "interop": 280,
}
"""Seconds on two cores; 760 in all but for interop, which has a command of its own."""

ROOT = Path(__file__).parent


def suite_of(report: pytest.TestReport) -> str:
    """The folder below tests/ that a test stands in, or its file."""
    return Path(report.fspath).parts[1].removesuffix(".py")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints a row a suite."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "when") and hasattr(report, "duration"):
                suite = suite_of(report)
                seconds[suite] += report.duration
                tests[suite] += report.when == "call"
    if not tests:
        return
    terminalreporter.section("suites")
    for suite in sorted(tests):
        budget = f"of {BUDGET_S[suite]} s" if suite in BUDGET_S else ""
        terminalreporter.line(
            f"{suite:<12} {tests[suite]:>5} tests {seconds[suite]:>7.1f} s {budget}"
        )
    if IN_FORCE:
        counts = ", ".join(f"{name}={count}" for name, count in sorted(IN_FORCE.items()))
        terminalreporter.line(f"counts: {counts}")
    if ROWS:
        terminalreporter.section("crash battery")
        for line in table():
            terminalreporter.line(line)
