"""The data directory: refused in one sentence unless it is ours, of this format, and free."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path


def make(path: Path) -> Layout:
    layout = Layout(str(path))
    RealDisk().make_directory(layout.root)
    layout.make(RealDisk())
    return layout


def test_a_new_directory_gets_a_format_and_its_folders(tmp_path: Path) -> None:
    make(tmp_path / "deep" / "data")
    assert sorted(os.listdir(tmp_path / "deep" / "data")) == [
        "FORMAT",
        "catalog",
        "journal",
        "topics",
    ]


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(StorageError, match=r"holiday\.jpg"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"format": 9, "oldest_reader": 9}', "use a newer dragoman"),
        ('{"format": 2, "oldest_reader": 1}', "use a newer dragoman"),
        ('{"format": 0, "oldest_reader": 0}', "cannot be read"),
        ('{"format": 1}', "cannot be read"),
        ("[1]", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_another_format_is_refused_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    make(tmp_path)
    (tmp_path / "FORMAT").write_text(text)
    with pytest.raises(StorageError, match=sentence) as refused:
        make(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_reader_takes_a_newer_format_that_says_it_may(tmp_path: Path) -> None:
    layout = make(tmp_path)
    (tmp_path / "FORMAT").write_text('{"format": 2, "oldest_reader": 1}')
    layout.check_format(RealDisk(), reading=True)


def test_a_directory_in_use_names_the_process_that_has_it(tmp_path: Path) -> None:
    disk, layout = RealDisk(), make(tmp_path)
    held = layout.lock(disk)
    with pytest.raises(StorageError, match=f"process {os.getpid()}"):
        layout.lock(disk)
    disk.close(held)
    disk.close(layout.lock(disk))
