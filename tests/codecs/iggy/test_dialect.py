from __future__ import annotations

import pytest

from dragoman.codecs.iggy.dialect import DIALECT
from dragoman.codecs.registry import dialect
from dragoman.core.error import ErrorCode


def test_the_registry_knows_the_dialect() -> None:
    assert dialect("iggy") is DIALECT
    assert DIALECT.port == 8090


def test_its_errors_are_total() -> None:
    assert set(DIALECT.errors) == set(ErrorCode)


def test_it_takes_no_options() -> None:
    with pytest.raises(ValueError, match="unknown option 'x'"):
        DIALECT.options({"x": 1})
