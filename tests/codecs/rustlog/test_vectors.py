"""Every vector of the specification, played three ways."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.vectors import SPECS, WAYS, load_vectors, play

if TYPE_CHECKING:
    from support.vectors import Vector

VECTORS = load_vectors("rustlog")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_vector(vector: Vector, how: str) -> None:
    play(vector, how)


def test_every_vector_shows_a_clause_that_exists() -> None:
    text = (SPECS / "rustlog" / "protocol.md").read_text()
    clauses = set(re.findall(r"\*\*(RUS-[0-9.]+)\*\*", text))
    assert {vector.clause for vector in VECTORS} <= clauses
