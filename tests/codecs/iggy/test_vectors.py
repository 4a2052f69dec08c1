"""Every vector of specs/iggy, three ways."""

from __future__ import annotations

import pytest

from support.vectors import WAYS, Vector, load_vectors, play


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", load_vectors("iggy"), ids=str)
def test_the_server_answers_as_the_vector_says(vector: Vector, how: str) -> None:
    play(vector, how)
