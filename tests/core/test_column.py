"""Columns of variable-length bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.column import VarColumn

VALUES = st.lists(st.none() | st.binary(max_size=9), max_size=20)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_a_column_gives_back_its_values(values: list[bytes | None]) -> None:
    column = VarColumn.of(values)
    assert len(column) == len(values)
    assert list(column) == values
    assert [column[index] for index in range(len(values))] == values
    present = [value is not None for value in values]
    assert [column.is_present(index) for index in range(len(values))] == present
    assert column.offsets[0] == 0
    assert column.offsets[-1] == len(column.blob)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(0, 20), st.integers(0, 20))
def test_slices_show_absent_as_empty(values: list[bytes | None], first: int, last: int) -> None:
    first, last = sorted((min(first, len(values)), min(last, len(values))))
    assert VarColumn.of(values).slices(first, last) == [
        value or b"" for value in values[first:last]
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=4)))
def test_joining_puts_columns_one_after_the_other(
    parts: list[list[bytes | None] | None],
) -> None:
    columns = [None if values is None else VarColumn.of(values) for values in parts]
    counts = [2 if values is None else len(values) for values in parts]
    joined = VarColumn.joined(columns, counts)
    if all(column is None for column in columns):
        assert joined is None
        return
    assert joined is not None
    expected: list[bytes | None] = []
    for values in parts:
        expected += [None, None] if values is None else values
    assert list(joined) == expected


def test_a_single_value_is_a_column() -> None:
    column = VarColumn.single(b"abc")
    assert (list(column), column.stride) == ([b"abc"], 3)


@pytest.mark.parametrize(("blob", "size", "count"), [(b"aabbcc", 2, 3), (b"", 0, 4), (b"", 5, 0)])
def test_a_uniform_column_is_cut_by_its_size(blob: bytes, size: int, count: int) -> None:
    column = VarColumn.uniform(blob, size, count)
    assert list(column) == [blob[size * i : size * i + size] for i in range(count)]
    assert column.stride == size


def test_a_sized_column_is_cut_by_its_sizes() -> None:
    assert list(VarColumn.sized(b"abbccc", [1, 2, 0, 3])) == [b"a", b"bb", b"", b"ccc"]


def test_a_column_over_a_view_gives_bytes() -> None:
    column = VarColumn(memoryview(b"xab")[1:], VarColumn.of([b"a", b"b"]).offsets)
    assert list(column) == [b"a", b"b"]
    assert isinstance(column[0], bytes)
