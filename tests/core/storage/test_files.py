"""Open files: least recently used go first, those in use never."""

from __future__ import annotations

from dragoman.core.storage.files import OpenFiles
from dragoman.simulation.disk import SimDisk


def opened(limit: int) -> tuple[SimDisk, OpenFiles]:
    disk = SimDisk()
    for name in "abcd":
        disk.close(disk.open(name, create=True))
    return disk, OpenFiles(disk, limit)


def test_a_file_is_opened_once_for_all_who_use_it() -> None:
    _, files = opened(2)
    assert files.acquire("a") == files.acquire("a")
    files.release("a")
    assert files.used == 1
    files.release("a")
    assert (files.used, len(files)) == (0, 1)


def test_the_least_recently_used_file_is_closed_beyond_the_limit() -> None:
    _, files = opened(2)
    first = {name: files.acquire(name) for name in "abc"}
    for name in "abc":
        files.release(name)
    assert files.acquire("b") == first["b"]
    assert files.acquire("c") == first["c"]
    assert files.acquire("a") != first["a"]


def test_files_in_use_stay_open_whatever_the_limit() -> None:
    _, files = opened(1)
    held = {name: files.acquire(name) for name in "abcd"}
    assert {name: files.acquire(name) for name in "abcd"} == held


def test_a_file_about_to_be_removed_is_closed_as_soon_as_nobody_reads_it() -> None:
    _, files = opened(4)
    files.acquire("a")
    files.release("a")
    files.acquire("b")
    files.acquire("b")
    files.forget("a")
    files.forget("b")
    assert len(files) == 1
    files.release("b")
    assert len(files) == 1
    files.release("b")
    assert len(files) == 0


def test_a_file_of_the_name_of_a_removed_one_stays_open_when_nobody_uses_it() -> None:
    _, files = opened(4)
    files.acquire("a")
    files.forget("a")
    files.release("a")
    files.acquire("a")
    files.release("a")
    assert (files.used, len(files)) == (0, 1)
