"""The dialects by name: the built-in four, and those that other packages bring.

A new dialect is one folder here, one line below, one folder in specs/ and its tests; a package
elsewhere offers its own through the entry-point group `dragoman.dialects`, whose objects are
`Dialect`s.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.codecs.base import Dialect

BUILT_IN = ("cursus", "v1", "iggy", "rustlog")


@cache
def dialect(name: str) -> Dialect:
    """The dialect of this name.

    Raises:
        KeyError: There is none.
    """
    if name in BUILT_IN:
        found: Dialect = import_module(f"dragoman.codecs.{name}.dialect").DIALECT
        return found
    for entry in entry_points(group="dragoman.dialects"):
        if entry.name == name:
            offered: Dialect = entry.load()
            return offered
    raise KeyError(name)


def dialect_names() -> tuple[str, ...]:
    """The names of all dialects, the built-in ones first."""
    offered = sorted(entry.name for entry in entry_points(group="dragoman.dialects"))
    return BUILT_IN + tuple(name for name in offered if name not in BUILT_IN)
