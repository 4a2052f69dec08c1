"""Generated codecs against the declarations that they are generated from."""

from __future__ import annotations

import ast
import sys
from array import array
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import construct as con
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.codecs import declared
from dragoman.codecs.columnar import stride_of
from dragoman.codecs.iggy.wire import ToEnd
from dragoman.codecs.kernel_list import KERNELS, Kernel
from dragoman.codecs.malformed import Malformed
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    import random

Short = con.Prefixed(con.Int8ub, con.GreedyBytes)
Long = con.Prefixed(con.Int32ub, con.GreedyBytes)

WIDE = con.BytesInteger(16)

PARCEL = con.Struct(
    "number" / con.Int64ub,
    "sender" / Short,
    "weight" / con.Int32sb,
    "body" / Long,
    "label" / Short,
    "price" / con.Int16ub,
)
CRATE = con.Struct(
    "magic" / con.Const(b"\xca\xfe"),
    "harbour" / con.PascalString(con.Int16ub, "utf8"),
    "place" / con.Struct("row" / con.Int8ub, "name" / Short),
    "sealed" / con.Flag,
    "parcels" / con.PrefixedArray(con.Int32ub, PARCEL),
)
NOTE = con.Struct(
    "id" / con.Bytes(16),
    "mark" / con.Const(b"N"),
    "flag" / con.Flag,
    "title" / con.PascalString(con.Int16ul, "utf8"),
    "text" / con.Prefixed(con.Int32ul, con.GreedyBytes),
)
PAD = con.Struct("owner" / con.Int32ul, "notes" / ToEnd(NOTE))
TALLY = con.Struct(
    "count" / con.Int32ul,
    "step" / con.Int8ul,
    "ticks"
    / con.Array(con.this.count, con.Struct("at" / con.Int64ul, "by" / con.BytesInteger(16))),
)


def built(name: str, declaration: Any, **hints: tuple[str, ...]) -> ModuleType:
    module = ModuleType(name)
    module.__dict__["__name__"] = name
    text = declared.generate(Kernel(name, f"toy:{name}", **hints), declaration)
    sys.modules[name] = module  # where a dataclass looks its annotations up
    exec(compile(text, name, "exec"), module.__dict__)
    return module


HINTED = built(
    "toy_crate_hinted",
    CRATE,
    varying=("body",),
    steady=("weight", "label", "price"),
    columns=("body",),
    counting=("number",),
)
PLAIN = built("toy_crate_plain", CRATE)
VARIED = built("toy_crate_varied", CRATE, varying=("sender", "body", "label"))
NOTES = built("toy_pad", PAD, varying=("text",), columns=("text",))
TICKS = built("toy_tally", TALLY, counting=("at",))
CRATES = (HINTED, PLAIN, VARIED)


def rows(columns: Any, names: tuple[str, ...], wide: dict[str, int]) -> list[dict[str, Any]]:
    """Columns as the interpreted declaration shows records."""

    def cell(name: str, index: int) -> Any:
        column = getattr(columns, name)
        if name in wide:
            return column[index * wide[name] : (index + 1) * wide[name]]
        if isinstance(column, VarColumn | range | array):
            return column[index]
        return column

    return [{name: cell(name, i) for name in names} for i in range(columns.count)]


PARCEL_NAMES = ("number", "sender", "weight", "body", "label", "price")


def crate_of(kernel: ModuleType, data: bytes) -> Any:
    head, columns = kernel.decode(data, 0, len(data))
    return (
        (head.harbour, head.place_row, head.place_name, head.sealed, head.count),
        rows(columns, PARCEL_NAMES, {}),
    )


def crate_interpreted(data: bytes) -> Any:
    """What construct says; a body ends where its frame ends."""
    found = con.Struct("crate" / CRATE, con.Terminated).parse(data).crate
    place = found.place
    return (
        (found.harbour, place.row, place.name, found.sealed, len(found.parcels)),
        [{name: parcel[name] for name in PARCEL_NAMES} for parcel in found.parcels],
    )


def pad_of(data: bytes) -> Any:
    head, columns = NOTES.decode(data, 0, len(data))
    found = rows(columns, ("id", "flag", "title", "text"), {"id": 16})
    return head.owner, [
        {**row, "flag": bool(row["flag"]), "title": row["title"].decode()} for row in found
    ]


def pad_interpreted(data: bytes) -> Any:
    found = PAD.parse(data)
    return found.owner, [
        {name: note[name] for name in ("id", "flag", "title", "text")} for note in found.notes
    ]


def outcome(parse: Any, *arguments: Any) -> Any:
    """The value, or that it was refused; whatever else is raised fails the test."""
    try:
        return parse(*arguments)
    except (Malformed, con.ConstructError, UnicodeDecodeError):
        return "refused"


