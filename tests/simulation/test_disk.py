"""The disk in memory behaves as the real one does wherever both can be asked."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.storage.disk import RealDisk, SyncFailed, is_full
from dragoman.simulation.disk import PowerCut, ShortWrite, SimDisk

if TYPE_CHECKING:
    from pathlib import Path

FILES = ["a", "b", "d/x", "d/e/y", "a/z"]
DIRECTORIES = ["d", "d/e", "a"]


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return RealDisk() if request.param == "real" else SimDisk()


def test_a_file_that_is_missing_is_an_error_unless_it_is_to_be_made(disk: Any) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("f")
    fd = disk.open("f", create=True)
    assert disk.size(fd) == 0
    assert disk.list(".") == ["f"]


def test_a_write_behind_the_end_leaves_zeros(disk: Any) -> None:
    fd = disk.open("f", create=True)
    disk.write(fd, [b"ab", bytearray(b"cd"), memoryview(b"ef")], 3)
    assert bytes(disk.read(fd, 100, 0)) == b"\0\0\0abcdef"
    assert bytes(disk.read(fd, 100, 50)) == b""


def test_a_cut_shortens_or_adds_zeros(disk: Any) -> None:
    fd = disk.open("f", create=True)
    disk.write(fd, [b"abcdef"], 0)
    disk.truncate(fd, 2)
    disk.truncate(fd, 4)
    assert bytes(disk.read(fd, 9, 0)) == b"ab\0\0"


def test_a_removed_file_lives_on_for_those_who_have_it_open(disk: Any) -> None:
    fd = disk.open("f", create=True)
    disk.unlink("f")
    disk.unlink("f")
    disk.write(fd, [b"x"], 0)
    disk.sync(fd)
    assert disk.list(".") == []
    assert bytes(disk.read(fd, 9, 0)) == b"x"


def test_a_rename_replaces_and_keeps_the_descriptor(disk: Any) -> None:
    old, new = disk.open("old", create=True), disk.open("new", create=True)
    disk.write(old, [b"old"], 0)
    disk.rename("old", "new")
    assert disk.list(".") == ["new"]
    disk.write(old, [b"O"], 0)
    assert bytes(disk.read(disk.open("new"), 9, 0)) == b"Old"
    assert disk.size(new) == 0
    with pytest.raises(FileNotFoundError):
        disk.rename("old", "new")


def test_a_file_is_moved_between_directories(disk: Any) -> None:
    disk.make_directory("d/e")
    disk.close(disk.open("f", create=True))
    disk.rename("f", "d/e/g")
    assert (disk.list("."), disk.list("d/e")) == (["d"], ["g"])


def test_directories_go_only_when_they_are_empty(disk: Any) -> None:
    disk.make_directory("d/e")
    disk.make_directory("d/e")
    disk.remove_directory("d")
    disk.remove_directory("no")
    assert disk.list("d") == ["e"]
    disk.remove_directory("d/e")
    assert disk.list("d") == []
    assert disk.list("no") == []


def test_a_file_is_no_directory_and_a_directory_no_file(disk: Any) -> None:
    disk.close(disk.open("f", create=True))
    disk.make_directory("d")
    for wrong in (
        lambda: disk.open("d"),
        lambda: disk.unlink("d"),
        lambda: disk.list("f"),
        lambda: disk.remove_directory("f"),
        lambda: disk.sync_directory("f"),
        lambda: disk.sync_directory("no"),
        lambda: disk.make_directory("f"),
        lambda: disk.rename("f", "d"),
        lambda: disk.open("no/f", create=True),
    ):
        with pytest.raises(OSError, match=r".") as raised:
            wrong()
        assert raised.value.errno


def test_a_closed_descriptor_and_one_for_reading_refuse(disk: Any) -> None:
    fd = disk.open("f", create=True)
    disk.close(fd)
    reader = disk.open("f", writable=False)
    for wrong in (
        lambda: disk.read(fd + 100, 1, 0),
        lambda: disk.write(reader, [b"x"], 0),
    ):
        with pytest.raises(OSError, match=r".") as raised:
            wrong()
        assert raised.value.errno == errno.EBADF


def test_a_lock_belongs_to_a_descriptor_until_it_is_closed(disk: Any) -> None:
    first, second = disk.open("f", create=True), disk.open("f")
    assert disk.lock(first)
    assert disk.lock(first)
    assert not disk.lock(second)
    disk.close(first)
    assert disk.lock(second)


def act(disk: Any, dice: Random, open_files: list[int]) -> object:
    """One operation that the dice choose, and what came of it; an error is its class."""
    file, other = dice.choice(FILES), dice.choice(FILES)
    any_name = dice.choice(FILES + DIRECTORIES)
    size, at = dice.randint(0, 3000), dice.randint(0, 3000)
    kind = dice.randrange(12)
    fd = dice.choice(open_files) if open_files else -1
    try:
        match kind:
            case 0 | 1:
                open_files.append(disk.open(file, create=bool(at % 3)))
                return "opened"
            case 2 if fd >= 0:
                return disk.write(fd, [b"x" * size, b"y"], at)
            case 3 if fd >= 0:
                return disk.truncate(fd, size)
            case 4 if fd >= 0:
                return bytes(disk.read(fd, size, at))
            case 5 if fd >= 0:
                return disk.size(fd)
            case 6 if fd >= 0:
                return disk.sync(fd)
            case 7:
                return disk.rename(file, other)
            case 8:
                return disk.unlink(any_name)
            case 9:
                return disk.make_directory(dice.choice(("d", "d/e")))
            case 10:
                return disk.remove_directory(any_name)
            case 11:
                return disk.list(any_name)
            case _:
                return None
    except OSError as error:
        return type(error)


def test_a_thousand_operations_have_the_same_effect_on_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dice = Random(7)
    real, simulated = RealDisk(), SimDisk()
    real_files: list[int] = []
    simulated_files: list[int] = []
    for number in range(1000):
        state = dice.getstate()
        one = act(real, dice, real_files)
        dice.setstate(state)
        other = act(simulated, dice, simulated_files)
        assert one == other, number
        assert len(real_files) == len(simulated_files)
        if len(real_files) > 20:
            real.close(real_files.pop(0))
            simulated.close(simulated_files.pop(0))
    for fd in real_files:
        real.close(fd)


# ---------------------------------------------------------------- what only the simulated one does


def test_an_operation_fails_once_when_told_to() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.fail_at(2, errno.EIO, "write")
    disk.write(fd, [b"a"], 0)
    with pytest.raises(OSError, match="told to fail"):
        disk.write(fd, [b"b"], 1)
    disk.write(fd, [b"c"], 1)
    assert disk.read(fd, 9, 0) == b"ac"


def test_a_write_may_take_a_part_and_fail() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)

    def fails(*_: object) -> None:
        raise ShortWrite(3, OSError(errno.ENOSPC, "full"))

    disk.fails = fails
    with pytest.raises(OSError, match="full") as raised:
        disk.write(fd, [b"abcdef"], 0)
    assert is_full(raised.value)
    assert disk.read(fd, 9, 0) == b"abc"


def test_a_failed_sync_says_so_and_syncs_nothing() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.write(fd, [b"a"], 0)
    disk.fail_at(1, errno.EIO, "sync")
    with pytest.raises(SyncFailed):
        disk.sync(fd)
    disk.sync_directory(".")
    assert disk.stripped().file("f") == b""


def test_after_a_power_cut_nothing_happens_any_more() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.cut_power_at(2)
    disk.write(fd, [b"a"], 0)
    for _ in range(3):
        with pytest.raises(PowerCut):
            disk.write(fd, [b"b"], 0)
    assert disk.read(fd, 1, 0) == b"a"


def test_a_killed_process_leaves_all_it_wrote_and_nothing_more_synced() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.write(fd, [b"a"], 0)
    disk.lock(fd)
    killed = disk.killed()
    assert killed.file("f") == b"a"
    assert killed.stripped().list(".") == []
    again = killed.open("f")
    assert killed.lock(again)
    killed.write(again, [b"b"], 0)
    assert disk.read(fd, 1, 0) == b"a"


def test_a_full_disk_takes_what_does_not_grow() -> None:
    disk = SimDisk()
    fd = disk.open("f", create=True)
    disk.write(fd, [b"abc"], 0)
    disk.bytes_max = 3
    disk.write(fd, [b"xyz"], 0)
    with pytest.raises(OSError, match="full") as raised:
        disk.write(fd, [b"xyz"], 1)
    assert is_full(raised.value)
    assert disk.used == 3
