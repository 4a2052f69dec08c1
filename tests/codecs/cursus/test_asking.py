"""Every command that is told by HELP is served; the rest is refused by its name."""

from __future__ import annotations

import pytest

from dragoman.codecs.cursus.asking import SERVED
from dragoman.codecs.cursus.command import POSITIONS, UNSERVED
from support.asked import refused


def test_every_known_command_but_exit_has_a_function() -> None:
    assert SERVED.keys() == POSITIONS.keys() - {"EXIT"}


@pytest.mark.parametrize("keyword", sorted(UNSERVED))
def test_a_command_that_is_not_served_is_refused_by_name(keyword: str) -> None:
    assert refused(f"{keyword} topic=t") == f"unsupported command={keyword}"
