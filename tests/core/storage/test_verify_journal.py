"""The check of the journal: what a start would replay, and what the older catalog needs."""

from __future__ import annotations

from dragoman.core.storage.verify import verify
from support.sound import damaged_at, running


def test_a_damaged_durable_group_of_the_journal_is_named() -> None:
    disk, driven = running()
    for _ in range(3):
        driven.produce([b"a"])
        driven.flush()
        driven.work()
    report = verify("data", disk=disk)
    assert report.journal_groups == 3
    for name in disk.list("data/journal"):
        data = disk.file(f"data/journal/{name}")
        first = driven.store._journal._current
        assert first is not None
        if int(name) == first.number:
            data[first.position - 3 * 4096 + 80] ^= 1
    assert "journal group" in verify("data", disk=disk).damage[0].reason


def test_any_byte_of_a_durable_journal_group_is_missed_where_it_stands() -> None:
    disk, driven = running()
    for n in range(3):
        driven.produce([b"%d" % n * 50])
        driven.flush()
    current = driven.store._journal._current
    assert current is not None
    path = f"data/journal/{current.number}"
    group_at = current.position - 3 * 4096
    assert verify("data", disk=disk).journal_groups == 3
    length = max(at for at in range(4096) if disk.file(path)[group_at + at])
    for at in range(group_at, group_at + length, 3):
        damage = damaged_at(disk, path, at)
        assert [found.reason.startswith("journal group") for found in damage] == [True]


def test_the_journal_that_only_the_older_catalog_needs_is_checked_too() -> None:
    disk, driven = running()
    for n in range(3):
        driven.produce([b"%d" % n * 50])
        driven.settle()
    driven.advance(31)
    current = driven.store._journal._current
    assert current is not None
    assert verify("data", disk=disk).journal_groups == 0
    at = current.position - 2 * 4096 + 80
    (found,) = damaged_at(disk, f"data/journal/{current.number}", at)
    assert "before catalog" in found.reason
    assert found.position == at - 80
