"""How generated kernels cut columns out of wire bytes and lay columns into them.

Everything here works on a whole batch at once. The unit of work for records of one size is the
strided slice: `data[p:end:stride]` is one byte of every record, so a field of width w is checked,
read or written for all records by w slices.

A column is one of:

* for integers, an `int` where every record has the same, a `range` where they count upwards one by
  one (fields declared to count), else an array;
* for bytes of variable length, `bytes` where every record has the same, else a `VarColumn`.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import accumulate, repeat
from operator import add, sub
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from dragoman.codecs.rendering import Rendering
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Ints: TypeAlias = "int | range | array[int]"
IntsIn: TypeAlias = "int | range | array[int] | memoryview | list[int]"
Vars: TypeAlias = bytes | VarColumn

_BOOLS = bytes((0,)) + bytes((1,)) * 255
_CYCLE = bytes(range(256))
_CONSTANT_SCAN_MAX = 64
"""Up to this size a constant is proved byte by byte in strided slices; above, by cutting."""


def _even_offsets(size: int, count: int) -> array[int]:
    return _kept_offsets(size, count) if count <= 8192 else _kept_offsets.__wrapped__(size, count)


@lru_cache(64)
def _kept_offsets(size: int, count: int) -> array[int]:
    return array("i", range(0, (count + 1) * size, size) if size else bytes(4 * (count + 1)))


def even_column(blob: bytes, size: int, count: int) -> VarColumn:
    """A column of `count` records of `size` bytes; its offsets are shared where that saves work."""
    return VarColumn(blob, _even_offsets(size, count), None, size)


def stride_of(column: VarColumn) -> int | None:
    """The size that every record of the column has, or None; remembered on the column."""
    stride = column.stride
    if stride is not None or column.validity is not None:
        return stride
    offsets = column.offsets
    count = len(offsets) - 1
    size, half = offsets[1], count >> 1
    if size * count != offsets[count] or size * half != offsets[half]:
        return None
    if memoryview(offsets).cast("B") != memoryview(_even_offsets(size, count)).cast("B"):
        return None
    column.stride = size
    return size


def is_text(values: Vars) -> bool:
    """Whether every value is UTF-8."""
    try:
        for value in (values,) if isinstance(values, bytes) else values.slices(0, len(values)):
            value.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---------------------------------------------------------------- reading records of one size


def same(data: bytes, at: int, end: int, stride: int, width: int, count: int) -> bool:
    """Whether `width` bytes at `at` are the same in every record."""
    for p in range(at + width - 1, at - 1, -1):
        if data[p:end:stride].count(data[p]) != count:
            return False
    return True


def _counting_bytes(first: int, count: int, power: int) -> bytes:
    """Byte `power` (0 = lowest) of each of the numbers first, first + 1, ..."""
    run = 1 << 8 * power
    if power == 0:
        start = first & 255
        return (_CYCLE * ((start + count) // 256 + 1))[start : start + count]
    value, into = divmod(first, run)
    if into + count <= run:
        return bytes((value & 255,)) * count
    pieces = [bytes((value & 255,)) * (run - into)]
    left = count - (run - into)
    while left > 0:
        value += 1
        pieces.append(bytes((value & 255,)) * min(run, left))
        left -= run
    return b"".join(pieces)


def _bytes_of(at: int, width: int, swap: bool) -> Iterable[int]:
    """The positions of a field's bytes, lowest first."""
    return range(at + width - 1, at - 1, -1) if swap else range(at, at + width)


def ints_at(
    data: bytes,
    at: int,
    end: int,
    stride: int,
    count: int,
    code: str,
    first: int,
    swap: bool,
    counting: bool,
) -> Ints:
    """An integer column of records of one size.

    Args:
        at: Where the field stands in the first record.
        code: Its `struct` (and `array`) code.
        first: The first record's value.
        swap: It is big-endian.
        counting: Look whether the values count upwards.
    """
    width = array(code).itemsize if code != "?" else 1
    if code == "?":
        flags = data[at:end:stride].translate(_BOOLS)
        return first if flags.count(first) == count else array("B", flags)
    if same(data, at, end, stride, width, count):
        return first
    places = _bytes_of(at, width, swap)
    if (
        counting
        and 0 <= first <= (1 << (8 * width - code.islower())) - count
        and all(
            data[p:end:stride] == _counting_bytes(first, count, power)
            for power, p in enumerate(places)
        )
    ):
        return range(first, first + count)
    raw = bytearray(width * count)
    for power, p in enumerate(places):
        raw[power::width] = data[p:end:stride]
    column = array(code)
    column.frombytes(raw)
    return column


