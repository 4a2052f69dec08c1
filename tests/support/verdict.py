"""What the rules of the crash battery came to: one row each, printed at the end of a run."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS: list[Row] = []
"""Of this run, in the order in which they ended."""


@dataclass
class Row:
    """One rule.

    Attributes:
        cases: How often it was tried.
        lost, duplicated: Acknowledged records that were not found, or more than once.
        silent: Damage that nobody named.
        verdict: Empty until it ended.
    """

    rule: str
    what: str
    cases: int = 0
    lost: int = 0
    duplicated: int = 0
    silent: int = 0
    seconds: float = 0.0
    verdict: str = ""


@contextmanager
def rule(name: str, what: str) -> Iterator[Row]:
    """Counts the cases of a rule; it holds if nothing was raised, lost, duplicated or silent."""
    row = Row(name, what)
    ROWS.append(row)
    began = time.monotonic()
    try:
        yield row
        row.verdict = "held" if row.cases else "NOT TRIED"
        if row.lost or row.duplicated or row.silent:
            row.verdict = "BROKEN"
            raise AssertionError(f"{name}: {row}")
    except BaseException as error:
        skipped = type(error).__name__ == "Skipped"
        row.verdict = f"skipped: {error}" if skipped else "BROKEN"
        raise
    finally:
        row.seconds = time.monotonic() - began


def table() -> list[str]:
    """The rows as lines, a head first."""
    head = ("rule", "what was tried", "cases", "lost", "dupl.", "silent", "s", "verdict")
    rows = [
        (
            row.rule,
            row.what,
            f"{row.cases:,}",
            str(row.lost),
            str(row.duplicated),
            str(row.silent),
            f"{row.seconds:.1f}",
            row.verdict,
        )
        for row in sorted(ROWS, key=lambda row: (int(row.rule[1:]), row.what))
    ]
    width = max([len(row[1]) for row in [head, *rows]])
    return [
        f"{rule:<4} {what:<{width}} {cases:>9} {lost:>5} {dup:>5} {silent:>6} {s:>7}  {verdict}"
        for rule, what, cases, lost, dup, silent, s, verdict in [head, *rows]
    ]
