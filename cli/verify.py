"""`dragoman verify`: checks every batch of a data directory, beside a live server too."""

from __future__ import annotations

import sys
from dataclasses import asdict

from dragoman.cli.asking import complain, show, told
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.verify import verify as check

SOUND, DAMAGED, UNREADABLE = 0, 1, 2


def verify(directory: str, /) -> int:
    """Check a data directory; prints one line of JSON a damaged place, then a summary.

    Exits with 0 where everything verifies, 1 where something is damaged, 2 where the directory
    cannot be read.

    Parameters
    ----------
    directory
        What `dragoman serve --data` names.
    """
    try:
        report = check(directory)
    except (StorageError, OSError) as error:
        return complain(told(error), UNREADABLE)
    for damage in report.damage:
        show({"damage": {name: value for name, value in asdict(damage).items() if value != -1}})
        print(f"dragoman: {damage}", file=sys.stderr)
    summary = asdict(report) | {"damage": len(report.damage)}
    show(summary)
    sys.stdout.flush()
    return DAMAGED if report.damage else SOUND
