"""`dragoman recover`: makes a directory fit to be served, and gives up only what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.cli.recover import recover
from dragoman.core.storage.disk import RealDisk
from dragoman.core.storage.disk_store import DiskStore
from support.store import Driven, read_all

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def crashed(directory: Path) -> list[bytes]:
    """A directory as a kill leaves it, five records in the journal; returns their values."""
    driven = Driven(RealDisk(), str(directory), journal_first_bytes=64 * 1024)
    driven.topic()
    driven.settle()
    for n in range(5):
        driven.produce([b"%d" % n * 50])
        driven.flush()
    driven.store.close()
    return driven.written[1, 0]


def test_after_it_the_directory_was_stopped_in_good_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = crashed(tmp_path)
    assert recover(tmp_path) == 0
    assert "store_replayed_groups" in capsys.readouterr().out
    store = DiskStore(tmp_path)
    assert store.clean
    assert read_all(store) == values
    store.close()


def test_a_damaged_journal_is_given_up_only_from_the_sequence_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = crashed(tmp_path)
    journal = tmp_path / "journal" / "0"
    data = bytearray(journal.read_bytes())
    data[3 * 4096 + 80] ^= 1
    journal.write_bytes(data)
    assert recover(tmp_path) == 1
    assert "--give-up-from 4" in capsys.readouterr().err
    assert recover(tmp_path, give_up_from=4) == 0
    store = DiskStore(tmp_path)
    assert read_all(store) == values[:2]
    store.close()


def test_what_is_no_data_directory_is_refused_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing"
    assert recover(missing) == 1
    assert "no data directory" in capsys.readouterr().err
    assert not missing.exists()
