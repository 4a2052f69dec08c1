"""The listener's options."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.cursus.dialect import DEFAULTS, DIALECT, options


def test_nothing_given_is_the_defaults() -> None:
    assert options({}) == DEFAULTS


def test_what_is_given_stands() -> None:
    given = {
        "legacy_replies": True,
        "consume_style": "batch",
        "auto_create": 3,
    }
    assert options(given) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"legacy": True}, "unknown option 'legacy'"),
        ({"legacy_replies": "yes"}, "legacy_replies is true or false"),
        ({"consume_style": "rows"}, "frames or batch"),
        ({"auto_create": -1}, "auto_create"),
        ({"auto_create": True}, "auto_create"),
        ({"auto_create": 100_001}, "auto_create"),
    ],
)
def test_what_is_not_possible_is_refused_with_a_reason(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        options(given)


def test_the_listener_has_the_documents_numbers() -> None:
    assert (DIALECT.port, DIALECT.connections_max, DIALECT.idle_timeout_s) == (9000, 1000, 300)
    assert DIALECT.limits.frame_bytes_max == 64 * 1024 * 1024
