"""The floors, as rules that fail the build: imports, the mirror of the test tree, sizes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("core", "codecs", "gateway", "clients", "simulation", "cli")
DIALECTS = ("cursus", "v1", "iggy", "rustlog")
LINES_MAX = 500
LONGER = {"core/batch.py": 550}
"""An allowance: batch.py begins with its grammar."""
FUNCTION_LINES_MAX = 70

MAY_IMPORT = {
    "core": {"core"},
    "codecs": {"core", "codecs"},
    "gateway": {"core", "codecs", "gateway"},
    "clients": {"core", "codecs", "clients"},
    "simulation": {"core", "codecs", "gateway", "simulation"},
    "cli": {"core", "codecs", "gateway", "clients", "simulation", "cli"},
}
"""Imports go down only: a lower floor can be read, tested and replaced without the upper ones."""

SHELL = {"trio", "trio_websocket", "socket", "selectors", "ssl", "select", "asyncio", "signal"}
"""Modules that wait or talk: only gateway and clients may; the rest stays a pure function."""

CLOCKS_AND_DICE = {"time", "random", "secrets", "uuid", "datetime"}
"""Core and codecs get both as arguments, so that a seed replays any failure."""

FILES = {"os", "pathlib", "io", "fcntl", "mmap", "shutil", "tempfile"}
"""Only core/storage touches files, so that durability is argued in one place."""


def sources(floor: str) -> list[Path]:
    return sorted(path for path in (ROOT / floor).rglob("*.py") if "kernels" not in path.parts)


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_between_floors_go_down_only(floor: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(floor)
        for name in sorted(imports(path))
        if name.startswith("dragoman.") and name.split(".")[1] not in MAY_IMPORT[floor]
    ]
    assert not wrong, f"a {floor} file may import {sorted(MAY_IMPORT[floor])} only: {wrong}"


@pytest.mark.parametrize("floor", ["core", "codecs"])
def test_core_and_codecs_neither_wait_nor_read_a_clock_nor_roll_dice(floor: str) -> None:
    banned = SHELL | CLOCKS_AND_DICE
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(floor)
        if path.parent.name != "storage"
        for name in sorted(roots(path) & banned)
    ]
    assert not wrong, f"time, chance and waiting are arguments on this floor: {wrong}"


@pytest.mark.parametrize("floor", ["core", "codecs"])
def test_only_storage_touches_files(floor: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(floor)
        if path.parent != ROOT / "core" / "storage" and path != ROOT / "codecs" / "declared.py"
        for name in sorted(roots(path) & FILES)
    ]
    assert not wrong, f"files belong to core/storage alone: {wrong}"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_never_imports_a_sibling(dialect: str) -> None:
    siblings = {f"dragoman.codecs.{name}" for name in DIALECTS if name != dialect}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(f"codecs/{dialect}")
        for name in sorted(imports(path))
        if any(name == sibling or name.startswith(sibling + ".") for sibling in siblings)
    ]
    assert not wrong, f"dialects meet in core, nowhere else: {wrong}"


@pytest.mark.parametrize("floor", ["gateway", "clients", "cli"])
def test_upper_floors_know_codecs_by_contract_only(floor: str) -> None:
    allowed = {"dragoman.codecs.base", "dragoman.codecs.registry", "dragoman.codecs.rendering"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(floor)
        for name in sorted(imports(path))
        if name.startswith("dragoman.codecs.")
        and not any(name == known or name.startswith(known + ".") for known in allowed)
    ]
    assert not wrong, f"a dialect's inside is its own; a fifth must not change this floor: {wrong}"


def test_only_the_gateway_and_the_clients_use_trio() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for floor in ("core", "codecs")
        for path in sources(floor)
        if "trio" in roots(path)
    ]
    assert not wrong


def test_every_test_file_mirrors_a_source_file() -> None:
    wrong = []
    for floor in FLOORS:
        for path in sorted((ROOT / "tests" / floor).rglob("test_*.py")):
            relative = path.relative_to(ROOT / "tests")
            source = ROOT / relative.parent / (path.stem.removeprefix("test_") + ".py")
            if not source.exists() and path.stem not in CROSS_CUTTING:
                wrong.append(str(relative))
    assert not wrong, f"no source file of that name stands where these tests say: {wrong}"


CROSS_CUTTING = {
    "test_differential",
    "test_vectors",
    "test_oracles",
    "test_every_dialect",
    "test_contract",
    "test_matrix",
    "test_shared_group",
    "test_watermark",
    "test_compacted",
    "test_compact_crashes",
    "test_exactly_once",
    "test_group_histories",
    "test_simulation",
}
"""Tests of a property that several files keep together; each name says which."""


def test_every_source_file_has_a_test_file() -> None:
    named = {path.stem.removeprefix("test_") for path in (ROOT / "tests").rglob("test_*.py")}
    texts = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    missing = []
    for floor in FLOORS:
        for path in sources(floor):
            if path.stem == "__init__" or path.stem in named:
                continue
            module = ".".join(("dragoman", *path.relative_to(ROOT).with_suffix("").parts))
            parent, _, leaf = module.rpartition(".")
            if module not in texts and not re.search(
                rf"from {re.escape(parent)} import [^\n]*\b{leaf}\b", texts
            ):
                missing.append(str(path.relative_to(ROOT)))
    assert not missing, f"no test file of that name and no test imports them: {missing}"


def test_files_and_functions_stay_short() -> None:
    wrong = []
    for floor in (*FLOORS, "bench"):
        for path in sources(floor):
            text = path.read_text()
            name = str(path.relative_to(ROOT))
            if (lines := text.count("\n")) > LONGER.get(name, LINES_MAX):
                wrong.append(f"{name}: {lines} lines")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    size = (node.end_lineno or node.lineno) - node.lineno + 1
                    if size > FUNCTION_LINES_MAX:
                        wrong.append(f"{name}: {node.name} has {size} lines")
    assert not wrong, f"over {LINES_MAX} lines a file or {FUNCTION_LINES_MAX} a function: {wrong}"
