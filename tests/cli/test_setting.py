"""Keys on the command line."""

from __future__ import annotations

import pytest

from dragoman.cli.setting import read_pairs
from dragoman.gateway.table import ConfigError


def test_a_value_may_hold_what_takes_pairs_apart() -> None:
    assert read_pairs(("a.b=1", "c=x=y")) == {"a.b": "1", "c": "x=y"}


def test_a_key_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="write key=value"):
        read_pairs(("a.b",))
