"""Commands about topics, and those that need no topic at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Asked
from dragoman.codecs.cursus.argument import (
    INT32,
    INT64,
    Bad,
    number_in,
    partition_of,
    settings,
    text_of,
    topic_of,
    value_of,
)
from dragoman.codecs.cursus.command import POSITIONS
from dragoman.codecs.cursus.legacy import WINDOW_MS
from dragoman.core import calls
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command
    from dragoman.codecs.cursus.translate import Tag

PARTITIONS_DEFAULT: Final = 4
COMMANDS = "OK commands=" + ",".join(POSITIONS)


def _create_topic(context: Context, command: Command, tag: Tag) -> Heard:
    values = command.values
    expected = 'missing_topic expected="CREATE topic=<name> [partitions=<N>]"'
    namespace, topic = topic_of(command, tag, expected)
    count = PARTITIONS_DEFAULT
    if "partitions" in values:
        wording = 'invalid_partitions reason="must be a positive integer"'
        count = number_in(values["partitions"], (1, INT32[1]), wording)
    config = settings(values)
    if context.is_legacy and "dedupe" not in values:
        config.dedupe_ms = WINDOW_MS
    request = calls.CreateTopic(
        topic, count, namespace, config=config, if_exists=calls.IfExists.GROW
    )
    return Asked(tag, request)


def _delete_topic(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    return Asked(tag, calls.DeleteTopic(topic, namespace))


def _delete_records(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    tag.partition = partition_of(value_of(command, "partition"))
    before = number_in(value_of(command, "before"), (-1, INT64[1]), "invalid_before")
    return Asked(tag, calls.DeleteRecords(topic, tag.partition, before, namespace))


def _list(context: Context, command: Command, tag: Tag) -> Heard:
    if command.values:
        namespace, topic = topic_of(command, tag)
        return Asked(tag, calls.DescribeTopic(topic, namespace))
    return Asked(tag, calls.ListTopics(names_only=True))


def _describe(context: Context, command: Command, tag: Tag) -> Heard:
    namespace, topic = topic_of(command, tag)
    return Asked(tag, calls.DescribeTopic(topic, namespace))


def _list_cluster(context: Context, command: Command, tag: Tag) -> Heard:
    raise Bad("distribution_not_enabled", ErrorCode.UNSUPPORTED)


def _find_coordinator(context: Context, command: Command, tag: Tag) -> Heard:
    text_of(command, "group")
    host, port = context.address
    return Asked(tag, calls.Answer(f"OK coordinator_id=standalone host={host} port={port}"))


def _help(context: Context, command: Command, tag: Tag) -> Heard:
    return Asked(tag, calls.Answer(COMMANDS))


TOPICS: Final[Mapping[str, Handler]] = {
    "CREATE": _create_topic,
    "DELETE": _delete_topic,
    "LIST": _list,
    "LIST_CLUSTER": _list_cluster,
    "DESCRIBE": _describe,
    "METADATA": _describe,
    "FIND_COORDINATOR": _find_coordinator,
    "DELETE_RECORDS": _delete_records,
    "HELP": _help,
}
"""Which function asks what each of these commands means."""
