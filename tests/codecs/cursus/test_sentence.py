from __future__ import annotations

import pytest

from dragoman.codecs.base import Unsayable
from dragoman.codecs.cursus.sentence import command, topic_of


def test_a_command_stands_in_an_envelope_without_a_topic() -> None:
    said = b"".join(command("DO", b" message=", b"x y", topic="t", left_out=None, n=0))
    assert said == b"\0\0DO topic=t n=0 message=x y"


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "a\0b", " "])
def test_what_nothing_can_quote_is_unsayable(value: str) -> None:
    with pytest.raises(Unsayable):
        command("DO", topic=value)


def test_topics_have_names() -> None:
    assert topic_of("default", "t") == "t"
    assert topic_of("other", "t") == "other/t"
    with pytest.raises(Unsayable):
        topic_of("default", 1)
