"""Every vector of V1, three ways, exact to the byte; and every clause that they name exists."""

from __future__ import annotations

import re

import pytest

from support.vectors import SPECS, WAYS, Vector, load_vectors, play

VECTORS = load_vectors("v1")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_the_server_answers_each_vector_exactly(vector: Vector, how: str) -> None:
    play(vector, how)


def test_every_vector_names_a_clause_of_the_specification() -> None:
    text = (SPECS / "v1" / "protocol.md").read_text()
    clauses = set(re.findall(r"\*\*(V1-\d+\.\d+)\*\*", text))
    assert {vector.clause for vector in VECTORS} <= clauses
