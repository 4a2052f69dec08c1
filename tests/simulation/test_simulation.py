"""Five hundred simulated runs hold every rule, a seed plays the same run everywhere, and the rules
bite: an engine broken on purpose is found out within a few seeds.

`SIMULATION_SEEDS` sets how many runs, `SIMULATION_SEED` the first, `SIMULATION_OPERATIONS` how long
they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.batch import RecordBatch
from dragoman.core.calls import OffsetKind
from dragoman.core.change import OffsetPut, Trimmed
from dragoman.core.compact import Latest
from dragoman.core.directory import Directory
from dragoman.core.engine import Engine
from dragoman.core.events.eventing import Eventing
from dragoman.core.events.index import EventIndex, SnapshotIndex
from dragoman.core.fetch import Fetching
from dragoman.core.follow import Following
from dragoman.core.groups.coordinator import Coordinator
from dragoman.core.groups.group import Group
from dragoman.core.groups.subscribe import Subscribing
from dragoman.core.idempotence import Idempotence
from dragoman.core.outcome import Outcome
from dragoman.core.produce import Producing
from dragoman.core.replica import Replicas
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.due_sync import DueSync
from dragoman.core.waiting import Waiting
from dragoman.simulation.run import run
from support.effort import effort

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = effort("SIMULATION_SEEDS", 500)
FIRST = effort("SIMULATION_SEED", 0)
OPERATIONS = effort("SIMULATION_OPERATIONS", 200)
PROCESSES = os.cpu_count() or 2
BROKEN_SEEDS_MAX = 100
"""A broken engine has to be found out within so many seeds."""
LOSSES = {"LOST", "CHANGED", "WATERMARK", "COMMIT", "DENSE", "DELETED", "REFUSED", "ANSWER"}
"""As what a loss shows, by whoever looks first."""


def play(first: int, seeds: int, operations: int = OPERATIONS, **environment: str) -> Any:
    """A process of its own that plays runs."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "dragoman.cli.main", "sim"),
            *("--seed", str(first), "--seeds", str(seeds), "--operations", str(operations)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_every_rule_holds_in_every_run() -> None:
    share = -(-SEEDS // PROCESSES)
    firsts = range(FIRST, FIRST + SEEDS, share)
    players = [play(first, min(share, FIRST + SEEDS - first)) for first in firsts]
    told = [player.communicate()[0] for player in players]
    stories = [text for text in told if " broke " in text]
    assert not stories, "".join(stories)
    assert sum([text.count(": held (") for text in told]) == SEEDS
    assert [player.returncode for player in players] == [0] * len(players)


def test_a_seed_plays_the_same_run_in_every_process() -> None:
    players = [play(3, 6, 100, PYTHONHASHSEED=salt) for salt in ("1", "2")]
    one, other = [player.communicate()[0] for player in players]
    assert one == other
    assert one.count(": held (") == 6


def test_a_seed_plays_the_same_run_after_others() -> None:
    alone = run(11, 60)
    run(12, 60)
    assert run(11, 60) == alone


# ---------------------------------------------------------------- engines that are broken


def found_out(operations: int = 150) -> str:
    """The rule that a broken engine breaks first."""
    for seed in range(BROKEN_SEEDS_MAX):
        report = run(seed, operations)
        if not report.held:
            return report.broken
    return "nothing"


def acknowledges_early(patch: pytest.MonkeyPatch) -> None:
    def hold(self: Waiting, client: Any, reply: Any, sequence: int, *rest: Any) -> Outcome:
        return Outcome(reply)

    patch.setattr(Waiting, "hold", hold)


def never_syncs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DueSync, "with_group", lambda self, fd, records, now: [])


def reveals_unsynced_records(patch: pytest.MonkeyPatch) -> None:
    take = Engine.take_flush

    def early(self: Engine) -> Any:
        flush: Any = take(self)
        for topic in self._directory.topics.values():
            for partition in topic.partitions:
                partition.high_watermark = partition.state.next_offset
        return flush

    patch.setattr(Engine, "take_flush", early)


def drops_a_batch(patch: pytest.MonkeyPatch) -> None:
    append = DiskStore.append_batch
    count = [0]

    def lossy(self: DiskStore, topic_id: int, partition: int, batch: Any) -> int:
        count[0] += 1
        if count[0] % 15 == 0:
            return self._sequence
        return append(self, topic_id, partition, batch)

    patch.setattr(DiskStore, "append_batch", lossy)


def appends_twice(patch: pytest.MonkeyPatch) -> None:
    whole = Producing._append_whole
    count = [0]

    def twice(self: Producing, partition: Any, batch: Any, *rest: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] % 15 == 0:
            again = RecordBatch(batch.count, batch.values, origin=batch.origin)
            whole(self, partition, again, *rest, **named)
        return whole(self, partition, batch, *rest, **named)

    patch.setattr(Producing, "_append_whole", twice)


def forgets_commits(patch: pytest.MonkeyPatch) -> None:
    apply = Directory.apply

    def forgetful(self: Directory, change: Any) -> int:
        if isinstance(change, OffsetPut) and change.kind == OffsetKind.GROUP.value:
            self.catalog.apply(change)
            return self._store.revealed_sequence
        return apply(self, change)

    patch.setattr(Directory, "apply", forgetful)


def forgets_trims(patch: pytest.MonkeyPatch) -> None:
    apply = Directory.apply

    def forgetful(self: Directory, change: Any) -> int:
        if isinstance(change, Trimmed):
            self.catalog.apply(change)
            return self._store.revealed_sequence
        return apply(self, change)

    patch.setattr(Directory, "apply", forgetful)


def forgets_producers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Idempotence, "check", lambda self, partition, batch, now: None)


