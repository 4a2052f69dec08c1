"""The tables of protocol.md are those of the code: commands, arguments, options, refusals."""

from __future__ import annotations

import json
import re

import pytest

from dragoman.codecs.cursus.command import ARGUMENTS, POSITIONS
from dragoman.codecs.cursus.dialect import DEFAULTS
from dragoman.codecs.cursus.translate import ERRORS
from dragoman.core.error import ErrorCode
from support.vectors import SPECS, load_vectors

PROTOCOL = (SPECS / "cursus/protocol.md").read_text()
NEVER_ASKED = {
    *(ErrorCode.NAMESPACE_EXISTS, ErrorCode.NAMESPACE_NUMBER_EXISTS, ErrorCode.INVALID_NUMBER),
    *(ErrorCode.NAMESPACE_PROTECTED, ErrorCode.TOPIC_NUMBER_EXISTS),
    *(ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.GROUP_EXISTS),
}
"""What no command of this dialect can be refused with: it neither makes nor numbers namespaces,
reads below the log start from there, and says of a group that exists what it says of a new one."""


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table behind a text, without its head."""
    lines = PROTOCOL[PROTOCOL.index(heading) :].splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("|"))
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.split("|")[1:-1]])
    return found


COMMANDS = rows("### The commands")


def test_the_table_of_commands_has_every_command_once() -> None:
    named = [name for cells in COMMANDS for name in cells[0].split(", ")]
    assert sorted(named) == sorted(POSITIONS)


@pytest.mark.parametrize("cells", COMMANDS, ids=lambda cells: cells[0])
def test_a_command_has_its_values_in_the_documents_order(cells: list[str]) -> None:
    for name in cells[0].split(", "):
        values = [value.strip("[]") for value in cells[1].split()]
        assert tuple(value for value in values if value != "pairs") == POSITIONS[name]


def test_every_name_of_an_argument_is_known_and_told() -> None:
    named = {name.strip("[]") for cells in COMMANDS for name in cells[2].split()} - {"pairs"}
    assert named <= ARGUMENTS
    ignored = set(re.findall(r"`(\w+)`", PROTOCOL[PROTOCOL.index("mean nothing here") :][:200]))
    assert named | (ignored & ARGUMENTS) | {"consumer"} == ARGUMENTS


def test_the_table_of_options_has_every_option_with_its_default() -> None:
    told = {cells[0].strip("`"): cells[1] for cells in rows("## Options of a listener")}
    assert told.keys() == DEFAULTS.keys()
    for name, value in DEFAULTS.items():
        shown = f"{value:,}" if type(value) is int else str(value).lower()
        assert re.match(rf"`?{shown}\b", told[name]), name


def test_the_table_of_refusals_has_every_code() -> None:
    told = {code for cells in rows("**CUR-E4**") for code in re.findall(r"`([\w<>]+)`", cells[0])}
    said = {ERRORS[code].split()[0] for code in ErrorCode if code not in NEVER_ASKED}
    for vector in load_vectors("cursus"):
        expected = json.dumps([step.get("expect", "") for step in vector.steps])
        said |= set(re.findall(r"ERROR: (\w+)", expected))
        said |= set(re.findall(r'\\"error\\": ?\\"(\w+)', expected))
    one_name = {
        re.sub(r"^(missing|invalid)_[a-zA-Z_]+$", r"\1_<name>", code) for code in said - told
    }
    assert one_name <= told
