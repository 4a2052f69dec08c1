"""The line that says how far a long look has come."""

from __future__ import annotations

import io

from dragoman.cli.progress import Progress

MIB = 1024 * 1024


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_how_far_it_is_a_few_times_a_second() -> None:
    terminal = Terminal()
    times = iter([0.0, 0.05, 1.0, 2.0])
    progress = Progress("verifying", terminal, lambda: next(times))
    progress(MIB, 8 * MIB)
    progress(2 * MIB, 8 * MIB)
    progress(8 * MIB, 8 * MIB)
    progress.clear()
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "verifying 25 %, 2 of 8 MiB, 2 MiB/s"
    assert lines[2] == "verifying 100 %, 8 of 8 MiB, 4 MiB/s"
    assert [line.strip() for line in lines[3:]] == ["", ""]


def test_what_is_no_terminal_is_shown_nothing() -> None:
    text = io.StringIO()
    progress = Progress("verifying", text)
    progress(1, 2)
    progress.clear()
    assert text.getvalue() == ""