small = st.binary(max_size=6)
parcels = st.fixed_dictionaries(
    {
        "number": st.integers(0, 2**64 - 1) | st.integers(0, 3),
        "sender": small | st.just(b"me"),
        "weight": st.sampled_from((0, -1, 2**31 - 1, -(2**31), 7)),
        "body": st.binary(max_size=12) | st.just(b"abc"),
        "label": st.sampled_from((b"", b"", b"", b"x", b"yy")),
        "price": st.sampled_from((0, 0, 0, 65535)),
    }
)
crates = st.fixed_dictionaries(
    {
        "harbour": st.text(max_size=5),
        "place": st.fixed_dictionaries({"row": st.integers(0, 255), "name": small}),
        "sealed": st.booleans(),
        "parcels": st.lists(parcels, max_size=12)
        | st.builds(lambda parcel, n: [parcel] * n, parcels, st.integers(1, 20)),
    }
)
notes = st.fixed_dictionaries(
    {
        "id": st.binary(min_size=16, max_size=16),
        "flag": st.booleans(),
        "title": st.text(max_size=4) | st.just(""),
        "text": st.binary(max_size=9) | st.just(b"note"),
    }
)
mutations = st.lists(
    st.tuples(
        st.sampled_from(("set", "cut", "add", "swap")), st.integers(0, 400), st.binary(max_size=3)
    ),
    max_size=2,
)


def mutated(data: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    for kind, place, extra in changes:
        at = place % (len(data) + 1)
        if kind == "set":
            data = data[:at] + extra + data[at + len(extra) :]
        elif kind == "cut":
            data = data[:at] + data[at + len(extra) :]
        elif kind == "add":
            data = data[:at] + extra + data[at:]
        else:
            data = data[at:] + data[:at]
    return data


@settings(max_examples=400, deadline=None)
@given(crates, mutations)
def test_counted_bodies_decode_as_interpreted(crate: Any, changes: Any) -> None:
    data = mutated(CRATE.build(crate), changes)
    expected = outcome(crate_interpreted, data)
    for kernel in CRATES:
        assert outcome(crate_of, kernel, data) == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(notes, max_size=8), mutations)
def test_bodies_to_the_end_decode_as_interpreted(found: Any, changes: Any) -> None:
    data = mutated(PAD.build({"owner": 5, "notes": found}), changes)
    assert outcome(pad_of, data) == outcome(pad_interpreted, data)


@settings(max_examples=150, deadline=None)
@given(crates, st.binary(max_size=40), st.binary(max_size=40))
def test_a_body_decodes_the_same_in_the_midst_of_other_bytes(
    crate: Any, before: bytes, after: bytes
) -> None:
    body = CRATE.build(crate)
    for kernel in CRATES:
        alone = kernel.decode(body, 0, len(body))
        head, columns = kernel.decode(before + body + after, len(before), len(before) + len(body))
        assert head == alone[0]
        assert rows(columns, PARCEL_NAMES, {}) == rows(alone[1], PARCEL_NAMES, {})


def column_forms(values: list[bytes]) -> list[Any]:
    """Every form in which these values may be handed to an encoder."""
    forms: list[Any] = [VarColumn.of(values)]
    if len(set(values)) == 1:
        forms.append(values[0])
    if len({len(value) for value in values}) == 1:
        forms.append(VarColumn.uniform(b"".join(values), len(values[0]), len(values)))
    return forms


@settings(max_examples=200, deadline=None)
@given(st.lists(parcels, min_size=1, max_size=10), st.booleans(), st.randoms(use_true_random=False))
def test_records_encode_as_interpreted(found: Any, alike: bool, dice: random.Random) -> None:
    if alike:
        found = [dict(found[0], number=index + 3) for index in range(len(found))]
    column: dict[str, Any] = {}
    for name in ("sender", "body", "label"):
        column[name] = dice.choice(column_forms([parcel[name] for parcel in found]))
    for name, code in (("number", "Q"), ("weight", "i"), ("price", "H")):
        values = [parcel[name] for parcel in found]
        column[name] = values[0] if len(set(values)) == 1 else array(code, values)
    if alike:
        column["number"] = range(3, 3 + len(found))
    rendering = PLAIN.encode_records(len(found), **column)
    singles = [PARCEL.build(parcel) for parcel in found]
    assert bytes(rendering.data) == b"".join(singles)
    assert [PLAIN.encode_one(**parcel) for parcel in found] == singles
    ends = [rendering.end(index) for index in range(len(found) + 1)]
    assert [b - a for a, b in pairwise(ends)] == [len(single) for single in singles]


@given(crates)
@settings(max_examples=50, deadline=None)
def test_the_head_encodes_as_interpreted(crate: Any) -> None:
    whole = CRATE.build(crate)
    head = PLAIN.encode_head(
        crate["harbour"],
        crate["place"]["row"],
        crate["place"]["name"],
        crate["sealed"],
        len(crate["parcels"]),
    )
    assert whole.startswith(head)


def crate(parcels: list[dict[str, Any]]) -> bytes:
    data: bytes = CRATE.build(
        {
            "harbour": "Köln",
            "place": {"row": 1, "name": b"n"},
            "sealed": True,
            "parcels": parcels,
        }
    )
    return data


