"""Names of namespaces, topics and groups, and how flat dialects write a namespace.

A topic's identity is (namespace, name). Dialects without namespaces see the default namespace bare
and every other one as `namespace/topic`. Names never become paths: directories are named by id.
"""

from __future__ import annotations

import re
import unicodedata

from dragoman.core.error import EngineError, ErrorCode

DEFAULT_NAMESPACE = "default"
DEFAULT_NAMESPACE_NUMBER = 4_294_967_295
"""The number by which numbering dialects see the default namespace; never given to another."""

NAME_BYTES_MAX = 255
_LEGAL = re.compile(r"[\w.\-]+")


def checked_name(name: str, what: str) -> str:
    """Returns the name, or refuses it.

    Args:
        name: 1-255 bytes of UTF-8: NFC Unicode word characters, `.` and `-`; not `.` or `..`.
        what: The noun for the message: "topic", "namespace" or "group".

    Raises:
        EngineError: INVALID_NAME.
    """
    if (
        not _LEGAL.fullmatch(name)
        or name in (".", "..")
        or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX
        or not unicodedata.is_normalized("NFC", name)
    ):
        raise EngineError(
            ErrorCode.INVALID_NAME,
            f"a {what} name is 1-{NAME_BYTES_MAX} bytes of letters, digits, '_', '.' and '-'",
        )
    return name


def split_flat(name: str) -> tuple[str, str]:
    """Splits a flat dialect's topic name into (namespace, topic)."""
    namespace, slash, topic = name.partition("/")
    return (namespace, topic) if slash else (DEFAULT_NAMESPACE, name)


def flat_name(namespace: str, topic: str) -> str:
    """Writes (namespace, topic) as a flat dialect sees it; the inverse of `split_flat`."""
    return topic if namespace == DEFAULT_NAMESPACE else f"{namespace}/{topic}"
