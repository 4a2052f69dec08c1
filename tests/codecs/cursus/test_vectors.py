"""Every vector of specs/cursus, played three ways."""

from __future__ import annotations

import re

import pytest

from support.vectors import SPECS, WAYS, Vector, load_vectors, play

VECTORS = load_vectors("cursus")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_a_vector_is_answered_as_written(vector: Vector, how: str) -> None:
    play(vector, how)


def test_every_vector_names_a_clause_that_is_there() -> None:
    clauses = set(re.findall(r"\*\*(CUR-\w\d+)\*\*", (SPECS / "cursus/protocol.md").read_text()))
    assert {vector.clause for vector in VECTORS} <= clauses