PARCEL_ONE = {"number": 1, "sender": b"me", "weight": 1, "body": b"abc", "label": b"", "price": 0}


@pytest.mark.parametrize("count", [1, 2, 300, 1000])
def test_equal_records_come_as_constants_and_ranges(count: int) -> None:
    data = crate([dict(PARCEL_ONE, number=250 + i) for i in range(count)])
    _, columns = HINTED.decode(data, 0, len(data))
    assert (columns.sender, columns.weight, columns.label) == (b"me", 1, b"")
    assert columns.number == (range(250, 250 + count) if count > 1 else 250)
    assert list(columns.body) == [b"abc"] * count
    assert columns.body.stride == 3


def test_numbers_that_wrap_around_are_no_range() -> None:
    data = crate([dict(PARCEL_ONE, number=n) for n in (2**64 - 2, 2**64 - 1, 0)])
    _, columns = HINTED.decode(data, 0, len(data))
    assert list(columns.number) == [2**64 - 2, 2**64 - 1, 0]


def test_runs_of_guessed_records_end_where_a_value_differs() -> None:
    found = []
    for index in range(200):
        label = b"" if index % 50 < 40 else b"L%d" % index
        found.append(dict(PARCEL_ONE, number=index, body=b"b" * (index % 7), label=label))
    data = crate(found)
    for kernel in CRATES:
        _, columns = kernel.decode(data, 0, len(data))
        assert rows(columns, PARCEL_NAMES, {}) == found


@pytest.mark.parametrize(
    ("data", "path", "at"),
    [
        (b"\xca\xff", "magic", 0),
        (b"\xca\xfe\x00\x05ab", "harbour", 2),
        (b"\xca\xfe\x00\x01\xff\x01\x00\x01\x00\x00\x00\x00", "harbour", 2),
        (crate([])[:-4] + b"\xff\xff\xff\xff", "parcels", 17),
        (crate([PARCEL_ONE]) + b"!", "", 42),
        (crate([PARCEL_ONE])[:-1], "parcels[0].price", 40),
        (crate([PARCEL_ONE, PARCEL_ONE])[:-5], "parcels[1].body", 57),
    ],
)
def test_a_refusal_names_field_and_place(data: bytes, path: str, at: int) -> None:
    for kernel in CRATES:
        with pytest.raises(Malformed) as refusal:
            kernel.decode(data, 0, len(data))
        assert (refusal.value.path, refusal.value.at) == (path, at)


def test_a_huge_count_or_length_allocates_nothing() -> None:
    data = crate([PARCEL_ONE])
    body = data.index(b"\x00\x00\x00\x03abc")
    with pytest.raises(Malformed):
        PLAIN.decode(data[:body] + b"\xff\xff\xff\xff" + data[body + 4 :], 0, len(data))
    with pytest.raises(Malformed):
        TICKS.decode(b"\xff\xff\xff\xff\x01" + bytes(48), 0, 53)


def test_an_array_takes_its_count_from_the_member_that_it_names() -> None:
    data = TALLY.build({"count": 2, "step": 1, "ticks": [{"at": 5, "by": 7}, {"at": 6, "by": 8}]})
    head, columns = TICKS.decode(data, 0, len(data))
    assert (head.count, head.step, columns.at) == (2, 1, range(5, 7))
    assert columns.by == (7).to_bytes(16, "big") + (8).to_bytes(16, "big")


@pytest.mark.parametrize(
    "member",
    [
        "x" / con.Int32ul,
        "x" / con.Float32b,
        "x" / con.Prefixed(con.Int16sb, con.GreedyBytes),
        "x" / con.Prefixed(con.Int16ub, con.Int8ub),
        "x" / con.PascalString(con.Int16ub, "utf16"),
        "x" / con.GreedyRange(con.Int8ub),
        "x" / con.VarInt,
    ],
)
def test_what_has_no_straight_line_form_is_refused(member: Any) -> None:
    body = con.Struct(
        "n" / con.Int32ub, "rows" / con.PrefixedArray(con.Int32ub, con.Struct(member))
    )
    with pytest.raises(declared.Undeclarable):
        declared.generate(Kernel("bad", "toy:bad"), body)


def test_a_column_that_turns_out_to_have_one_size_remembers_it() -> None:
    even = VarColumn.of([b"ab", b"cd", b"ef"])
    assert (stride_of(even), even.stride) == (2, 2)
    assert stride_of(VarColumn.of([b"ab", b"c", b"def"])) is None
    assert stride_of(VarColumn.of([b"ab", b"", b"cdef"])) is None
    assert stride_of(VarColumn.of([b"", None])) is None


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.module)
def test_the_committed_kernels_are_up_to_date(kernel: Kernel) -> None:
    committed = Path(declared.__file__).parent / "kernels" / f"{kernel.module}.py"
    written = ast.dump(ast.parse(committed.read_text()))
    assert written == ast.dump(ast.parse(declared.generate(kernel))), "run `make kernels`"
