"""Reads a construct declaration as flat lists of fields, from which code can be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import construct as con


class Undeclarable(TypeError):
    """A construct that has no straight-line form here."""


@dataclass(slots=True)
class Field:
    """One member, flattened.

    Attributes:
        name: Dotted, as in the declaration.
        code: `struct` code of a fixed field, or of the length prefix of a variable one.
        size: Bytes of `code`.
        constant: The only bytes allowed.
    """

    name: str
    code: str
    size: int
    variable: bool = False
    text: bool = False
    constant: bytes | None = None

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def is_raw(self) -> bool:
        return self.code.endswith("s")


_INT_CODES = {"B", "H", "I", "L", "Q", "b", "h", "i", "l", "q"}
_RENAMED_CODES = {"L": "I", "l": "i"}


class Body:
    """A declaration, flattened into head, records and how the records are counted.

    Attributes:
        head, record: Fields in order.
        records_name: The member that holds the records.
        count_index: Index in `head` of the count, or None where records go to the end.
        order: `<` or `>`.
    """

    def __init__(self, declaration: Any) -> None:
        self._orders: set[str] = set()
        declaration = _unwrapped(declaration)
        if not isinstance(declaration, con.Struct) or not declaration.subcons:
            raise Undeclarable("a body is a Struct whose last member is its records")
        *members, last = declaration.subcons
        self.head: list[Field] = []
        for member in members:
            self._flatten(member, "", self.head)
        self.records_name = last.name
        self.count_index: int | None = None
        self.record: list[Field] = []
        for member in self._record_members(_unwrapped(last)):
            self._flatten(member, "", self.record)
        if len(self._orders) > 1:
            raise Undeclarable("a body has one byte order")
        self.order = self._orders.pop() if self._orders else ">"

    def _record_members(self, records: Any) -> list[Any]:
        if isinstance(records, con.FocusedSeq):  # what PrefixedArray(count, Record) makes
            count, entries = records.subcons
            self._flatten(con.Renamed(_unwrapped(count), newname="count"), "", self.head)
            self.count_index = len(self.head) - 1
            record = _unwrapped(_unwrapped(entries).subcon)
        elif isinstance(records, con.Array):
            probe = con.Container({f.name: index for index, f in enumerate(self.head)})
            self.count_index = records.count(probe)
            record = _unwrapped(records.subcon)
        elif type(records).__name__ == "ToEnd":
            record = _unwrapped(records.subcon)
        else:
            raise Undeclarable(f"{records!r} is not a list of records")
        if not isinstance(record, con.Struct):
            raise Undeclarable("a record is a Struct")
        return list(record.subcons)

    def _flatten(self, member: Any, prefix: str, into: list[Field]) -> None:
        name = prefix + (member.name or f"_{len(into)}")
        inner = _unwrapped(member)
        if isinstance(inner, con.Struct):
            for nested in inner.subcons:
                self._flatten(nested, name + ".", into)
        elif isinstance(inner, con.StringEncoded):
            if inner.encoding.replace("-", "").replace("_", "").lower() not in ("utf8", "ascii"):
                raise Undeclarable(f"{name}: text is UTF-8")
            self._prefixed(name, _unwrapped(inner.subcon), True, into)
        elif isinstance(inner, con.Prefixed):
            self._prefixed(name, inner, False, into)
        elif isinstance(inner, con.Const):
            value = (
                inner.value if isinstance(inner.value, bytes) else inner.subcon.build(inner.value)
            )
            into.append(Field(name, f"{len(value)}s", len(value), constant=value))
        else:
            code, size = self._fixed(inner, name)
            into.append(Field(name, code, size))

    def _prefixed(self, name: str, prefixed: Any, text: bool, into: list[Field]) -> None:
        if not isinstance(_unwrapped(prefixed.subcon), type(con.GreedyBytes)):
            raise Undeclarable(f"{name}: only GreedyBytes follow a length")
        code, size = self._fixed(_unwrapped(prefixed.lengthfield), name)
        if code not in ("B", "H", "I"):
            raise Undeclarable(f"{name}: a length is unsigned, of at most 4 bytes")
        into.append(Field(name, code, size, variable=True, text=text))

    def _fixed(self, inner: Any, name: str) -> tuple[str, int]:
        if inner is con.Flag:
            return "?", 1
        if isinstance(inner, con.FormatField):
            order, code = inner.fmtstr[0], inner.fmtstr[1:]
            code = _RENAMED_CODES.get(code, code)
            if code in _INT_CODES:
                if inner.length > 1:
                    self._orders.add(order)
                return code, inner.length
        if isinstance(inner, con.Bytes) and isinstance(inner.length, int):
            return f"{inner.length}s", inner.length
        if isinstance(inner, con.BytesInteger) and isinstance(inner.length, int):
            return f"{inner.length}s", inner.length
        raise Undeclarable(f"{name}: {inner!r} has no straight-line form")


def _unwrapped(member: Any) -> Any:
    while isinstance(member, (con.Renamed, con.Rebuild)):
        member = member.subcon
    return member
