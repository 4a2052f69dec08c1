"""Names, and how flat dialects write a namespace."""

from __future__ import annotations

import pytest

from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.name import checked_name, flat_name, split_flat


@pytest.mark.parametrize(
    "name", ["a", "orders.eu-1_x", "größe", "日本", "...", "x" * 255, "é" * 127, "0"]
)
def test_a_legal_name_is_itself(name: str) -> None:
    assert checked_name(name, "topic") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a b",
        "a/b",
        "a\n",
        "\0",
        "x" * 256,
        "é" * 128,
        "e\u0301",
        "\udcff",
        "a:b",
        "\u200b",
    ],
)
def test_an_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(EngineError) as refused:
        checked_name(name, "topic")
    assert refused.value.code is ErrorCode.INVALID_NAME


@pytest.mark.parametrize(
    ("flat", "namespace", "topic"),
    [
        ("t", "default", "t"),
        ("n/t", "n", "t"),
        ("n/t/u", "n", "t/u"),
        ("/t", "", "t"),
        ("n/", "n", ""),
    ],
)
def test_a_flat_name_is_split_at_the_first_slash(flat: str, namespace: str, topic: str) -> None:
    assert split_flat(flat) == (namespace, topic)


@pytest.mark.parametrize(("namespace", "topic"), [("default", "t"), ("n", "t")])
def test_flat_names_are_split_back(namespace: str, topic: str) -> None:
    assert split_flat(flat_name(namespace, topic)) == (namespace, topic)
