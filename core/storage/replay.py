"""Reading the journal after a stop: which groups count, and where a torn tail ends.

Groups are taken in the order of their sequences, beginning after the catalog. The first sequence
for which no intact group is found ends the replay. That is a torn tail, unless a later group of the
same incarnation verifies whose `synced group` is at or above the missing one: then the missing
group was durable once, and is damaged now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.storage.group import GroupAt, scan_groups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout


class JournalScan(NamedTuple):
    """What a journal file holds: its number, open descriptor, length and intact groups."""

    number: int
    fd: int
    size: int
    groups: list[GroupAt]


class Replay(NamedTuple):
    """The groups to replay, in order, and what stopped it.

    Attributes:
        sequence, group: Of the last one, or of the catalog where there is none.
        incarnation: The highest one met.
        damage: A sentence where a durable group is missing, else empty.
    """

    groups: list[GroupAt]
    sequence: int
    group: int
    incarnation: int
    damage: str


def scan_journal(
    disk: Disk, layout: Layout, *, look_inside: bool, writable: bool = True
) -> list[JournalScan]:
    """Opens every journal file, and lists its groups where asked to look inside."""
    scans = []
    for name in disk.list(layout.journal):
        if not name.isdecimal():
            continue
        number = int(name)
        fd = disk.open(layout.journal_file(number), writable=writable)
        groups = list(scan_groups(disk, fd, number)) if look_inside else []
        scans.append(JournalScan(number, fd, disk.size(fd), groups))
    return scans


def plan_replay(
    groups: Iterable[GroupAt],
    *,
    sequence: int,
    group: int,
    incarnation: int,
    give_up_from: int | None = None,
) -> Replay:
    """Chooses the groups that follow a catalog.

    Args:
        sequence, group, incarnation: As the catalog has them.
        give_up_from: Replay nothing at or after this sequence, whatever follows it.
    """
    by_first: dict[int, list[GroupAt]] = {}
    known = [found for found in groups if found.last_sequence > sequence]
    highest = max([found.incarnation for found in known], default=incarnation)
    highest = max(highest, incarnation)
    for found in known:
        by_first.setdefault(found.first_sequence, []).append(found)
    chosen: list[GroupAt] = []
    while True:
        candidates = [
            found
            for found in by_first.get(sequence + 1, ())
            if found.incarnation >= incarnation and found.number == group + 1
        ]
        if not candidates:
            break
        best = max(candidates, key=lambda found: found.incarnation)
        if give_up_from is not None and best.last_sequence >= give_up_from:
            return Replay(chosen, sequence, group, highest, "")
        chosen.append(best)
        sequence, group, incarnation = best.last_sequence, best.number, best.incarnation
    damage = "" if give_up_from is not None else _damage(known, sequence, group, incarnation)
    return Replay(chosen, sequence, group, highest, damage)


def _damage(known: list[GroupAt], sequence: int, group: int, incarnation: int) -> str:
    for later in known:
        synced = later.incarnation == incarnation and later.synced_group > group
        continued = later.incarnation > incarnation and later.first_sequence > sequence + 1
        if synced or continued:
            return (
                f"journal group {group + 1} (from sequence {sequence + 1}) is damaged, although "
                f"group {later.number} in journal/{later.file} at byte {later.position} was "
                "written after it was synced"
            )
    return ""
