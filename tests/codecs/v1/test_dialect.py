"""The dialect's facts and options."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codecs.registry import dialect
from dragoman.codecs.v1.dialect import DIALECT
from dragoman.core.error import ErrorCode


def test_the_registry_knows_the_dialect() -> None:
    assert dialect("v1") is DIALECT
    assert DIALECT.port == 9092
    assert DIALECT.limits.frame_bytes_max == 2 * 1024 * 1024
    assert DIALECT.limits.reply_bytes_max == 1024 * 1024
    assert DIALECT.idle_timeout_s == 0


def test_its_errors_are_total() -> None:
    assert set(DIALECT.errors) == set(ErrorCode)


def test_options_have_defaults() -> None:
    assert DIALECT.options({}) == {
        "partitions": 3,
        "escape_marker": True,
        "escape_spaces": False,
        "replication": "loopback",
    }
    assert DIALECT.options({"partitions": 7})["partitions"] == 7


@pytest.mark.parametrize("given", [True, "true"])
def test_replication_is_allowed_in_a_file_or_a_variable(given: bool | str) -> None:
    assert DIALECT.options({"replication": given})["replication"] is True


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"x": 1}, "unknown option 'x'"),
        ({"partitions": 0}, "from 1 to 1024"),
        ({"partitions": True}, "type int"),
        ({"escape_marker": "yes"}, "type bool"),
        ({"replication": "yes"}, "true, false or 'loopback'"),
        ({"replication": 1}, "true, false or 'loopback'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DIALECT.options(given)
