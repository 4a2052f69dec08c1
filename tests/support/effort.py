"""How hard the tests try: counts that fit every run, with a long form behind a make target."""

from __future__ import annotations

import os

IN_FORCE: dict[str, int] = {}
"""The counts that were asked for in this run, by the variable that sets them."""


def effort(variable: str, default: int) -> int:
    """The count that an environment variable sets, or its default; the run's summary prints it."""
    IN_FORCE[variable] = int(os.environ.get(variable, default))
    return IN_FORCE[variable]
