"""Settings of a topic in words."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.setting import BadSetting, config_of, words_of
from dragoman.core.calls import TopicConfig


@pytest.mark.parametrize(
    "config",
    [
        TopicConfig(),
        TopicConfig(1, 2, True, True, 3, 4),
        TopicConfig(retention_ms=(1 << 63) - 1),
        TopicConfig(dedupe_ms=1_800_000),
    ],
)
def test_what_is_said_of_settings_is_understood_again(config: TopicConfig) -> None:
    said = {name: word.encode() for name, word in words_of(config).items()}
    assert config_of(said) == config


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [
        ("0", 0),
        ("7", 7),
        ("250ms", 250),
        ("45s", 45_000),
        ("30m", 1_800_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("9999999999999999999d", (1 << 63) - 1),
    ],
)
def test_times_have_units(text: str, wanted_ms: int) -> None:
    assert config_of({"dedupe": text.encode()}).dedupe_ms == wanted_ms


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5h", "1w", "1 h", "1H", "9" * 20, "1\n"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="invalid_tombstone"):
        config_of({"tombstone": text.encode()})


def test_hours_count_where_no_retention_is_named() -> None:
    assert config_of({"retention_hours": b"2"}).retention_ms == 7_200_000
    assert config_of({"retention_hours": b"2", "retention": b"5s"}).retention_ms == 5000
