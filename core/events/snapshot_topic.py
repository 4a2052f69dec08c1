"""The topic in which the snapshots of another topic's streams are kept.

It is an ordinary compacted topic of the same namespace with as many partitions, whose records have
the stream as their key and the state as their value. Its name says whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.core.calls import TopicConfig
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.name import NAME_BYTES_MAX

if TYPE_CHECKING:
    from dragoman.core.catalog import TopicState
    from dragoman.core.directory import Directory
    from dragoman.core.partition import Topic

PREFIX: Final = "__snapshots."

_FOR_EVER: Final = (1 << 63) - 1


def snapshot_config() -> TopicConfig:
    """Its settings: the newest of each key is kept for ever, whatever the server does by default
    with older records."""
    return TopicConfig(compact=True, retention_ms=_FOR_EVER, retention_bytes=_FOR_EVER)


def snapshot_name(state: TopicState, name: str = "") -> str:
    """Its name for a topic, or for one that is to have another name."""
    return PREFIX + (name or state.name)


def new_snapshot_name(state: TopicState, name: str = "") -> str:
    """The same, where a topic of that name is to be made.

    Raises:
        EngineError: INVALID_NAME: it would be longer than names may be.
    """
    told = snapshot_name(state, name)
    if len(told.encode()) > NAME_BYTES_MAX:
        raise EngineError(
            ErrorCode.INVALID_NAME,
            f"streams of a topic whose name has more than {NAME_BYTES_MAX - len(PREFIX)} bytes "
            "have no snapshots",
        )
    return told


def find_snapshots(directory: Directory, topic: Topic) -> Topic | None:
    """The topic of a topic's snapshots; None where none was saved."""
    if not topic.state.config.get("event_sourcing"):
        return None
    state = topic.namespace.topics.get(snapshot_name(topic.state))
    if state is None or not state.config.get("compact"):
        return None
    return directory.topics[state.topic_id]
