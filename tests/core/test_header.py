"""Record headers and their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.header import Header, HeaderKind, decode_headers, encode_headers

HEADERS = st.lists(
    st.builds(
        Header,
        st.text(st.characters(codec="utf-8"), max_size=6),
        st.sampled_from(HeaderKind),
        st.binary(max_size=9),
    ),
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(HEADERS)
def test_what_is_written_is_read_back(headers: list[Header]) -> None:
    data = encode_headers(headers)
    assert list(decode_headers(data)) == headers
    assert list(decode_headers(memoryview(data))) == headers


def test_the_bytes_are_those_of_the_layout() -> None:
    data = encode_headers([Header("k", HeaderKind.UINT8, b"\x05")])
    assert data == bytes.fromhex("01000000 6b 09 01000000 05".replace(" ", ""))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_garbage_is_refused_or_read_never_worse(data: bytes) -> None:
    try:
        list(decode_headers(data))
    except ValueError:
        return


@pytest.mark.parametrize(
    "data",
    ["01", "05000000", "01000000 6b", "01000000 6b 0a 05000000 00", "01000000 6b 63 00000000"],
)
def test_what_is_cut_off_or_unknown_is_refused(data: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message differs by the place
        list(decode_headers(bytes.fromhex(data.replace(" ", ""))))
