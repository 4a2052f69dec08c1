"""The answer of DESCRIBE: a topic, its partitions and its settings as indented JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from dragoman.codecs.cursus.setting import words_of
from dragoman.core.calls import Role

if TYPE_CHECKING:
    from dragoman.core.calls import PartitionDescription, TopicConfig, TopicDescription

_HOUR_MS = 3_600_000


def described_json(topic: TopicDescription, name: str, address: str) -> str:
    """The whole answer.

    Args:
        name: The topic's, as it was asked for.
        address: Where the partitions are led from.
    """
    return orjson.dumps(
        {
            "status": "OK",
            "topic": name,
            "partitions": [_partition(partition, address) for partition in topic.partitions],
            "policy": _policy(topic.config),
        },
        option=orjson.OPT_INDENT_2,
    ).decode()


def _partition(partition: PartitionDescription, address: str) -> dict[str, Any]:
    return {
        "id": partition.partition,
        "leader": address if partition.role is Role.LEADER else "",
        "replicas": [address],
        "isr": [address],
        "leo": partition.log_end_offset,
        "hwm": partition.high_watermark,
    }


def _policy(config: TopicConfig) -> dict[str, Any]:
    return {
        "partitioner": "hash_key",
        "auth_policy": "open",
        "retention_hours": config.retention_ms // _HOUR_MS,
        "retention_bytes": config.retention_bytes,
    } | {name: True if word == "true" else int(word) for name, word in words_of(config).items()}