def raw_at(data: bytes, at: int, end: int, stride: int, count: int, size: int) -> bytes:
    """The joined bytes of a field of fixed size."""
    raw = bytearray(size * count)
    for p in range(size):
        raw[p::size] = data[at + p : end : stride]
    return bytes(raw)


@lru_cache(256)
def _cutter(before: int, size: int, after: int) -> Struct:
    return Struct(f"{before}x{size}s{after}x")


def cut(data: bytes, start: int, at: int, end: int, stride: int, size: int) -> list[bytes]:
    """The `size` bytes at `at` of every record; the first record begins at `start`."""
    before = at - start
    cutter = _cutter(before, size, stride - before - size)
    view = data if start == 0 and end == len(data) else memoryview(data)[start:end]
    return [value for (value,) in cutter.iter_unpack(view)]


def column_at(
    data: bytes, start: int, at: int, end: int, stride: int, count: int, size: int
) -> VarColumn:
    """A column of variable-length bytes that turned out to have one size."""
    if not size:
        return even_column(b"", 0, count)
    return even_column(b"".join(cut(data, start, at, end, stride, size)), size, count)


def var_at(data: bytes, start: int, at: int, end: int, stride: int, count: int, size: int) -> Vars:
    """As `column_at`, or the bytes themselves where all records have the same."""
    if not size:
        return b""
    first = data[at : at + size]
    middle = at + stride * (count >> 1)
    if (
        data[middle : middle + size] == first
        and size <= _CONSTANT_SCAN_MAX
        and same(data, at, end, stride, size, count)
    ):
        return first
    values = cut(data, start, at, end, stride, size)
    if values.count(first) == count:
        return first
    return even_column(b"".join(values), size, count)


# ---------------------------------------------------------------- reading records of mixed sizes


def ints_of(code: str, values: list[int], counting: bool) -> Ints:
    """An integer column of these values."""
    first = values[0]
    count = len(values)
    if values.count(first) == count:
        return first
    if counting and values[-1] == first + count - 1 and values == list(range(first, first + count)):
        return range(first, first + count)
    return array("B" if code == "?" else code, values)


def column_of(values: list[bytes]) -> VarColumn:
    """A column of variable-length bytes."""
    return VarColumn(b"".join(values), array("i", accumulate(map(len, values), initial=0)))


def var_of(values: list[bytes]) -> Vars:
    """As `column_of`, or the bytes themselves where all records have the same."""
    first = values[0]
    return first if values.count(first) == len(values) else column_of(values)


# ---------------------------------------------------------------- writing


@lru_cache(512)
def _packer(form: str) -> Struct:
    return Struct(form)


