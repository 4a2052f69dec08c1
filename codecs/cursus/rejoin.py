"""Members who hear of a new generation where they read: the Java client, up to 0.1.0 at least.

At a heartbeat that is refused it stops its readers and then waits for one of them to raise a flag:
it is idle until it is started again. What makes it join again is a frame with the word
`REBALANCE_REQUIRED` where it waits for records. It is known by its members' names, which are UUIDs
(no other client's are); its later versions understand the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zlib import crc32

from dragoman.codecs.cursus.argument import generation_of, text_of

if TYPE_CHECKING:
    from dragoman.codecs.cursus.command import Command
    from dragoman.codecs.cursus.translate import Tag
    from dragoman.core import calls

_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MEMBER_CHARACTERS: Final = 41


def is_told_by_reads(member: str) -> bool:
    """Whether a member's id was made of a UUID."""
    return len(member) == _MEMBER_CHARACTERS and _NAME.fullmatch(member[:36]) is not None


def member_of(name: str) -> str | None:
    """The id of the member with this name, where that is a UUID: always the same, because such a
    name has one owner, who is the same member when it joins again; None for other names."""
    if _NAME.fullmatch(name) is None:
        return None
    return f"{name}-{crc32(name.encode()) % 10_000:04d}"


def fence(command: Command, tag: Tag, request: calls.Fetch | calls.Follow) -> None:
    """Has a reader's request refused once its group has moved on, where that is how it is told.

    Raises:
        Bad: The generation is no number.
    """
    member = command.values.get("member")
    if member is None or len(member) != _MEMBER_CHARACTERS or not request.group:
        return
    tag.member = text_of(command, "member")
    if is_told_by_reads(tag.member):
        tag.group = request.group
        tag.is_fenced = True
        request.member = tag.member
        request.generation = generation_of(command)
