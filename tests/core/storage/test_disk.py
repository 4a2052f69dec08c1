"""The real disk: whole writes, durable replacement, locks, reads that do not wait."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from dragoman.core.storage.disk import (
    RealDisk,
    SyncFailed,
    is_full,
    read_file,
    replace_file,
    write_zeros,
)
from dragoman.simulation.disk import PowerCut, SimDisk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


def test_many_buffers_are_written_whole_and_in_order(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    fd = disk.open(path, create=True)
    buffers = [bytes([i % 251]) * (i % 7) for i in range(3000)]
    disk.write(fd, buffers, 10)
    assert disk.read(fd, 100_000, 10) == b"".join(buffers)
    disk.close(fd)


def test_short_writes_go_on_where_they_stopped(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwritev, pwrite = os.pwritev, os.pwrite

    def short_pwritev(fd: int, buffers: list[memoryview], position: int) -> int:
        return pwritev(fd, [memoryview(buffers[0])[:3]], position)

    def short_pwrite(fd: int, data: memoryview, position: int) -> int:
        return pwrite(fd, memoryview(data)[:3], position)

    monkeypatch.setattr(os, "pwritev", short_pwritev)
    monkeypatch.setattr(os, "pwrite", short_pwrite)
    fd = disk.open(str(tmp_path / "f"), create=True)
    disk.write(fd, [b"abcdefgh", b"", b"ijk"], 0)
    disk.write(fd, [b"lmnopqrst"], 11)
    assert disk.read(fd, 100, 0) == b"abcdefghijklmnopqrst"
    disk.close(fd)


def test_a_disk_that_takes_no_bytes_is_an_error_and_no_endless_loop(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    fd = disk.open(str(tmp_path / "f"), create=True)
    with pytest.raises(OSError, match="no bytes"):
        disk.write(fd, [b"a", b"b"], 0)
    disk.close(fd)


def test_a_read_that_does_not_wait_gives_the_same_bytes_or_nothing(
    disk: RealDisk, tmp_path: Path
) -> None:
    fd = disk.open(str(tmp_path / "f"), create=True)
    disk.write(fd, [b"0123456789"], 0)
    assert disk.read_now(fd, 4, 3) in (None, b"3456")
    assert disk.read_now(fd, 40, 8) in (None, b"89")
    disk.close(fd)


def test_a_file_is_replaced_whole(disk: RealDisk, tmp_path: Path) -> None:
    for text in (b"a longer text", b"short"):
        replace_file(disk, str(tmp_path), "f", text, durable=True)
        assert read_file(disk, str(tmp_path / "f")) == text
    assert disk.list(str(tmp_path)) == ["f"]


def test_zeros_cover_exactly_the_range(disk: RealDisk, tmp_path: Path) -> None:
    fd = disk.open(str(tmp_path / "f"), create=True)
    disk.write(fd, [b"x" * 10], 0)
    write_zeros(disk, fd, 5, 3_000_000)
    assert disk.size(fd) == 3_000_000
    assert disk.read(fd, 7, 0) == b"xxxxx\0\0"
    disk.close(fd)


def test_a_lock_is_held_by_one_descriptor_at_a_time(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "LOCK")
    first, second = disk.open(path, create=True), disk.open(path)
    assert disk.lock(first)
    assert not disk.lock(second)
    disk.close(first)
    assert disk.lock(second)
    disk.close(second)


def test_what_is_gone_already_is_removed_without_complaint(disk: RealDisk, tmp_path: Path) -> None:
    disk.unlink(str(tmp_path / "no"))
    disk.remove_directory(str(tmp_path / "no"))
    disk.make_directory(str(tmp_path / "a/b"))
    disk.make_directory(str(tmp_path / "a/b"))
    disk.remove_directory(str(tmp_path / "a"))
    assert disk.list(str(tmp_path / "a")) == ["b"]
    assert disk.list(str(tmp_path / "no")) == []


def test_a_failed_sync_is_never_taken_for_a_full_disk(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fdatasync", refuse)
    monkeypatch.setattr(os, "fsync", refuse)
    fd = disk.open(str(tmp_path / "f"), create=True)
    with pytest.raises(SyncFailed) as of_file:
        disk.sync(fd)
    with pytest.raises(SyncFailed) as of_directory:
        disk.sync_directory(str(tmp_path))
    assert not is_full(of_file.value)
    assert not is_full(of_directory.value)
    assert is_full(OSError(errno.EDQUOT, "quota"))
    disk.close(fd)


def test_a_file_that_a_crash_left_under_both_its_names_is_replaced_and_not_overwritten() -> None:
    disk = SimDisk()
    replace_file(disk, ".", "f", b"sound", durable=True)
    disk.root.entries["f.tmp"] = disk.root.entries["f"]
    disk.cut_power_at(4)
    with pytest.raises(PowerCut):
        replace_file(disk, ".", "f", b"newer", durable=True)
    disk.fails = None
    assert read_file(disk, "f") == b"sound"
