"""Columns of variable-length bytes in Apache Arrow's binary layout.

A column of n records is n+1 `int32` offsets that begin with 0, one blob, and a validity bitmap
(least significant bit first, 1 = present) where "absent" and "empty" differ. Arrow and Spark wrap
these buffers without copying.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Buffer = bytes | bytearray | memoryview
if TYPE_CHECKING:
    Int32s = array[int] | memoryview
    Int64s = array[int] | memoryview
else:  # `array` takes a type argument from Python 3.12 on
    Int32s = Int64s = array | memoryview


class VarColumn:
    """Variable-length byte strings, one a record.

    Attributes:
        blob: The bytes of all records, one after the other.
        offsets: n+1 int32; record i is `blob[offsets[i]:offsets[i + 1]]`.
        validity: Bitmap of ceil(n / 8) bytes, or None where every record is present.
        stride: The size that every record has, or None where sizes differ or nobody looked.
    """

    __slots__ = ("blob", "offsets", "stride", "validity")

    def __init__(
        self,
        blob: Buffer,
        offsets: Int32s,
        validity: Buffer | None = None,
        stride: int | None = None,
    ) -> None:
        self.blob = blob
        self.offsets = offsets
        self.validity = validity
        self.stride = stride

    @classmethod
    def single(cls, value: Buffer) -> VarColumn:
        """A column of one record."""
        size = len(value)
        return cls(value, array("i", (0, size)), None, size)

    @classmethod
    def of(cls, values: Sequence[Buffer | None]) -> VarColumn:
        """A column of these values; None is an absent one."""
        validity = None
        present = values
        if None in values:
            bits = bytearray((len(values) + 7) // 8)
            for index, value in enumerate(values):
                if value is not None:
                    bits[index >> 3] |= 1 << (index & 7)
            validity = bytes(bits)
            present = [b"" if value is None else value for value in values]
        offsets = array("i", accumulate(map(len, present), initial=0))  # type: ignore[arg-type]
        return cls(b"".join(present), offsets, validity)  # type: ignore[arg-type]

    @classmethod
    def uniform(cls, blob: Buffer, size: int, count: int) -> VarColumn:
        """A column of `count` records of `size` bytes each, already joined in `blob`."""
        if size:
            offsets = array("i", range(0, (count + 1) * size, size))
        else:
            offsets = array("i", bytes(4 * (count + 1)))
        return cls(blob, offsets, None, size)

    @classmethod
    def sized(cls, blob: Buffer, sizes: Sequence[int]) -> VarColumn:
        """A column whose records, already joined in `blob`, have these sizes."""
        return cls(blob, array("i", accumulate(sizes, initial=0)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes | None:
        validity = self.validity
        if validity is not None and not validity[index >> 3] >> (index & 7) & 1:
            return None
        offsets = self.offsets
        return bytes(self.blob[offsets[index] : offsets[index + 1]])

    def __iter__(self) -> Iterator[bytes | None]:
        blob = bytes(self.blob)
        validity = self.validity
        for index, (start, end) in enumerate(pairwise(self.offsets)):
            if validity is not None and not validity[index >> 3] >> (index & 7) & 1:
                yield None
            else:
                yield blob[start:end]

    def slices(self, first: int, last: int) -> list[bytes]:
        """The bytes of records `first` to `last` (exclusive), an absent one as empty."""
        blob = bytes(self.blob)
        return [blob[a:b] for a, b in pairwise(self.offsets[first : last + 1])]

    def is_present(self, index: int) -> bool:
        """Whether record `index` has a value at all (an empty one counts)."""
        validity = self.validity
        return validity is None or bool(validity[index >> 3] >> (index & 7) & 1)

    @classmethod
    def joined(cls, columns: Sequence[VarColumn | None], counts: Sequence[int]) -> VarColumn | None:
        """One column of several, in order; a missing column counts as that many absent records."""
        present = [column for column in columns if column is not None]
        if not present:
            return None
        if len(present) < len(columns) or any(c.validity is not None for c in present):
            values: list[bytes | None] = []
            for column, count in zip(columns, counts, strict=True):
                values.extend([None] * count if column is None else column)
            return cls.of(values)
        offsets = array("i", (0,))
        base = 0
        for column in present:
            if len(column) == 1:
                base += column.offsets[1]
                offsets.append(base)
            else:
                offsets.extend([base + end for end in column.offsets[1:]])
                base += column.offsets[-1]
        strides = {column.stride for column in present}
        return cls(
            b"".join([column.blob for column in present]),
            offsets,
            None,
            strides.pop() if len(strides) == 1 else None,
        )
