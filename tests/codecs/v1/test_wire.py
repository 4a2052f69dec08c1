"""The grammar says what the V1 document says."""

from __future__ import annotations

import sys
import unicodedata

from dragoman.codecs.v1.wire import COMMANDS, SPACES
from support.vectors import SPECS


def test_white_space_is_unicode_white_space() -> None:
    separators = {chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) == "Zs"}
    assert set(SPACES) == separators | set("\t\n\v\f\r\x85\u2028\u2029")


def test_usage_texts_name_every_argument() -> None:
    usage = COMMANDS["PRODUCE"].usage
    assert usage == "PRODUCE requires: <topic> <key>:<value> [acks=0|1|all]"
    assert COMMANDS["PRODUCE"].counts == (2, 3)
    assert COMMANDS["COMMIT"].counts == (6, 6)


def test_the_specification_has_every_usage_and_message() -> None:
    text = " ".join((SPECS / "v1" / "protocol.md").read_text().split())
    for command in COMMANDS.values():
        shared = command.usage.replace(command.name, "<COMMAND>", 1)
        assert command.usage in text or shared in text
        for argument in command.arguments:
            assert argument.wrong in text, argument
