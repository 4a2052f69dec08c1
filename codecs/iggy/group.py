"""Consumer groups as this dialect has them: by number, with members that are connections.

A member shows as a number. A connection of this dialect shows as its client id, which is the CRC-32
of its address, as the server of the time made it; a member of another dialect as xxHash32 of its
id.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from dragoman.codecs.base import Unsayable
from dragoman.codecs.iggy import command as cmd
from dragoman.codecs.iggy import error, wire
from dragoman.codecs.iggy.message import Bad
from dragoman.codecs.iggy.xxhash import xxh32
from dragoman.core import calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.core.calls import GroupDescription, Key, MemberDescription, Request

DIALECT_NAME: Final = "iggy"
NUMBER_MAX: Final = (1 << 32) - 1


def member_id(peer: tuple[str, int], token: bytes) -> str:
    """What a connection is called as a member: its client id, and what no other connection has."""
    host, port = peer
    return f"{crc32(f'{host}:{port}'.encode())}-{token.hex()}"


def member_number(member: MemberDescription) -> int:
    """The number by which a member shows."""
    if member.dialect == DIALECT_NAME:
        number = member.member.partition("-")[0]
        if number.isascii() and number.isdigit() and int(number) <= NUMBER_MAX:
            return int(number)
    return _hashed(member.member)


@lru_cache(maxsize=1024)
def _hashed(member: str) -> int:
    return xxh32(member.encode())


def group_number(group: str, number: int) -> int:
    """The number of a group or consumer, which is all that the wire can name it by.

    Raises:
        Unsayable: It has only a name.
    """
    if number:
        return number
    if not (group.isascii() and group.isdigit()) or int(group) > NUMBER_MAX:
        raise Unsayable(f"a consumer named {group!r}: Iggy numbers them")
    return int(group)


def requested(code: int, stream: Key, topic: Key, number: int, member: str) -> Request:
    """What a command on one group asks for.

    Raises:
        Bad: A group with the number 0 is to be made.
    """
    name = str(number)
    match code:
        case cmd.CREATE_GROUP:
            if not number:
                raise Bad(error.INVALID_GROUP_ID, "a group id of 0")
            return calls.CreateGroup(topic, name, number, stream)
        case cmd.DELETE_GROUP:
            return calls.DeleteGroup(topic, name, stream, number)
        case cmd.JOIN_GROUP:
            return calls.JoinGroup(
                topic,
                name,
                member,
                stream,
                bound=True,
                must_exist=True,
                group_number=number,
            )
        case cmd.LEAVE_GROUP:
            return calls.LeaveGroup(topic, name, member, None, stream, number)
    return calls.DescribeGroup(topic, name, stream, number)


def _record(group: GroupDescription) -> dict[str, Any]:
    return {
        "number": group.number,
        "partitions": group.partition_count,
        "members": len(group.members),
    }


def listed(groups: Sequence[GroupDescription]) -> bytes:
    """The body of GET_CONSUMER_GROUPS."""
    return bytes(wire.GROUPS.build([_record(group) for group in groups]))


def described(group: GroupDescription) -> bytes:
    """The body of GET_CONSUMER_GROUP."""
    members = [
        {
            "number": member_number(member),
            "partitions": [partition + 1 for partition in member.partitions],
        }
        for member in group.members
    ]
    return bytes(wire.GROUP_DETAILS.build({"group": _record(group), "members": members}))
