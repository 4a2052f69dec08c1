"""A client that reached the wrong port says what it seems to have reached."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.registry import dialect

ANSWERS = {
    "a V1 line": b"V1|0|ERR|code=1\n",
    "an HTTP answer": b"HTTP/1.1 400 Bad Request\r\n",
}


@pytest.mark.parametrize("name", ["cursus", "iggy", "rustlog"])
@pytest.mark.parametrize("seen", ANSWERS)
def test_an_answer_of_another_wire_is_named(name: str, seen: str) -> None:
    with pytest.raises(ProtocolError, match=f" bytes; it looks like {seen}$"):
        dialect(name).speak({}).receive(ANSWERS[seen])


def test_iggy_names_an_answer_with_a_big_endian_length() -> None:
    with pytest.raises(ProtocolError, match="big-endian length"):
        dialect("iggy").speak({}).receive(b"\0\0\0\x0eERROR: unheard")
