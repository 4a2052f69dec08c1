"""What members, and those who look at groups, are told.

A command in the document's form hears less than one in the clients' form, and with `legacy_replies`
the words are those of brokers before July 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from dragoman.codecs.cursus.rejoin import is_told_by_reads
from dragoman.codecs.cursus.rfc3339 import time_of
from dragoman.codecs.cursus.translate import printable, words
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.codecs.cursus.translate import Tag

REBALANCE: Final = "REBALANCE_REQUIRED"
"""What members look for who are to join again."""
MOVED_ON: Final = frozenset(
    {
        ErrorCode.STALE_GENERATION,
        ErrorCode.UNKNOWN_MEMBER,
        ErrorCode.UNKNOWN_GROUP,
        ErrorCode.GROUP_TOPIC_MISMATCH,
    }
)
"""The failures that joining again makes good."""

GroupReply = (
    calls.HeartbeatAccepted
    | calls.OffsetCommitted
    | calls.OffsetFetched
    | calls.GroupJoined
    | calls.GroupLeft
    | calls.GroupCreated
    | calls.GroupDescribed
    | calls.GroupsListed
)
"""What `line` has words for; the frequent ones are looked for first."""


def line(tag: Tag, reply: GroupReply, *, legacy: bool) -> str:
    """The one line that answers a command of groups."""
    match reply:
        case calls.HeartbeatAccepted():
            return "OK" if tag.positional or legacy else _heard(reply.member, reply.generation)
        case calls.OffsetCommitted(count):
            return f"OK batched={count}" if tag.command == "BATCH_COMMIT" else "OK"
        case calls.OffsetFetched(_, offset):
            shown = max(offset or 0, 0)
            return str(shown) if legacy or tag.positional else f"OK offset={shown}"
        case calls.GroupJoined(member, generation, partitions):
            if tag.command == "SUBSCRIBE":
                return _made(tag, legacy=legacy)
            assignments = f"assignments=[{' '.join(map(str, partitions))}]"
            if tag.command == "SYNC_GROUP":
                return f"OK {assignments}"
            # One client matches this line whole, to the last bracket.
            return f"OK generation={generation} member={member} {assignments}"
        case calls.GroupLeft(member):
            if legacy:
                return f"✅ Left group '{printable(tag.group)}'"
            return f"OK group={tag.group} member={member} left=true"
        case calls.GroupCreated():
            return _made(tag, legacy=legacy)
        case calls.GroupDescribed(group):
            return status(group, legacy=legacy)
        case calls.GroupsListed(groups):
            names = sorted({group.name for group in groups})
            return f"OK count={len(names)} groups={','.join(names)}"


def refusal(tag: Tag, failure: Failure, *, legacy: bool) -> str | None:
    """The whole answer of a command of groups, or of a fenced read, that was refused; None where it
    is told like every other failure."""
    code = failure.code
    command = tag.command
    if code is ErrorCode.GROUP_EXISTS:
        return _made(tag, legacy=legacy)
    if tag.wording:
        return None
    if code in MOVED_ON:
        generation = failure.facts.get("current", failure.facts.get("generation", 0))
        if tag.is_fenced:
            return f"{REBALANCE} generation={generation}"
        if command == "HEARTBEAT":
            if tag.positional:
                return REBALANCE
            if is_told_by_reads(tag.member):
                return _heard(tag.member, generation)
        if code is ErrorCode.STALE_GENERATION:
            if tag.positional:
                requested = failure.facts.get("requested", 0)
                return f"ERROR: GEN_MISMATCH current={generation} requested={requested}"
            if command == "HEARTBEAT":
                return f"ERROR: {words(tag, failure)} {REBALANCE}"
        if command == "SYNC_GROUP" and code is ErrorCode.UNKNOWN_GROUP:
            code = ErrorCode.UNKNOWN_MEMBER
    return None if code is failure.code else f"ERROR: {words(tag, Failure(code))}"


def status(group: calls.GroupDescription, *, legacy: bool) -> str:
    """A group as GROUP_STATUS shows it."""
    shown: dict[str, Any] = {} if legacy else {"status": "OK"}
    shown |= {
        "group_name": group.name,
        "topic_name": group.topic,
        "state": "Stable" if group.members else "Dead",
        "generation": group.generation,
        "member_count": len(group.members),
        "partition_count": group.partition_count,
        "members": [
            {
                "member_id": member.member,
                "last_heartbeat": time_of(member.heard_us),
                "assignments": member.partitions,
            }
            for member in group.members
        ],
        "last_rebalance": time_of(group.dealt_us),
    }
    return orjson.dumps(shown).decode()


def _heard(member: str, generation: int | str) -> str:
    return f"OK member={member} generation={generation}"


def _made(tag: Tag, *, legacy: bool) -> str:
    """The answer of REGISTER_GROUP and of SUBSCRIBE."""
    topic, group = tag.topic, tag.group
    if tag.command == "SUBSCRIBE":
        if legacy:
            return f"✅ Subscribed to '{printable(topic)}' with group '{printable(group)}'"
        return f"OK topic={topic} group={group} subscribed=true"
    if legacy:
        return f"✅ Group '{printable(group)}' registered for topic '{printable(topic)}'"
    return f"OK group={group} topic={topic} registered=true"
