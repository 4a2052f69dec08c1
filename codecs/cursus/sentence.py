"""A text command as a client writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.base import Unsayable
from dragoman.core.name import flat_name

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer
    from dragoman.core.calls import Key


def topic_of(namespace: Key, topic: Key) -> str:
    """The topic's name as this dialect writes it."""
    if not isinstance(namespace, str) or not isinstance(topic, str):
        raise Unsayable("Cursus names topics; it has no numbers for them")
    return flat_name(namespace, topic)


def command(keyword: str, *tail: Buffer, **arguments: object) -> list[Buffer]:
    """A command in an envelope without a topic; arguments that are None are left out.

    Raises:
        Unsayable: An argument is empty or has white space, which nothing can quote.
    """
    words = [keyword]
    for name, value in arguments.items():
        if value is None:
            continue
        text = str(value)
        if not text or text.split() != [text] or "\0" in text:
            raise Unsayable(f"a Cursus {name} is neither empty nor has white space: {text!r}")
        words.append(f"{name}={text}")
    return [b"\0\0", " ".join(words).encode(), *tail]
