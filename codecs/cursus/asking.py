"""What text commands ask for, in core's vocabulary; each with the tag that shapes its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Asked, HungUp, Refused
from dragoman.codecs.cursus.argument import Bad
from dragoman.codecs.cursus.ask_event import EVENTS
from dragoman.codecs.cursus.ask_group import GROUPS
from dragoman.codecs.cursus.ask_read import READING
from dragoman.codecs.cursus.ask_topic import TOPICS
from dragoman.codecs.cursus.ask_write import WRITING
from dragoman.codecs.cursus.command import POSITIONS
from dragoman.codecs.cursus.translate import Tag, printable
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command

SERVED: Final[Mapping[str, Handler]] = {**TOPICS, **WRITING, **READING, **GROUPS, **EVENTS}
_WITH_REST: Final = frozenset({"CONSUME", "STREAM", "BATCH_COMMIT"})
"""In the document's form: those that read have words of their own for too many values, and what
follows the positions of the last are its pairs."""


def ask(context: Context, command: Command, text: bytes) -> list[Heard]:
    """What a command asks for.

    Args:
        text: The whole command, for a refusal that quotes it.
    """
    tag = Tag(command.keyword, positional=command.positional)
    try:
        if command.keyword not in POSITIONS:
            raise Bad(f"unsupported command={command.keyword}", ErrorCode.UNSUPPORTED)
        if command.rest and command.positional and command.keyword not in _WITH_REST:
            raise Bad("")
        if command.keyword == "EXIT":
            tag.closes = True
            return [Asked(tag, calls.Answer("OK")), HungUp("EXIT")]
        heard = SERVED[command.keyword](context, command, tag)
        return heard if isinstance(heard, list) else [heard]
    except Bad as bad:
        code = bad.code
        wording = bad.wording
        if not wording:
            quoted = printable(text[:256].decode(errors="replace").strip())
            wording = f"unknown_command command={quoted}"
            code = ErrorCode.UNKNOWN_COMMAND
        tag.wording = wording
        fatal = tag.positional and command.keyword == "CONSUME"
        return [Refused(tag, Failure(code, wording.partition(" ")[0]), fatal)]
