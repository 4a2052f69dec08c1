"""What is read out of a construct declaration before any code is written."""

from __future__ import annotations

import construct as con
import pytest

from dragoman.codecs.declaration import Body, Undeclarable

ROW = con.Struct("number" / con.Int32ub, "name" / con.PascalString(con.Int8ub, "utf8"))


def test_members_are_flattened_in_order() -> None:
    body = Body(
        con.Struct(
            "magic" / con.Const(7, con.Int16ub),
            "from" / con.Struct("x" / con.Int8ub, "y" / con.Int64sb),
            "rows" / con.PrefixedArray(con.Int16ub, ROW),
        )
    )
    assert [(field.name, field.code) for field in body.head] == [
        ("magic", "2s"),
        ("from.x", "B"),
        ("from.y", "q"),
        ("count", "H"),
    ]
    assert body.head[0].constant == b"\x00\x07"
    assert body.head[2].attribute == "from_y"
    assert [(field.name, field.variable, field.text) for field in body.record] == [
        ("number", False, False),
        ("name", True, True),
    ]
    assert (body.order, body.count_index, body.records_name) == (">", 3, "rows")


def test_an_array_is_counted_by_the_member_that_it_names() -> None:
    body = Body(
        con.Struct(
            "total" / con.Int32ub,
            "many" / con.Int16ub,
            "rows" / con.Array(con.this.many, ROW),
        )
    )
    assert body.count_index == 1


def test_byte_orders_do_not_mix() -> None:
    mixed = con.Struct("n" / con.Int32ul, "rows" / con.PrefixedArray(con.Int16ub, ROW))
    with pytest.raises(Undeclarable, match="byte order"):
        Body(mixed)


@pytest.mark.parametrize(
    "declaration",
    [
        con.Int32ub,
        con.Struct("rows" / con.GreedyRange(ROW)),
        con.Struct("rows" / con.PrefixedArray(con.Int16ub, con.Int32ub)),
    ],
)
def test_a_body_without_a_list_of_structures_is_refused(declaration: con.Construct) -> None:
    with pytest.raises(Undeclarable):
        Body(declaration)
