"""`dragoman recover`: opens a data directory that a start refuses, giving up what is damaged."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - read at run time by the command line library

import orjson

from dragoman.cli.asking import REFUSED, complain, told
from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.layout import Layout
from dragoman.gateway.clock import read_clocks


def recover(directory: Path, /, *, give_up_from: int | None = None) -> int:
    """Recover a data directory without serving it, and stop it in good order.

    Exits 0 where it can be served now, 1 where it still cannot.

    Parameters
    ----------
    directory
        The data directory; no server may be running on it.
    give_up_from
        Discard the journal from this sequence on. The refusal of `dragoman serve` names it.
    """
    try:
        Layout(str(directory)).check_format(RealDisk())  # a start would make what is missing
        store = DiskStore(directory, give_up_from=give_up_from)
    except (StorageError, OSError) as error:
        return complain(told(error), REFUSED)
    for damage in store.damage:
        print(f"damaged: {damage}", file=sys.stderr)
    store.begin_close(read_clocks())
    while works := store.take_work(read_clocks()):
        for work in works:
            work.run()
            store.finished(work, None)
    print(orjson.dumps(dict(store.statistics())).decode())
    store.close()
    return 0
