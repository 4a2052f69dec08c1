"""Groups whose members speak different dialects: they join, work, leave, fall silent, hang up; the
topic grows, the server restarts; and nothing is owned twice, committed by a stranger, or skipped.
"""

from __future__ import annotations

import pytest

from support.effort import effort
from support.history import History
from support.member import ConnectionMember, HeartbeatMember

HISTORIES = effort("GROUP_HISTORIES", 200)
BLOCKS = 10
STEPS = 150


def play(seed: int) -> History:
    history = History(seed)
    random = history.random
    for number in range(random.randint(4, 12)):
        spoken = random.choice(("v1", "cursus", "iggy"))
        if spoken == "iggy":
            history.members.append(ConnectionMember(history))
        else:
            history.members.append(HeartbeatMember(history, spoken, f"{spoken}{number}"))
    history.play(STEPS)
    return history


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_partition_has_one_owner_who_alone_commits_and_nothing_is_skipped(
    block: int,
) -> None:
    accepted = refused = 0
    for seed in range(block, HISTORIES, BLOCKS):
        try:
            history = play(seed)
        except Exception as failed:
            failed.add_note(f"the seed is {seed}")
            raise
        accepted += history.accepted
        refused += history.refused
    if HISTORIES >= 200:
        assert min(accepted, refused) > 100
