"""The journal's files: prepared ahead, used in turn, free only when nothing needs them."""

from __future__ import annotations

from dragoman.core.storage.group import BLOCK
from dragoman.core.storage.journal import Journal, JournalFile
from dragoman.core.storage.layout import Layout
from dragoman.simulation.disk import SimDisk
from support.store import small_options


def new_journal(**options: int) -> tuple[SimDisk, Journal]:
    disk, layout = SimDisk(), Layout("data")
    disk.make_directory(layout.journal)
    small = small_options(**{"journal_files_max": 4, "journal_file_bytes": 16 * BLOCK, **options})
    return disk, Journal(disk, layout, small, incarnation=1, group=0, files=[])


def prepare(journal: Journal) -> bool:
    work = journal.take_preparation()
    if work is None:
        return False
    work.run()
    journal.prepared(work, None)
    return True


def put(journal: Journal, length: int, sequence: int) -> tuple[int, int] | None:
    file = journal.place(length)
    if file is None:
        return None
    place = file.number, file.position
    journal.written(file, length, sequence)
    return place


def test_nothing_is_written_where_nothing_was_prepared() -> None:
    _, journal = new_journal()
    assert put(journal, 10, 1) is None
    assert prepare(journal)
    assert put(journal, 10, 1) == (0, 0)


def test_a_file_grows_ahead_of_need_by_doubling() -> None:
    disk, journal = new_journal(journal_first_bytes=2 * BLOCK)
    journal.place(1)
    sizes = []
    for sequence in range(1, 17):
        while prepare(journal):
            sizes.append(len(disk.file("data/journal/0")) // BLOCK)
        assert put(journal, 10, sequence) == (0, (sequence - 1) * BLOCK)
    assert sorted(set(sizes)) == [2, 4, 8, 16]


def test_a_group_never_spans_two_files() -> None:
    _, journal = new_journal()
    sequence = 0
    places = []
    while len(places) < 12:
        place = put(journal, 3 * BLOCK, sequence + 1)
        if place is None:
            assert prepare(journal)
            continue
        sequence += 1
        places.append(place)
    assert places[:6] == [(0, 3 * n * BLOCK) for n in range(5)] + [(1, 0)]


def test_a_group_larger_than_a_file_gets_one_that_is_long_enough() -> None:
    _, journal = new_journal()
    assert put(journal, 40 * BLOCK, 1) is None
    while prepare(journal):
        pass
    assert put(journal, 40 * BLOCK, 1) == (0, 0)


def test_when_every_file_is_needed_only_a_checkpoint_makes_room() -> None:
    _, journal = new_journal()
    sequence = 0
    while not journal.exhausted:
        if put(journal, 8 * BLOCK, sequence + 1) is not None:
            sequence += 1
        elif not prepare(journal):
            break
    assert journal.exhausted
    assert sequence == 8
    assert journal.used_fraction == 1.0
    journal.free_up_to(3)
    assert put(journal, 8 * BLOCK, 9) == (0, 0)
    assert put(journal, 8 * BLOCK, 10) == (0, 8 * BLOCK)
    assert put(journal, 8 * BLOCK, 11) is None


def test_a_start_that_finds_every_file_needed_gets_one_more() -> None:
    disk, layout = SimDisk(), Layout("data")
    disk.make_directory(layout.journal)
    files = []
    for number in range(4):
        fd = disk.open(layout.journal_file(number), create=True)
        files.append(JournalFile(number, fd, 16 * BLOCK, 9, free=False))
    options = small_options(journal_files_max=4, journal_file_bytes=16 * BLOCK)
    journal = Journal(disk, layout, options, incarnation=2, group=3, files=files)
    assert put(journal, 10, 10) is None
    assert prepare(journal)
    assert put(journal, 10, 10) == (4, 0)


def test_a_recycled_file_is_taken_before_a_new_one_is_made() -> None:
    disk, layout = SimDisk(), Layout("data")
    disk.make_directory(layout.journal)
    files = []
    for number, last, free in ((0, 9, False), (1, 4, True)):
        fd = disk.open(layout.journal_file(number), create=True)
        disk.write(fd, [bytes(16 * BLOCK)], 0)
        files.append(JournalFile(number, fd, 16 * BLOCK, last, free))
    options = small_options(journal_file_bytes=16 * BLOCK)
    journal = Journal(disk, layout, options, incarnation=2, group=3, files=files)
    assert put(journal, 10, 10) == (1, 0)
    journal.close()
