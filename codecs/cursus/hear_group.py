"""What a Cursus server says of groups to who looks at them, in core's vocabulary; of either
generation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.rfc3339 import time_us_of
from dragoman.core import calls
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.core.calls import Key

_LISTED: Final = re.compile(r"OK count=\d{1,10} groups=(\S*)")


def hear_group(
    request: calls.DescribeGroup | calls.ListGroups, text: str
) -> calls.GroupDescribed | calls.GroupsListed:
    """The reply to a request.

    Raises:
        ProtocolError: The text is none.
    """
    try:
        if isinstance(request, calls.DescribeGroup):
            return calls.GroupDescribed(_described(json.loads(text)))
        if (found := _LISTED.fullmatch(text)) is not None:
            names = [name for name in found[1].split(",") if name]
            topic = "" if request.topic is None else request.topic
            return calls.GroupsListed([_group(request.namespace, topic, name) for name in names])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as fault:
        raise ProtocolError(f"not a group: {fault!r}") from None
    raise ProtocolError(f"not a list of groups: {text[:64]!r}")


def _described(told: dict[str, Any]) -> calls.GroupDescription:
    group = _group(*split_flat(str(told["topic_name"])), str(told["group_name"]))
    group.generation = int(told["generation"])
    group.partition_count = int(told["partition_count"])
    group.members = [
        calls.MemberDescription(
            str(member["member_id"]),
            "",
            tuple([int(partition) for partition in member["assignments"] or ()]),
            bound=False,
            heard_us=time_us_of(str(member.get("last_heartbeat", ""))),
        )
        for member in told["members"] or ()
    ]
    group.dealt_us = time_us_of(str(told.get("last_rebalance", "")))
    return group


def _group(namespace: Key, topic: Key, name: str) -> calls.GroupDescription:
    """A group of which only the name is known."""
    return calls.GroupDescription(
        namespace=str(namespace),
        topic=str(topic),
        name=name,
        number=0,
        generation=0,
        assignor=calls.Assignor.ROUND_ROBIN,
        partition_count=0,
        members=[],
    )
