"""The guide's examples of the client run as they are printed, but for the server's port."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = (Path(__file__).parent.parent / "docs" / "GUIDE.md").read_text()
SECTION = GUIDE.partition("## The client library\n")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


def test_there_are_examples_of_both_faces() -> None:
    assert ["trio.run" in example for example in EXAMPLES] == [False, True]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with WiredServer("cursus") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            client.create_topic("orders", 4)
        yield server.ports["cursus"]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_its_records(port: int, number: int) -> None:
    code = EXAMPLES[number].replace("9000", str(port))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stderr == ""
    expected = [["by hand", "one", "two"], ["three"]][number]
    assert not [value for value in expected if f"b'{value}'" not in done.stdout]


def test_the_example_of_a_stream_prints_its_snapshot(port: int) -> None:
    section = GUIDE.partition("## Streams of events\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example.replace("9000", str(port))],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "Snapshot(version=1, payload=b'{\"balance\": 100}') []\n"


def test_the_example_by_hand_hears_what_it_says(port: int) -> None:
    section = GUIDE.partition("### By hand\n")[2].partition("\n### ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example.replace("9000", str(port))],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == re.findall(r"# (b'.*')", example)
