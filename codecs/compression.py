"""The compressions by name and by magic: the built-in ones, and those that users bring.

A compression is a value of four fields. Another package offers its own through the entry-point
group `dragoman.compressions`, whose objects are `Compression`s; a program hands it to `register`.
Opening is bounded by contract, since what a peer compressed says nothing true about its size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

NONE: Final = "none"
"""The name of no compression, where one is asked for."""
MAGIC_BYTES_MIN, MAGIC_BYTES_MAX = 2, 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
_PLAIN: Final = re.compile(rb"[\0\t-\r A-Za-z]")
"""How plain bodies begin: envelopes with a zero byte, commands with white space or a letter."""
_BATCH: Final = b"\xba\x7c"


class BadCompression(ValueError):
    """Data that cannot be opened, within its limit or at all; its text says why."""


class BadRegistration(ValueError):
    """A compression that cannot stand beside those that are there; its text says why."""


@dataclass(frozen=True, slots=True)
class Compression:
    """One way to make data smaller.

    Attributes:
        name: As in configuration and on the command line.
        magic: How everything begins that it made; empty where nothing tells.
        compress: Makes data smaller.
        decompress: Takes data and a limit; makes at most so many bytes. Raises BadCompression where
            more would come out, and where the data is not one whole piece of what `compress` makes.
    """

    name: str
    magic: bytes
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]

    def open(self, data: bytes, limit: int) -> bytes:
        """What was compressed, held against the limit once more.

        Raises:
            BadCompression: It cannot be opened, or has more than `limit` bytes.
        """
        opened = self.decompress(data, limit)
        if len(opened) > limit:
            raise too_large(self.name, limit)
        return opened


def too_large(name: str, limit: int) -> BadCompression:
    """What is raised where more than `limit` bytes would come out."""
    return BadCompression(f"more than {limit} bytes come out of the {name} data")


class Registry:
    """Compressions that can be told apart.

    Attributes:
        begins: Those that have a magic by its first byte: a frame that begins otherwise needs no
            `sniff`.
    """

    def __init__(self) -> None:
        self._named: dict[str, Compression] = {}
        self.begins: dict[bytes, list[Compression]] = {}

    def register(self, added: Compression) -> None:
        """Adds a compression; connections that are open know it at once.

        Raises:
            BadRegistration: Its name is taken or none, or its magic begins like another's or like
                something that is not compressed.
        """
        name, magic = added.name, added.magic
        if _NAME.fullmatch(name) is None or name == NONE:
            raise BadRegistration(
                f"a compression is not called {name!r}: 1 to 32 of a-z, 0-9, '_', '.' and '-', "
                f"and not {NONE!r}"
            )
        if name in self._named:
            raise BadRegistration(f"there is a compression {name!r} already")
        if magic:
            self._check_magic(name, magic)
            self.begins.setdefault(magic[:1], []).append(added)
        self._named[name] = added

    def _check_magic(self, name: str, magic: bytes) -> None:
        if not MAGIC_BYTES_MIN <= len(magic) <= MAGIC_BYTES_MAX:
            raise BadRegistration(
                f"the magic of compression {name!r} has {len(magic)} bytes; "
                f"{MAGIC_BYTES_MIN} to {MAGIC_BYTES_MAX} are possible, or none"
            )
        if _PLAIN.match(magic) or magic[:2] == _BATCH:
            raise BadRegistration(
                f"the magic {magic.hex(' ')} of compression {name!r} begins like a frame that is "
                "not compressed"
            )
        for other in self._named.values():
            if other.magic and (other.magic.startswith(magic) or magic.startswith(other.magic)):
                raise BadRegistration(
                    f"the magic {magic.hex(' ')} of compression {name!r} cannot be told from "
                    f"{other.magic.hex(' ')} of {other.name!r}"
                )

    def named(self, name: str) -> Compression:
        """The compression of this name.

        Raises:
            KeyError: There is none; the message names those there are.
        """
        if (found := self._named.get(name)) is None:
            raise KeyError(f"no compression {name!r}; there are {', '.join(self.names())}")
        return found

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration."""
        return tuple(self._named)

    def sniff(self, data: bytes) -> Compression | None:
        """The compression whose magic the data begins with."""
        for one in self.begins.get(data[:1], ()):
            if data.startswith(one.magic):
                return one
        return None


@cache
def registry() -> Registry:
    """The process's registry: the built-in compressions, then those of installed packages.

    Raises:
        BadRegistration: An installed package's compression cannot stand beside the others.
    """
    made = Registry()
    for one in import_module("dragoman.codecs.builtin_compression").BUILT_IN:
        made.register(one)
    for entry in sorted(entry_points(group="dragoman.compressions"), key=lambda found: found.name):
        made.register(entry.load())
    return made


def register(added: Compression) -> None:
    """Adds a compression to the process's registry; see `Registry.register`."""
    registry().register(added)


def chosen(name: object) -> Compression | None:
    """The compression that an option names; None for `none`.

    Raises:
        ValueError: There is no such compression; the sentence names those there are.
    """
    if name == NONE:
        return None
    there = registry()
    if not isinstance(name, str) or name not in there.names():
        names = ", ".join((NONE, *there.names()))
        raise ValueError(f"compression is one of {names}, not {name!r}")
    return there.named(name)
