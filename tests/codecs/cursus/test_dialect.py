"""The listener's options."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.cursus.dialect import DEFAULTS, DIALECT, options
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.codecs.registry import dialect


def test_nothing_given_is_the_defaults() -> None:
    assert options({}) == DEFAULTS


def test_what_is_given_stands() -> None:
    given = {
        "legacy_replies": True,
        "reply_layout": "l3",
        "empty_wait": "1s",
        "consume_style": "batch",
        "auto_create": 3,
        "compression": "snappy-block",
        "subscribe": "register",
        "push_records": 1000,
    }
    assert options(given) == {**DEFAULTS, **given}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"legacy": True}, "unknown option 'legacy'"),
        ({"legacy_replies": "yes"}, "legacy_replies is true or false"),
        ({"reply_layout": "l2"}, "reply_layout is auto, l3 or l1, not 'l2'"),
        ({"empty_wait": "2s"}, "empty_wait is a time of 0ms to 1s, not '2s'"),
        ({"empty_wait": "soon"}, "empty_wait is a time"),
        ({"empty_wait": 500}, "empty_wait is a time"),
        ({"consume_style": "rows"}, "frames or batch"),
        ({"auto_create": -1}, "auto_create"),
        ({"auto_create": True}, "auto_create"),
        ({"auto_create": 100_001}, "auto_create"),
        ({"compression": "rar"}, "compression is one of none, gzip, lz4, snappy, .* not 'rar'"),
        ({"compression": True}, "compression is one of"),
        ({"subscribe": "pull"}, "push or register, not 'pull'"),
        ({"push_records": 0}, "1 to 8192"),
        ({"push_records": 8193}, "1 to 8192"),
        ({"push_records": True}, "push_records is a number"),
    ],
)
def test_what_is_not_possible_is_refused_with_a_reason(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        options(given)


@pytest.mark.parametrize("name", ["none", "gzip", "lz4", "snappy", "snappy-block", "zstd"])
def test_a_listener_takes_the_name_of_every_compression(name: str) -> None:
    assert options({"compression": name})["compression"] == name


def test_a_client_has_the_option_of_a_compression() -> None:
    assert isinstance(DIALECT.speak({}), CursusSpeaker)
    assert isinstance(DIALECT.speak({"compression": "zstd"}), CursusSpeaker)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"compression": "rar"}, "cursus: compression is one of none, gzip"),
        ({"level": 9}, "cursus: unknown option 'level'; there is compression"),
    ],
)
def test_what_a_client_cannot_do_is_refused_with_a_reason(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DIALECT.speak(given)


@pytest.mark.parametrize("name", ["v1", "iggy", "rustlog"])
def test_clients_of_the_other_dialects_compress_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: unknown option 'compression'"):
        dialect(name).speak({"compression": "gzip"})


def test_the_listener_has_the_documents_numbers() -> None:
    assert (DIALECT.port, DIALECT.connections_max, DIALECT.idle_timeout_s) == (9000, 1000, 300)
    assert DIALECT.limits.frame_bytes_max == 64 * 1024 * 1024