class Writer:
    """Lays columns of `count` records out as wire bytes, field after field.

    Constant neighbours melt into one literal. Where every variable field has one size, the
    literals and values are joined and the numbers are put in by strided assignment; else runs of
    fixed fields are packed by one `Struct` a run and joined with the values between them.
    """

    __slots__ = ("_count", "_even", "_fields", "_literal", "_order", "_sizes", "_stride")

    def __init__(self, count: int, order: str) -> None:
        self._count = count
        self._order = order
        self._literal = b""
        self._fields: list[tuple[str, Any]] = []
        self._stride = 0
        self._even = True
        self._sizes: list[list[int]] = []

    def literal(self, value: bytes) -> None:
        """The same bytes in every record."""
        self._literal += value

    def _flush(self) -> None:
        if self._literal:
            self._fields.append(("", self._literal))
            self._stride += len(self._literal)
            self._literal = b""

    def ints(self, code: str, values: IntsIn) -> None:
        """An integer field."""
        if isinstance(values, int):
            self._literal += _packer(self._order + code).pack(values)
            return
        self._flush()
        self._fields.append((code, values))
        self._stride += _packer(self._order + code).size

    def raw(self, size: int, blob: bytes | memoryview) -> None:
        """A field of fixed size: its bytes for all records joined, or one value for all."""
        if len(blob) == size:
            self._literal += blob
            return
        self._flush()
        self._fields.append((f"{size}s", bytes(blob)))
        self._stride += size

    def var(self, code: str, values: Vars) -> None:
        """A field with a length prefix of this code."""
        if isinstance(values, bytes):
            self._literal += _packer(self._order + code).pack(len(values)) + values
            return
        size = stride_of(values)
        if size is not None:
            self._literal += _packer(self._order + code).pack(size)
            if size:
                self._flush()
                self._fields.append(("even", (size, values)))
                self._stride += size
            return
        self._flush()
        self._even = False
        offsets = values.offsets
        sizes = list(map(sub, offsets[1:], offsets))
        self._sizes.append(sizes)
        self._fields.append((code, sizes))
        self._fields.append(("mixed", values))
        self._stride += _packer(self._order + code).size

    def done(self) -> Rendering:
        """The records' bytes and their boundaries."""
        self._flush()
        return self._joined_even() if self._even else self._joined_mixed()

    def _joined_even(self) -> Rendering:
        count, stride = self._count, self._stride
        swap = self._order == ">"
        pieces: list[Iterable[bytes]] = []
        patches: list[tuple[int, str, Any]] = []
        literal = b""
        at = 0
        for kind, values in self._fields:
            if kind == "":
                literal += values
                at += len(values)
            elif kind == "even":
                if literal:
                    pieces.append(repeat(literal, count))
                    literal = b""
                size, column = values
                pieces.append([v for (v,) in _cutter(0, size, 0).iter_unpack(column.blob)])
                at += size
            else:
                size = _packer(self._order + kind).size
                patches.append((at, kind, values))
                literal += bytes(size)
                at += size
        if literal:
            pieces.append(repeat(literal, count))
        if not patches:
            return Rendering(_interleaved(pieces, count), None, stride)
        data = bytearray(_interleaved(pieces, count))
        for at, kind, values in patches:
            if kind.endswith("s"):
                size = int(kind[:-1])
                for p in range(size):
                    data[at + p :: stride] = values[p::size]
            else:
                _put_ints(data, at, stride, count, kind, values, swap)
        return Rendering(bytes(data), None, stride)

    def _joined_mixed(self) -> Rendering:
        count = self._count
        pieces: list[Iterable[bytes]] = []
        form = ""
        arguments: list[Iterable[Any]] = []

        def flush() -> None:
            nonlocal form, arguments
            if len(arguments) == 1 and isinstance(arguments[0], repeat):
                pieces.append(arguments[0])
            elif arguments:
                pieces.append(map(_packer(self._order + form).pack, *arguments))
            form, arguments = "", []

        for kind, values in self._fields:
            if kind == "":
                form += f"{len(values)}s"
                arguments.append(repeat(values, count))
            elif kind == "even":
                flush()
                size, column = values
                pieces.append([v for (v,) in _cutter(0, size, 0).iter_unpack(column.blob)])
            elif kind == "mixed":
                flush()
                pieces.append(values.slices(0, count))
            else:
                form += kind
                if kind.endswith("s"):
                    size = int(kind[:-1])
                    arguments.append([v for (v,) in _cutter(0, size, 0).iter_unpack(values)])
                else:
                    arguments.append(values)
        flush()
        sizes: Iterable[int] = self._sizes[0]
        for more in self._sizes[1:]:
            sizes = map(add, sizes, more)
        ends = array("Q", accumulate(map(self._stride.__add__, sizes)))
        return Rendering(_interleaved(pieces, count), ends)


def _interleaved(pieces: Sequence[Iterable[bytes]], count: int) -> bytes:
    """Joins the first of each piece, then the second of each, and so on."""
    if len(pieces) == 1:
        return b"".join(pieces[0])
    width = len(pieces)
    parts: list[bytes] = [b""] * (width * count)
    for index, piece in enumerate(pieces):
        parts[index::width] = piece
    return b"".join(parts)


def _put_ints(
    data: bytearray, at: int, stride: int, count: int, code: str, values: Any, swap: bool
) -> None:
    width = _packer("=" + code).size
    places = range(at + width - 1, at - 1, -1) if swap else range(at, at + width)
    if isinstance(values, range) and values.step == 1 and values.start >= 0:
        _packer("<" + code).pack(values[-1])  # raises where the count leaves the field
        for power, p in enumerate(places):
            data[p::stride] = _counting_bytes(values.start, count, power)
        return
    typed = isinstance(values, array) and values.typecode == code
    raw = (values if typed else array(code, values)).tobytes()
    for power, p in enumerate(places):
        data[p::stride] = raw[power::width]
