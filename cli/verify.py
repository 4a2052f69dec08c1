"""`dragoman verify`: checks a whole data directory, beside a live server too."""

from __future__ import annotations

import sys
from dataclasses import asdict

from dragoman.cli.asking import complain, show, told
from dragoman.cli.progress import Progress
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.verify import verify as check

SOUND, DAMAGED, UNREADABLE = 0, 1, 2


def verify(directory: str, /) -> int:
    """Check a data directory; prints one line of JSON a damaged place or a remark, then a summary.

    Exits with 0 where everything verifies, 1 where something is damaged, 2 where the directory
    cannot be read. Remarks are of what a crash may leave and a start puts in order.

    Parameters
    ----------
    directory
        What `dragoman serve --data` names.
    """
    progress = Progress("verifying")
    try:
        report = check(directory, progress=progress)
    except (StorageError, OSError) as error:
        progress.clear()
        return complain(told(error), UNREADABLE)
    progress.clear()
    for damage in report.damage:
        show({"damage": {name: value for name, value in asdict(damage).items() if value != -1}})
        print(f"dragoman: {damage}", file=sys.stderr)
    for remark in report.remarks:
        show({"remark": remark})
        print(f"dragoman: {remark}", file=sys.stderr)
    summary = asdict(report)
    summary |= {"damage": len(report.damage), "remarks": len(report.remarks)}
    show(summary)
    sys.stdout.flush()
    return DAMAGED if report.damage else SOUND
