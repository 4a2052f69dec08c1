"""The mutants themselves: each says what it breaks and still fits the code that it breaks."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest


def _load() -> Any:
    path = Path(__file__).parent / "catch.py"
    spec = importlib.util.spec_from_file_location("mutants_catch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CATCH = _load()
MUTANTS = CATCH.mutants()
MUTANTS_MIN = 80


def test_there_are_as_many_as_were_promised() -> None:
    assert len(MUTANTS) >= MUTANTS_MIN


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patches")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code_and_names_tests_that_exist(mutant: Any) -> None:
    assert CATCH.applies(mutant) == ""
    named = [argument for argument in mutant.tests if argument.startswith("tests/")]
    assert named
    assert all((CATCH.ROOT / argument.split("::")[0]).exists() for argument in named)


def test_a_mutant_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no mutant nonsense"):
        CATCH.mutants(["nonsense"])
