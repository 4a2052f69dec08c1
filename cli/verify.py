"""`dragoman verify`: checks a data directory, offline or beside its server."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - read at run time by the command line library

import orjson

from dragoman.core.storage.error import StorageError
from dragoman.core.storage.verify import verify as check


def verify(directory: Path) -> int:
    """Check every batch, catalog and journal group of a data directory.

    Prints one line of JSON with what was found; damage is named on stderr, one line a place.
    Exits 0 where all is sound, 1 where something is damaged, 2 where it is no data directory.

    Parameters
    ----------
    directory
        The data directory; its server may be running.
    """
    try:
        report = check(directory)
    except (StorageError, OSError) as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return 2
    for damage in report.damage:
        print(f"damaged: {damage}", file=sys.stderr)
    print(orjson.dumps(asdict(report)).decode())
    return 1 if report.damage else 0
