"""Topics: made, renamed, grown, shrunk, deleted and listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import (
    IfExists,
    TopicConfig,
    TopicCreated,
    TopicDeleted,
    TopicDescribed,
    TopicsListed,
)
from dragoman.core.change import TopicDropped, TopicPut
from dragoman.core.describe import config_at_rest, revealed_by
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.events.snapshot_topic import find_snapshots, new_snapshot_name
from dragoman.core.name import checked_name
from dragoman.core.number import TOPIC_NUMBER_MAX, next_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import (
        AddPartitions,
        CreateTopic,
        DeleteTopic,
        DescribeTopic,
        Key,
        ListTopics,
        RemovePartitions,
        UpdateTopic,
    )
    from dragoman.core.catalog import NamespaceState, TopicState
    from dragoman.core.clock import Now
    from dragoman.core.describe import Describer
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.waiting import Waiting

_SETTING_MAX = (1 << 63) - 1


class Topics:
    """Serves every request about topics.

    Attributes:
        on_dropped: Told of the partitions that a request removed, so that who waits there hears it.
    """

    def __init__(
        self,
        options: EngineOptions,
        directory: Directory,
        describer: Describer,
        waiting: Waiting,
        on_dropped: Callable[[list[Partition]], None],
    ) -> None:
        self._options = options
        self._directory = directory
        self._describer = describer
        self._waiting = waiting
        self._on_dropped = on_dropped

    def create_topic(self, request: CreateTopic, client: Client, now: Now) -> Outcome:
        """Makes a topic, or does what `if_exists` says."""
        directory = self._directory
        name = checked_name(request.topic, "topic")
        namespace = directory.namespace(request.namespace)
        known = namespace.topics.get(name)
        if known is not None and request.if_exists is not IfExists.REFUSE:
            topic = directory.topics[known.topic_id]
            if request.if_exists is IfExists.GROW:
                self._grow_to(topic, request.partitions, now)
            return self._created(topic, client)
        if request.number:
            if not 0 < request.number <= TOPIC_NUMBER_MAX:
                raise EngineError(
                    ErrorCode.INVALID_NUMBER, f"a topic number is 1 to {TOPIC_NUMBER_MAX}"
                )
            if request.number in namespace.by_number:
                raise EngineError(
                    ErrorCode.TOPIC_NUMBER_EXISTS,
                    "a topic of this namespace has this number",
                    number=request.number,
                )
        if known is not None:
            raise EngineError(ErrorCode.TOPIC_EXISTS, "there is such a topic", topic=name)
        topic = self._create(
            namespace, name, request.partitions, request.number, request.config, now
        )
        return self._created(topic, client)

    def topic_or_new(self, namespace: Key, topic: Key, partitions: int, now: Now) -> Topic:
        """The topic; made with so many partitions where it is missing and `partitions` is not 0.

        A namespace is never made this way, and neither is a topic that is named by a number.
        """
        try:
            return self._directory.topic(namespace, topic)
        except EngineError as error:
            if (
                error.code is not ErrorCode.UNKNOWN_TOPIC
                or partitions <= 0
                or not isinstance(topic, str)
            ):
                raise
        home = self._directory.namespace(namespace)
        return self._create(home, checked_name(topic, "topic"), partitions, 0, None, now)

    def create_internal(
        self, namespace: NamespaceState, name: str, partitions: int, config: TopicConfig, now: Now
    ) -> Topic:
        """Makes a topic that the engine needs itself.

        Raises:
            EngineError: As for a CreateTopic.
        """
        _check_free(namespace, name)
        return self._create(namespace, name, partitions, 0, config, now)

    def update_topic(self, request: UpdateTopic, client: Client, now: Now) -> Outcome:
        """Renames a topic or changes its settings."""
        topic = self._directory.topic(request.namespace, request.topic)
        state = topic.state
        name = state.name if request.name is None else checked_name(request.name, "topic")
        if name != state.name and name in topic.namespace.topics:
            raise EngineError(ErrorCode.TOPIC_EXISTS, "there is such a topic", topic=name)
        config = state.config if request.config is None else _checked_config(request.config)
        if bool(config.get("event_sourcing")) != bool(state.config.get("event_sourcing")):
            raise EngineError(
                ErrorCode.UNSUPPORTED, "whether a topic holds streams of events is decided once"
            )
        if request.retention_ms is not None:
            alone = _checked_config(TopicConfig(retention_ms=request.retention_ms))
            # At rest a setting of 0 is left out.
            config = {key: value for key, value in config.items() if key != "retention_ms"} | alone
        self._directory.check_writable()
        snapshots = find_snapshots(self._directory, topic) if name != state.name else None
        if snapshots is not None:
            new_name = new_snapshot_name(state, name)
            _check_free(topic.namespace, new_name)
            self._put(snapshots.state, name=new_name)
        self._put(state, name=name, config=config)
        return self._created(topic, client)

    def add_partitions(self, request: AddPartitions, client: Client, now: Now) -> Outcome:
        """Appends partitions to a topic."""
        topic = self._directory.topic(request.namespace, request.topic)
        if request.count < 1:
            raise EngineError(ErrorCode.INVALID_PARTITION_COUNT, "at least one partition is added")
        self._grow_to(topic, len(topic.partitions) + request.count, now)
        return self._created(topic, client)

    def remove_partitions(self, request: RemovePartitions, client: Client, now: Now) -> Outcome:
        """Removes a topic's highest partitions with their records."""
        topic = self._directory.topic(request.namespace, request.topic)
        if request.count < 1:
            raise EngineError(
                ErrorCode.INVALID_PARTITION_COUNT, "at least one partition is removed"
            )
        _check_count_may_change(topic)
        self._directory.check_writable()
        times = [partition.created_us for partition in topic.state.partitions]
        self._put(topic.state, created_us=times[: max(len(times) - request.count, 0)])
        return self._created(topic, client)

    def delete_topic(self, request: DeleteTopic, client: Client, now: Now) -> Outcome:
        """Deletes a topic; who waits there is told."""
        directory = self._directory
        topic = directory.topic(request.namespace, request.topic)
        directory.check_writable()
        sequence = 0
        for gone in filter(None, (find_snapshots(directory, topic), topic)):
            sequence = directory.apply_admin(TopicDropped(gone.state.topic_id))
            self._on_dropped(directory.fit(gone.state.topic_id))
        reply = TopicDeleted(topic.namespace.name, topic.state.name)
        return self._waiting.answer(client, reply, sequence)

    def list_topics(self, request: ListTopics, client: Client, now: Now) -> Outcome:
        """The topics of one namespace, or of all."""
        directory = self._directory
        if request.namespace is not None:
            namespaces = [directory.namespace(request.namespace)]
        else:
            by_number = directory.catalog.namespaces_by_number
            namespaces = [by_number[number] for number in sorted(by_number)]
        topics = [topic for home in namespaces for topic in self._describer.topics(home)]
        if request.names_only:
            # Of a hundred thousand partitions nothing is looked at.
            named = [self._describer.name(topic) for topic in topics]
            sequence = max([directory.sequence, *[topic.sequence for topic in topics]])
            return self._waiting.answer(client, TopicsListed(named), sequence)
        reply = TopicsListed([self._describer.topic(topic) for topic in topics])
        sequence = max([directory.sequence, *[revealed_by(topic) for topic in topics]])
        return self._waiting.answer(client, reply, sequence)

    def describe_topic(self, request: DescribeTopic, client: Client, now: Now) -> Outcome:
        """One topic with its partitions."""
        topic = self._directory.topic(request.namespace, request.topic)
        reply = TopicDescribed(self._describer.topic(topic))
        return self._waiting.answer(client, reply, revealed_by(topic))

    def _created(self, topic: Topic, client: Client) -> Outcome:
        reply = TopicCreated(self._describer.topic(topic))
        return self._waiting.answer(client, reply, revealed_by(topic))

    def _create(
        self,
        namespace: NamespaceState,
        name: str,
        partitions: int,
        number: int,
        config: TopicConfig | None,
        now: Now,
    ) -> Topic:
        directory = self._directory
        settings = {} if config is None else _checked_config(config)
        self._check_count(partitions, partitions)
        catalog = directory.catalog
        if len(catalog.topics) >= self._options.topics_max:
            raise EngineError(ErrorCode.LIMIT_REACHED, "there are too many topics")
        directory.check_writable()
        topic_id = catalog.topic_ids_used + 1
        directory.apply_admin(
            TopicPut(
                topic_id,
                namespace.number,
                number
                or next_number(namespace.numbers_used, namespace.by_number, TOPIC_NUMBER_MAX),
                name,
                now.wall_us,
                [now.wall_us] * partitions,
                settings,
            )
        )
        directory.fit(topic_id)
        return directory.topics[topic_id]

    def _grow_to(self, topic: Topic, count: int, now: Now) -> None:
        times = [partition.created_us for partition in topic.state.partitions]
        if count < len(times):
            raise EngineError(
                ErrorCode.PARTITIONS_CANNOT_SHRINK,
                f"the topic has {len(times)} partitions and cannot shrink to {count}",
                current=len(times),
                requested=count,
            )
        self._check_count(count, count - len(times))
        if count > len(times):
            _check_count_may_change(topic)
            self._directory.check_writable()
            self._put(topic.state, created_us=times + [now.wall_us] * (count - len(times)))

    def _put(
        self,
        state: TopicState,
        *,
        name: str | None = None,
        config: dict[str, int | bool] | None = None,
        created_us: list[int] | None = None,
    ) -> None:
        if created_us is None:
            created_us = [partition.created_us for partition in state.partitions]
        self._directory.apply_admin(
            TopicPut(
                state.topic_id,
                state.namespace_number,
                state.number,
                state.name if name is None else name,
                state.created_us,
                created_us,
                state.config if config is None else config,
            )
        )
        self._on_dropped(self._directory.fit(state.topic_id))

    def _check_count(self, count: int, added: int) -> None:
        limit = self._options.partitions_max
        if not 0 <= count <= limit:
            raise EngineError(
                ErrorCode.INVALID_PARTITION_COUNT,
                f"a topic has 0 to {limit} partitions",
                requested=count,
                limit=limit,
            )
        if self._directory.partition_count + added > self._options.partitions_total_max:
            raise EngineError(ErrorCode.LIMIT_REACHED, "there are too many partitions")


def _check_free(namespace: NamespaceState, name: str) -> None:
    if checked_name(name, "topic") in namespace.topics:
        raise EngineError(ErrorCode.TOPIC_EXISTS, "there is such a topic", topic=name)


def _check_count_may_change(topic: Topic) -> None:
    """Refuses for streams of events: their keys would be looked for in other partitions."""
    if topic.state.config.get("event_sourcing"):
        raise EngineError(
            ErrorCode.UNSUPPORTED,
            "the number of partitions of an event-sourcing topic stays: its streams would be split",
        )


def _checked_config(config: TopicConfig) -> dict[str, int | bool]:
    if config.event_sourcing and config.compact:
        raise EngineError(
            ErrorCode.UNSUPPORTED,
            "a topic that holds streams of events keeps them all and is not compacted",
        )
    fields = config_at_rest(config)
    for name, value in fields.items():
        if not 0 <= value <= _SETTING_MAX:
            raise EngineError(
                ErrorCode.MALFORMED, f"{name} of a topic is 0 or more, below 2^63", name=name
            )
    return fields
