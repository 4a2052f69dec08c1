"""Constructs that the declarations of several dialects need and the library lacks or gets wrong.

`ToEnd` replaces `GreedyRange`, which takes a broken tail for the end of the list.
"""

from __future__ import annotations

from typing import Any

from construct import Construct, ListContainer, stream_iseof, Subconstruct


class ToEnd(Subconstruct):  # type: ignore[misc]
    """A list that fills the rest of its stream exactly: a broken entry is an error, not the end.

    Args:
        subcon: The entry; it has at least one byte.
    """

    def __init__(self, subcon: Construct) -> None:
        super().__init__(subcon)
        self.flagbuildnone = False

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        entries = ListContainer()
        while not stream_iseof(stream):
            entries.append(self.subcon._parsereport(stream, context, path))
        return entries

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return ListContainer(self.subcon._build(entry, stream, context, path) for entry in obj)
