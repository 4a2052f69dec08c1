"""Which group a request is about, and what the table says to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.groups.group import TABLE, Event, Standing

if TYPE_CHECKING:
    from dragoman.core.calls import Key
    from dragoman.core.directory import Directory
    from dragoman.core.groups.group import Group, Rule
    from dragoman.core.groups.groups import Groups, Home


class Place(NamedTuple):
    """Which group a request is about, whether there is one or not.

    Attributes:
        namesake: Another topic of the namespace that has a group of this name, where this one has
            none.
    """

    namespace_number: int
    topic: str
    name: str
    home: Home | None
    group: Group | None
    namesake: Home | None


def find(
    directory: Directory,
    groups: Groups,
    namespace: Key,
    topic: Key,
    name: str,
    number: int = 0,
    *,
    lenient: bool = False,
) -> Place:
    """Finds the group of a request; its topic need not exist where both are named.

    Args:
        number: Where it is not 0, the group's number stands for its name.
        lenient: A namespace that is missing has no groups; otherwise it is refused.

    Raises:
        EngineError: UNKNOWN_NAMESPACE, UNKNOWN_TOPIC.
    """
    if not isinstance(topic, str):
        found = directory.topic(namespace, topic)
        namespace_number = found.namespace.number
        topic = found.state.name
    elif lenient and namespace not in directory.catalog.namespaces and isinstance(namespace, str):
        return Place(0, topic, name, None, None, None)
    else:
        namespace_number = directory.namespace(namespace).number
    home = groups.home(namespace_number, topic)
    group = None
    if number:
        group = None if home is None else home.by_number.get(number)
        name = str(number) if group is None else group.name
    if home is not None and group is None:
        group = home.by_name.get(name)
    namesake = groups.namesake(namespace_number, name) if group is None else None
    return Place(namespace_number, topic, name, home, group, namesake)


def rule(place: Place, member: str, event: Event, number: int = 0) -> Rule:
    """What the table says.

    Args:
        number: The generation or the partition that the event names.

    Raises:
        EngineError: It refuses the event.
    """
    group = place.group
    if group is not None:
        standing = group.standing(member)
    else:
        standing = Standing.MISSING if place.namesake is None else Standing.ELSEWHERE
    found = TABLE[event][standing]
    if found.refusal is not None:
        raise _refusal(place, member, found.refusal, number)
    return found


def not_owner(group: Group, partition: int) -> EngineError:
    """The refusal of a commit to a partition of another member."""
    return EngineError(
        ErrorCode.NOT_OWNER,
        "the member does not own the partition",
        partition=partition,
        generation=group.generation,
    )


def _refusal(place: Place, member: str, code: ErrorCode, number: int) -> EngineError:
    name, group = place.name, place.group
    if code is ErrorCode.UNKNOWN_MEMBER:
        generation = 0 if group is None else group.generation
        return EngineError(
            code, "the group has no such member", member=member, group=name, generation=generation
        )
    if code is ErrorCode.GROUP_TOPIC_MISMATCH and place.namesake is not None:
        return EngineError(
            code,
            "the group reads another topic",
            group=name,
            expected=place.namesake.topic,
            actual=place.topic,
        )
    if code is ErrorCode.STALE_GENERATION and group is not None:
        return EngineError(
            code,
            f"the group is in generation {group.generation}",
            current=group.generation,
            requested=number,
        )
    if code is ErrorCode.NOT_OWNER and group is not None:
        return not_owner(group, number)
    if code is ErrorCode.GROUP_EXISTS:
        return EngineError(code, "the topic has such a group", group=name)
    return EngineError(code, "there is no such group", group=name)
