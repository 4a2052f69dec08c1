"""What generated kernels say of bytes that do not fit their declaration: which field, and where.

Kernels check much at once and so only know that something is wrong. `diagnose` then walks the same
fields one by one, slowly, to name the place; it runs once a refused frame.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, NoReturn


class Malformed(ValueError):
    """Bytes are not what the declaration allows.

    Attributes:
        path: The field, as `header.topic` or `messages[3].payload`; empty for bytes after the end.
        at: The byte position in the data handed in.
        reason: One phrase for people.
    """

    def __init__(self, path: str, at: int, reason: str = "is cut off") -> None:
        super().__init__(f"{path or 'the end'} at byte {at} {reason}")
        self.path = path
        self.at = at
        self.reason = reason


class Part(NamedTuple):
    """One field of a plan.

    Attributes:
        name: Dotted name within its structure.
        size: Bytes of a fixed field, 0 for one with a length prefix.
        prefix: The length prefix as a `struct` format, or "".
        constant: The only bytes allowed, or None.
        text: The value must be UTF-8.
    """

    name: str
    size: int = 0
    prefix: str = ""
    constant: bytes | None = None
    text: bool = False


def walk(plan: tuple[Part, ...], data: bytes, at: int, end: int, path: str = "") -> int:
    """Reads one structure field by field; returns where it ends.

    Raises:
        Malformed: At the first field that does not fit.
    """
    for part in plan:
        start = at
        if part.prefix:
            prefix = Struct(part.prefix)
            if at + prefix.size > end:
                raise Malformed(path + part.name, start)
            (size,) = prefix.unpack_from(data, at)
            at += prefix.size
        else:
            size = part.size
        if at + size > end:
            raise Malformed(path + part.name, start)
        value = data[at : at + size]
        at += size
        if part.constant is not None and value != part.constant:
            raise Malformed(path + part.name, start, f"is not {part.constant.hex()}")
        if part.text:
            try:
                value.decode()
            except UnicodeDecodeError:
                raise Malformed(path + part.name, start, "is not UTF-8") from None
    return at


def diagnose(
    plan: tuple[Part, ...],
    data: bytes,
    at: int,
    end: int,
    path: str,
    count: int | None,
    size_min: int,
) -> NoReturn:
    """Names what is wrong with `count` structures (None: as many as there are) in `data[at:end]`.

    Raises:
        Malformed: Always.
    """
    if count is not None and not 0 <= count * size_min <= end - at:
        raise Malformed(path, at, f"cannot hold {count} entries in {end - at} bytes")
    index = 0
    while at < end if count is None else index < count:
        at = walk(plan, data, at, end, f"{path}[{index}].")
        index += 1
    raise Malformed("", at, f"is followed by {end - at} bytes too many")
