"""Topic settings at rest."""

from __future__ import annotations

import pytest

from dragoman.core.calls import TopicConfig
from dragoman.core.describe import config_at_rest, config_from


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        (TopicConfig(), {}),
        (TopicConfig(retention_ms=5), {"retention_ms": 5}),
        (TopicConfig(1, 2, True), {"retention_ms": 1, "retention_bytes": 2, "idempotent": True}),
        (
            TopicConfig(compact=True, tombstone_ms=7, dedupe_ms=8),
            {"compact": True, "tombstone_ms": 7, "dedupe_ms": 8},
        ),
    ],
)
def test_settings_are_stored_without_their_defaults_and_read_back(
    config: TopicConfig, stored: dict[str, int | bool]
) -> None:
    assert config_at_rest(config) == stored
    assert config_from(stored) == config


def test_settings_of_a_later_version_are_passed_over() -> None:
    assert config_from({"unheard_of": 1}) == TopicConfig()
