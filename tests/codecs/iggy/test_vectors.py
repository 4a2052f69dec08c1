"""Every vector of specs/iggy, three ways."""

from __future__ import annotations

import pytest

from support.vectors import SPECS, WAYS, Vector, load_vectors, play


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", load_vectors("iggy"), ids=str)
def test_the_server_answers_as_the_vector_says(vector: Vector, how: str) -> None:
    play(vector, how)


def test_every_vector_shows_a_clause_of_the_protocol() -> None:
    text = (SPECS / "iggy" / "protocol.md").read_text()
    unknown = {v.clause for v in load_vectors("iggy") if f"**{v.clause}**" not in text}
    assert not unknown
