"""What is escaped, how, and that it comes back."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.codecs.v1.escape import escape, is_plain, may_need_escape, unescape

SAFE_TEXT = b"-._~|:%=!\"#$&'()*+/;<>?@[]^`{}"


@pytest.mark.parametrize(
    "value",
    [b"", b"a", b"a b", b"a|b:c%2C=d", b"hw=7", b"message=1", "é🔥".encode(), "a\ufeffb".encode()],
)
def test_a_value_that_breaks_nothing_is_plain(value: bytes) -> None:
    assert is_plain(value, spaces=False)


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        (b",", b"%2C"),
        (b"a,b=5% c", b"a%2Cb%3D5%25%20c"),
        (b" a", b"%20a"),
        (b"a ", b"a%20"),
        (b"x hw=1", b"x%20hw%3D1"),
        (b"messages=", b"messages%3D"),
        (b"\n", b"%0A"),
        (b"\x7f", b"%7F"),
        ("\u0085".encode(), b"%C2%85"),
        ("a\u2028é".encode(), b"a%E2%80%A8\xc3\xa9"),
        ("\u00a0a\u00a0b".encode(), b"%C2%A0a%C2%A0b"),
        ("\ufeffé".encode(), b"%EF%BB%BF\xc3\xa9"),
        (b"\xffa", b"%FFa"),
        (b"\xc3\xa9\xff", b"%C3%A9%FF"),
    ],
)
def test_a_value_that_would_break_the_list_is_escaped(value: bytes, escaped: bytes) -> None:
    assert not is_plain(value, spaces=False)
    assert escape(value) == escaped
    assert unescape(escaped) == value


def test_spaces_are_escaped_where_that_is_wanted() -> None:
    assert not is_plain(b"a b", spaces=True)
    assert not is_plain("a\u00a0b".encode(), spaces=True)
    assert is_plain(b"ab", spaces=True)


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_every_escaped_value_is_plain_text_and_comes_back(value: bytes) -> None:
    escaped = escape(value)
    assert unquote_to_bytes(escaped) == value
    assert is_plain(escaped, spaces=True)
    escaped.decode()


@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary(max_size=8) | st.text(max_size=4).map(str.encode), max_size=5))
def test_a_batch_that_needs_no_look_holds_plain_values_only(values: list[bytes]) -> None:
    if not may_need_escape(b"".join(values)):
        assert all(is_plain(value, spaces=True) for value in values)


def test_a_value_of_several_mebibytes_is_escaped_in_pieces() -> None:
    value = (b"ab,\n" * 300_000)[1:] + "\u2028".encode()
    assert unescape(escape(value)) == value
    assert escape(value).startswith(b"b%2C%0Aab%2C")
