"""Deliberate bugs of the engine, each of which the tests must catch: `make mutants`.

A mutant is a patch beside this file. The lines before its diff say what it breaks (`About:`), which
promise that is (`Rule:`) and which tests have to notice (`Tests:`, arguments for pytest; `Env:`
sets counts). Each is applied to a copy of the tree; a mutant whose tests still pass has survived,
and so has the promise's proof a hole. Before that the same tests must pass on a copy as it is, or
their failing would say nothing.

    python tests/mutants/catch.py [NAME ...]
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SECONDS_MAX = 150
"""A mutant that makes its tests hang is caught by their own time limit; this ends the rest."""
FIELDS = ("About", "Rule", "Tests")
REASON_CHARACTERS_MAX = 90
OURS = """
import sys
from pathlib import Path
import dragoman.cli.main, dragoman.codecs, dragoman.core, dragoman.gateway, dragoman.simulation
for name, module in sys.modules.items():
    if name.startswith("dragoman.") and module.__file__:
        assert Path(module.__file__).resolve().is_relative_to(Path.cwd()), module.__file__
"""
"""Fails where the code under test would not be the copy's."""


@dataclass(frozen=True)
class Mutant:
    """One deliberate bug.

    Attributes:
        about: What it breaks, in words.
        rule: The promise, as docs/STORAGE.md numbers it.
        tests: Arguments for pytest.
        environment: Counts of those tests.
    """

    path: Path
    about: str
    rule: str
    tests: tuple[str, ...]
    environment: dict[str, str]

    @property
    def name(self) -> str:
        """The patch's name without its ending."""
        return self.path.stem


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant: whether a test failed, which one, and after how long."""

    mutant: Mutant
    caught: bool
    how: str
    seconds: float


def mutants(names: list[str] | None = None) -> list[Mutant]:
    """All mutants in the order of their names, or those named.

    Raises:
        ValueError: A patch says too little about itself, or there is none of this name.
    """
    found = [_mutant(path) for path in sorted(HERE.glob("*.patch"))]
    if not names:
        return found
    by_name = {mutant.name: mutant for mutant in found}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ValueError(f"there is no mutant {unknown[0]}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names]


def _mutant(path: Path) -> Mutant:
    head = path.read_text().split("\ndiff --git ", 1)[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    missing = [field for field in FIELDS if not fields.get(field)]
    if missing:
        raise ValueError(f"{path.name} does not say its {missing[0]}")
    environment = dict(pair.split("=", 1) for pair in fields.get("Env", "").split())
    tests = tuple(fields["Tests"].split())
    return Mutant(path, fields["About"], fields["Rule"], tests, environment)


def applies(mutant: Mutant, tree: Path = ROOT, *, check: bool = True) -> str:
    """Applies the patch to a tree, or only looks whether it would; returns git's complaint."""
    done = subprocess.run(
        ["git", "apply", *(["--check"] if check else []), str(mutant.path)],
        cwd=tree,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def catch(mutant: Mutant, source: Path) -> Verdict:
    """Applies the mutant to a copy of the source and runs its tests there."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dragoman-mutant-") as place:
        tree = Path(place).resolve() / "tree"
        shutil.copytree(source, tree, symlinks=True)
        if complaint := applies(mutant, tree, check=False):
            return Verdict(mutant, False, f"the patch does not apply: {complaint}", 0.0)
        try:
            done = _pytest(tree, mutant)
        except subprocess.TimeoutExpired:
            return Verdict(mutant, False, f"hung for {SECONDS_MAX} s", time.monotonic() - began)
    how = _failed(done)
    caught = done.returncode == 1 and bool(how)
    return Verdict(mutant, caught, how if caught else _end(done), time.monotonic() - began)


def unsound(mutant: Mutant, source: Path) -> str:
    """What is wrong with a mutant's tests where nothing is broken; empty where they pass."""
    with tempfile.TemporaryDirectory(prefix="dragoman-mutant-") as place:
        tree = Path(place).resolve() / "tree"
        shutil.copytree(source, tree, symlinks=True)
        ours = [sys.executable, "-c", OURS]
        done = subprocess.run(
            ours, cwd=tree, env=_environment(tree, mutant), capture_output=True, text=True
        )
        if done.returncode == 0:
            done = _pytest(tree, mutant)
    return "" if done.returncode == 0 else _failed(done) or _end(done)


def _environment(tree: Path, mutant: Mutant) -> dict[str, str]:
    return {
        **os.environ,
        **mutant.environment,
        "PYTHONPATH": str(tree / "typings"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "300",
    }


def _pytest(tree: Path, mutant: Mutant) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [*command, *mutant.tests],
        cwd=tree,
        env=_environment(tree, mutant),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=SECONDS_MAX)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)  # with the processes that the tests began
            raise
        return subprocess.CompletedProcess(command, running.returncode, said)


def copy(tree: Path) -> None:
    """Copies what git knows of, or would, as it stands; later edits change no mutant's verdict."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if name and (source.is_symlink() or source.exists()):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, tree / name, follow_symlinks=False)


def _failed(done: subprocess.CompletedProcess[str]) -> str:
    """The first test that failed, and why; empty where none did."""
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if not failed:
        return ""
    test, _, reason = failed[0].removeprefix("FAILED ").partition(" - ")
    return f"{test.rpartition('::')[2]}: {reason[:REASON_CHARACTERS_MAX]}"


def _end(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == 0:
        return "its tests pass"
    lines = (done.stdout + (done.stderr or "")).strip().splitlines()
    return f"pytest ended with {done.returncode}: {lines[-1] if lines else 'it said nothing'}"


def main() -> int:
    """Catches the mutants that the command line names, or all."""
    chosen = mutants(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="dragoman-mutants-") as place:
        source = Path(place) / "source"
        copy(source)
        return tabulate(chosen, source)


def tabulate(chosen: list[Mutant], source: Path) -> int:
    """Looks whether the tests pass on the source, then prints a row a mutant as they end."""
    width = max([len(mutant.name) for mutant in chosen], default=0)
    survived = 0
    by_tests = {(mutant.tests, *sorted(mutant.environment.items())): mutant for mutant in chosen}
    looks = list(by_tests.values())
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        problems = pool.map(partial(unsound, source=source), looks)
        for mutant, problem in zip(looks, problems, strict=True):
            if problem:
                print(f"the tests of {mutant.name} fail without it: {problem}")
                pool.shutdown(cancel_futures=True)
                return 1
        print(f"{len(looks)} sets of tests pass where nothing is broken", flush=True)
        for verdict in pool.map(partial(catch, source=source), chosen):
            survived += not verdict.caught
            word = "caught  " if verdict.caught else "SURVIVED"
            name, rule = verdict.mutant.name, verdict.mutant.rule
            row = f"{name:{width}}  {rule:4} {word} {verdict.seconds:5.0f} s  {verdict.how}"
            print(row, flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
