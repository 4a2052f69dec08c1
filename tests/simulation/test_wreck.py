"""What a power cut leaves: all that the rules allow, and nothing that they do not."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.core.storage.disk import read_file, replace_file
from dragoman.simulation.disk import SimDisk
from dragoman.simulation.wreck import PAGE, SECTOR

OLD, NEW = b"o", b"n"


def overwritten(size: int, at: int = 0) -> SimDisk:
    """A disk whose file `f` was synced full of one byte, and then partly overwritten."""
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.write(fd, [OLD * 3 * PAGE], 0)
    disk.sync(fd)
    disk.sync_directory(".")
    disk.write(fd, [NEW * size], at)
    return disk


def left(disk: SimDisk, limit: int = 3000, path: str = "f") -> set[bytes | None]:
    """What the file may hold after a power cut; None where it is gone."""
    found: set[bytes | None] = set()
    for state in disk.crash_states(limit, Random(1)):
        name = path.rpartition("/")[2]
        found.add(read_file(state, path) if name in state.list(path[: -len(name)] or ".") else None)
    return found


def test_what_was_synced_stays_and_nothing_is_left_to_choose() -> None:
    disk = overwritten(10)
    disk.sync(disk.open("f"))
    assert len(list(disk.crash_states(100, Random(1)))) == 1
    assert read_file(disk.stripped(), "f")[:11] == NEW * 10 + OLD


def test_a_write_is_torn_at_every_sector_from_both_sides() -> None:
    whole = 3 * PAGE
    found = left(overwritten(whole))
    for cut in range(0, whole + 1, SECTOR):
        assert NEW * cut + OLD * (whole - cut) in found
        assert OLD * cut + NEW * (whole - cut) in found


def test_a_write_is_torn_at_every_page() -> None:
    found = left(overwritten(3 * PAGE), limit=30)
    for cut in (PAGE, 2 * PAGE):
        assert NEW * cut + OLD * (3 * PAGE - cut) in found


def test_a_sector_is_never_torn() -> None:
    for data in left(overwritten(3 * PAGE)):
        assert data is not None
        for at in range(0, len(data), SECTOR):
            assert len(set(data[at : at + SECTOR])) == 1


def test_a_later_write_may_arrive_without_an_earlier_one() -> None:
    disk = overwritten(SECTOR)
    fd = disk.open("f")
    disk.write(fd, [b"m" * SECTOR], 2 * PAGE)
    found = {(data[:1], data[2 * PAGE : 2 * PAGE + 1]) for data in left(disk) if data}
    assert found == {(OLD, OLD), (OLD, b"m"), (NEW, OLD), (NEW, b"m")}


def test_a_sector_holds_some_version_that_it_had() -> None:
    disk = overwritten(10)
    fd = disk.open("f")
    disk.write(fd, [b"m" * 10], 5)
    versions = {data[:15] for data in left(disk) if data}
    assert versions == {OLD * 15, NEW * 10 + OLD * 5, NEW * 5 + b"m" * 10}


def test_a_size_may_arrive_without_bytes_and_bytes_without_their_size() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.sync(fd)
    disk.sync_directory(".")
    disk.write(fd, [NEW * 2 * SECTOR], 0)
    found = left(disk)
    assert {b"", bytes(2 * SECTOR), NEW * 2 * SECTOR} <= found
    assert found <= {
        head * SECTOR + tail * SECTOR for head in (NEW, b"\0") for tail in (NEW, b"\0")
    } | {b""}


def test_bytes_of_before_a_cut_never_come_back_behind_it() -> None:
    disk = overwritten(0)
    fd = disk.open("f")
    disk.truncate(fd, SECTOR)
    disk.write(fd, [NEW * SECTOR], 2 * SECTOR)
    for data in left(disk):
        assert data is not None
        if len(data) < 3 * PAGE:
            assert data[SECTOR : 2 * SECTOR] in (b"", bytes(SECTOR))
            assert set(data[2 * SECTOR :]) <= {0, NEW[0]}
        else:
            assert set(data) == {OLD[0]}, "the old size has the old bytes"


def test_entries_of_a_directory_survive_in_every_combination() -> None:
    disk = SimDisk()
    for name in "abc":
        disk.close(disk.open(name, create=True))
    found = {"".join(state.list(".")) for state in disk.crash_states(500, Random(1))}
    assert found == {"", "a", "b", "c", "ab", "ac", "bc", "abc"}


def test_a_rename_may_arrive_before_the_bytes_of_what_it_moved() -> None:
    disk = SimDisk()
    replace_file(disk, ".", "f", b"old", durable=True)
    replace_file(disk, ".", "f", b"newer", durable=False)
    assert {b"old", b"newer", b"", bytes(5)} <= left(disk)


def test_a_rename_may_arrive_by_half_and_leave_two_names_or_none() -> None:
    disk = SimDisk()
    disk.close(disk.open("old", create=True))
    disk.sync_directory(".")
    disk.rename("old", "new")
    states = list(disk.crash_states(50, Random(1)))
    assert {tuple(state.list(".")) for state in states} == {
        *((), ("new",), ("old",), ("new", "old")),
    }
    for state in states:
        assert state.has_two_names(".") == (len(state.list(".")) == 2)


def test_a_durable_replacement_leaves_the_old_file_or_the_new_one() -> None:
    disk = SimDisk()
    replace_file(disk, ".", "f", b"old", durable=True)
    found: set[bytes | None] = set()
    disk.fails = lambda *_: found.update(left(disk))
    replace_file(disk, ".", "f", b"newer", durable=True)
    assert found == {b"old", b"newer"}


def test_a_removed_file_may_come_back() -> None:
    disk = overwritten(0)
    disk.unlink("f")
    assert left(disk) == {None, OLD * 3 * PAGE}


def test_a_directory_that_was_not_synced_takes_all_below_it() -> None:
    disk = SimDisk()
    disk.make_directory("d/e")
    fd = disk.open("d/e/f", create=True)
    disk.write(fd, [b"x"], 0)
    disk.sync(fd)
    disk.sync_directory("d/e")
    assert {bool(state.list("d/e")) for state in disk.crash_states(9, Random(1))} == {True, False}


def test_every_state_is_another_one() -> None:
    disk = overwritten(3 * PAGE)
    marks = [state.fingerprint() for state in disk.crash_states(400, Random(1))]
    assert len(marks) == len(set(marks)) > 200


def test_the_same_dice_give_the_same_states() -> None:
    first, second = (
        [state.fingerprint() for state in overwritten(2 * PAGE).crash_states(80, Random(5))]
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("way", ["stripped", "crashed"])
def test_what_a_failed_sync_did_not_write_is_lost_though_it_can_be_read(way: str) -> None:
    disk = overwritten(SECTOR)
    fd = disk.open("f")
    disk.fail_at(1, 5, "sync")
    with pytest.raises(OSError, match="told to fail"):
        disk.sync(fd)
    disk.write(fd, [b"m" * SECTOR], PAGE)
    disk.sync(fd)
    assert disk.read(fd, 1, 0) == NEW
    state = disk.stripped() if way == "stripped" else disk.crashed(Random(1))
    data = read_file(state, "f")
    assert (data[:1], data[PAGE : PAGE + 1]) == (OLD, b"m")
