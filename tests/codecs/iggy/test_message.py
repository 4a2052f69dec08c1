from __future__ import annotations

import pytest

from dragoman.codecs.iggy.command import HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX
from dragoman.codecs.iggy.message import NO_ID, Bad, IdSource, check_headers, check_payloads
from dragoman.core.column import VarColumn
from support.iggy import header


def ids_of(joined: bytes) -> list[bytes]:
    return [joined[at : at + 16] for at in range(0, len(joined), 16)]


def test_made_ids_are_unique_and_have_the_form_of_random_uuids() -> None:
    source = IdSource(b"token")
    made = [one for _ in range(50) for one in ids_of(source.take(20))]
    assert len(set(made)) == 1000
    assert all(one[6] >> 4 == 4 and one[8] >> 6 == 2 for one in made)


def test_connections_with_other_tokens_make_other_ids() -> None:
    assert IdSource(b"a").take(1) != IdSource(b"b").take(1)


def test_only_zero_ids_are_replaced() -> None:
    given = [b"\1" + bytes(15), NO_ID, bytes(15) + b"\1", NO_ID]
    filled = ids_of(IdSource(b"token").fill(b"".join(given)))
    assert (filled[0], filled[2]) == (given[0], given[2])
    assert NO_ID not in filled
    assert filled[1] != filled[3]


def test_zeros_across_two_ids_are_no_zero_id() -> None:
    given = b"\1" + bytes(15) + bytes(15) + b"\1"
    assert IdSource(b"token").fill(given) == given


def test_all_zero_ids_are_replaced_at_once() -> None:
    filled = ids_of(IdSource(b"token").fill(bytes(16 * 9)))
    assert len(set(filled)) == 9


@pytest.mark.parametrize("sizes", [[0], [3, 0], [0, 0, 0], [0, 1]])
def test_an_empty_payload_is_refused(sizes: list[int]) -> None:
    column = VarColumn.of([b"x" * size for size in sizes])
    with pytest.raises(Bad) as caught:
        check_payloads(column, len(sizes))
    assert caught.value.number == 4024


def test_payloads_up_to_the_limit_pass_and_one_byte_more_does_not() -> None:
    check_payloads(VarColumn.single(bytes(PAYLOAD_BYTES_MAX)), 1)
    with pytest.raises(Bad) as caught:
        check_payloads(VarColumn.of([bytes(PAYLOAD_BYTES_MAX), b"x"]), 2)
    assert caught.value.number == 4022


def test_header_values_up_to_the_limit_pass_and_one_byte_more_does_not() -> None:
    raw = header(b"key", 1, bytes(200))
    check_headers([raw] * (HEADER_BYTES_MAX // 200))
    with pytest.raises(Bad) as caught:
        check_headers([raw] * (HEADER_BYTES_MAX // 200) + [header(b"k", 1, b"v")])
    assert caught.value.number == 4017


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (header(b"", 1, b"v"), 4018),
        (header(b"k" * 256, 1, b"v"), 4018),
        (header(b"\xc3", 1, b"v"), 4018),
        (header(b"k", 1, b""), 4019),
        (header(b"k", 1, bytes(256)), 4019),
        (header(b"k", 0, b"v"), 3),
        (header(b"k", 16, b"v"), 3),
        (header(b"k", 1, b"vv")[:-1], 3),
        (b"\1", 3),
        (header(b"k", 1, b"v") + b"\0", 3),
        (b"\xff" * 4, 4018),
        (b"\1\0\0\0k\1" + b"\xff" * 4, 4019),
    ],
)
def test_malformed_headers_are_refused_by_number(raw: bytes, number: int) -> None:
    with pytest.raises(Bad) as caught:
        check_headers([header(b"fine", 2, b"v"), raw])
    assert caught.value.number == number