def compacts_the_newest_too(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Latest, "of", lambda self, key: 1 << 60)


def takes_records_that_another_server_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dragoman.core.produce.check_leader", lambda partition: None)


def lets_replicas_lower_the_watermark(patch: pytest.MonkeyPatch) -> None:
    def humble(self: Replicas, partition: Any) -> bool:
        kept = self.track(partition)
        reached = [replica.next_offset for replica in kept.replicas.values()]
        partition.high_watermark = min(reached, default=kept.durable_end)
        return True

    patch.setattr(Replicas, "advance", humble)


def accepts_stale_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "check_commit", lambda self, request, now: 0)


def gives_everyone_everything(patch: pytest.MonkeyPatch) -> None:
    deal = Group.deal

    def generous(self: Group, partition_count: int, generations: int = 1) -> None:
        deal(self, partition_count, generations)
        for member in self.members.values():
            member.partitions = range(partition_count)

    patch.setattr(Group, "deal", generous)


def goes_on_late(patch: pytest.MonkeyPatch) -> None:
    leave = Subscribing._leave

    def late(self: Subscribing, circle: Any, subscription: Any, partition: Any) -> None:
        leave(self, circle, subscription, partition)
        if partition in circle.places:
            circle.places[partition] += 1

    patch.setattr(Subscribing, "_leave", late)


def pushes_again(patch: pytest.MonkeyPatch) -> None:
    leave = Subscribing._leave

    def again(self: Subscribing, circle: Any, subscription: Any, partition: Any) -> None:
        leave(self, circle, subscription, partition)
        circle.places = dict.fromkeys(circle.places, 0)

    patch.setattr(Subscribing, "_leave", again)


def forgets_subscribers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscribing, "settle", lambda self, group: None)


def gives_a_version_twice(patch: pytest.MonkeyPatch) -> None:
    version = Eventing._version

    def humble(self: Eventing, partition: Any, key: bytes) -> Any:
        current = yield from version(self, partition, key)
        return min(current, 2)

    patch.setattr(Eventing, "_version", humble)


def forgets_events(patch: pytest.MonkeyPatch) -> None:
    add = EventIndex.add

    def forgetful(self: EventIndex, row: Any) -> None:
        if row[2] % 4 != 3:
            add(self, row)

    patch.setattr(EventIndex, "add", forgetful)


def keeps_the_first_snapshot(patch: pytest.MonkeyPatch) -> None:
    def stubborn(self: SnapshotIndex, row: Any) -> None:
        self._newest.setdefault(row[0], row[1:])

    patch.setattr(SnapshotIndex, "add", stubborn)


def loses_answers(patch: pytest.MonkeyPatch) -> None:
    take = Waiting.take_ready
    count = [0]

    def forgetful(self: Waiting) -> list[Outcome]:
        ready = take(self)
        count[0] += len(ready)
        return ready[1:] if ready and count[0] % 20 == 0 else ready

    patch.setattr(Waiting, "take_ready", forgetful)


def keeps_follows_of_the_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Following, "cancel", lambda self, outcome: None)


def forgets_deadlines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fetching, "expire", lambda self, now: None)


def raises(patch: pytest.MonkeyPatch) -> None:
    def broken(self: Engine, outcome: Outcome, now: Any) -> None:
        raise RuntimeError("out of order")

    patch.setattr(Engine, "pull", broken)


@pytest.mark.parametrize(
    ("mutate", "rules"),
    [
        (acknowledges_early, LOSSES),
        (never_syncs, LOSSES | {"GENERATION"}),
        (reveals_unsynced_records, LOSSES | {"PUSHED"}),
        (drops_a_batch, LOSSES),
        (appends_twice, {"DUPLICATE"}),
        (forgets_commits, {"COMMIT"}),
        (forgets_trims, {"DELETED"}),
        (forgets_producers, {"DUPLICATE"}),
        (compacts_the_newest_too, {"LOST", "DENSE"}),
        (takes_records_that_another_server_leads, {"ROLE"}),
        (lets_replicas_lower_the_watermark, {"WATERMARK", "DENSE", "LOST", "REFUSED", "ANSWER"}),
        (accepts_stale_commits, {"FENCED"}),
        (gives_everyone_everything, {"OWNER"}),
        (goes_on_late, {"PUSHED"}),
        (pushes_again, {"PUSHED"}),
        (forgets_subscribers, {"PUSHED"}),
        (gives_a_version_twice, {"EVENT"}),
        (forgets_events, {"EVENT"}),
        (keeps_the_first_snapshot, {"SNAPSHOT"}),
        (loses_answers, {"ANSWER"}),
        (keeps_follows_of_the_gone, {"LEAK"}),
        (forgets_deadlines, {"ANSWER"}),
        (raises, {"FAULT"}),
    ],
)
def test_a_broken_engine_is_found_out(
    mutate: Callable[[pytest.MonkeyPatch], None],
    rules: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    assert found_out() in rules
