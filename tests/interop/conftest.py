"""The published Python clients of Cursus, a version in an environment of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.environment import python_with

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ["0.1.0", "0.1.1"]


@pytest.fixture(params=VERSIONS)
def client(request: pytest.FixtureRequest) -> Path:
    """The interpreter that has one version of the client."""
    version: str = request.param
    return python_with(f"cursus-client=={version}")


@pytest.fixture(scope="session")
def clients() -> dict[str, Path]:
    """All of them by version."""
    return {version: python_with(f"cursus-client=={version}") for version in VERSIONS}
