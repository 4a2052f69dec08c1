"""The live groups: restart, renames, deletions, numbers, expiry in bounded steps."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.calls import (
    AddPartitions,
    Assignor,
    CommitOffset,
    CreateGroup,
    CreateNamespace,
    CreateTopic,
    DeleteGroup,
    DeleteNamespace,
    DeleteTopic,
    DescribeGroup,
    FetchOffset,
    GroupJoined,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    RemovePartitions,
    RenameNamespace,
    SyncGroup,
    UpdateTopic,
)
from dragoman.core.change import GroupPut, TopicPut
from dragoman.core.clock import Now
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode
from dragoman.core.groups.group import Group
from dragoman.core.groups.groups import GROUP_NUMBER_MAX, Home
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.outcome import Client
from dragoman.core.storage.disk_store import DiskStore
from dragoman.simulation.disk import SimDisk
from support.log import Log
from support.store import small_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import Request

BOUND = Client(7, "iggy")


@pytest.fixture
def log() -> Log:
    """Members a and b of group g on topic t with 3 partitions, in generation 2."""
    made = Log()
    made.ask(CreateTopic("t", 3))
    made.ask(JoinGroup("t", "g", "a"))
    made.ask(JoinGroup("t", "g", "b"))
    return made


def restarted(log: Log, **options: int) -> Log:
    return Log(log.store.restarted(), **options)


def statistic(log: Log, name: str) -> Any:
    return log.engine.statistics()[name]


def test_groups_members_and_offsets_outlive_a_restart(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "a", assignor=Assignor.RANGE))
    log.ask(CommitOffset("t", "g", ((0, 5),), member="a", generation=3))
    again = restarted(log)
    assert statistic(again, "groups") == 1
    assert statistic(again, "members") == 2
    assert again.ask(Heartbeat("t", "g", "a", 3)).generation == 3
    assert again.ask(SyncGroup("t", "g", "a")) == GroupJoined("a", 3, (0, 1))
    assert again.ask(JoinGroup("t", "g", "b")) == GroupJoined("b", 3, (2,))
    assert again.ask(FetchOffset("t", "g", 0)).offset == 5
    assert again.ask(DescribeGroup("t", "g")).group.assignor is Assignor.RANGE


def test_session_timeouts_begin_anew_at_a_restart(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "b", session_timeout_us=20_000_000))
    log.pass_time(9)
    again = restarted(log)
    again.pass_time(0)
    again.pass_time(10)
    assert statistic(again, "members") == 2
    again.pass_time(1)
    assert again.ask(SyncGroup("t", "g", "b")) == GroupJoined("b", 3, (0, 1, 2))
    again.pass_time(21)
    assert statistic(again, "members") == 0


def test_bound_members_are_gone_after_a_restart_with_one_generation(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "c", bound=True), BOUND)
    log.ask(JoinGroup("t", "g", "d", bound=True), Client(8, "iggy"))
    again = restarted(log)
    outcome = again.hand(SyncGroup("t", "g", "a"))
    assert not outcome.ready
    again.flush()
    assert outcome.reply == GroupJoined("a", 5, (0, 2))
    twice = restarted(again)
    assert twice.ask(SyncGroup("t", "g", "a")) == GroupJoined("a", 5, (0, 2))


def test_what_was_not_durable_never_happened(log: Log) -> None:
    outcome = log.hand(JoinGroup("t", "g", "c"))
    assert not outcome.ready
    again = restarted(log)
    assert again.ask(SyncGroup("t", "g", "a")) == GroupJoined("a", 2, (0, 2))
    assert again.code(Heartbeat("t", "g", "c")) is ErrorCode.UNKNOWN_MEMBER


def test_a_group_keeps_its_generation_without_members(log: Log) -> None:
    log.ask(LeaveGroup("t", "g", "a"))
    log.ask(LeaveGroup("t", "g", "b"))
    again = restarted(log)
    assert again.ask(JoinGroup("t", "g", "c")) == GroupJoined("c", 5, (0, 1, 2))


def test_a_count_that_changed_unnoticed_is_dealt_at_the_start(log: Log) -> None:
    state = log.store.catalog.topics[1]
    times = [partition.created_us for partition in state.partitions]
    put = TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "t", state.created_us, [*times, 1], {})
    log.store.append(put)
    log.flush()
    again = restarted(log)
    assert again.ask(SyncGroup("t", "g", "a")) == GroupJoined("a", 3, (0, 2))
    assert again.ask(SyncGroup("t", "g", "b")) == GroupJoined("b", 3, (1, 3))


class DiskLog:
    """An engine over files of a simulated disk."""

    def __init__(self, disk: SimDisk) -> None:
        self.store = DiskStore("data", small_options(), disk=disk)
        self.engine = Engine(self.store)
        self.now = Now(1_700_000_000_000_000, 1_000_000)

    def settle(self) -> None:
        while True:
            self.now = Now(self.now.wall_us + 1000, self.now.mono_us + 1000)
            self.engine.tick(self.now)
            work = self.engine.take_flush()
            if work is not None:
                work.run()
                self.engine.flushed(work, None, self.now)
            works = self.engine.take_work()
            for other in works:
                other.run()
                self.engine.finished(other, None, self.now)
            if work is None and not works:
                return

    def ask(self, request: Any) -> Any:
        outcome = self.engine.handle(request, Client(1, "v1"), self.now)
        self.settle()
        assert outcome.ready
        return outcome.reply

    def stop(self) -> None:
        self.engine.begin_close(self.now)
        self.settle()
        self.engine.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_groups_come_back_from_the_journal_and_from_the_catalog(is_clean: bool) -> None:
    disk = SimDisk()
    log = DiskLog(disk)
    log.ask(CreateTopic("t", 3))
    log.ask(JoinGroup("t", "g", "a"))
    log.ask(JoinGroup("t", "g", "b", bound=True))
    log.ask(CommitOffset("t", "g", ((0, 1),), member="a", generation=2))
    log.ask(CreateGroup("t", "other", 9))
    if is_clean:
        log.stop()
    else:
        disk = disk.crashed()
    again = DiskLog(disk)
    assert again.ask(SyncGroup("t", "g", "a")) == GroupJoined("a", 3, (0, 1, 2))
    assert again.ask(FetchOffset("t", "g", 0)).offset == 1
    assert [group.number for group in again.ask(ListGroups("t")).groups] == [1, 9]
    again.stop()
    third = DiskLog(disk)
    assert third.ask(SyncGroup("t", "g", "a")).generation == 3
    third.stop()


def test_groups_follow_their_topic_to_its_new_name(log: Log) -> None:
    log.ask(UpdateTopic("t", name="new"))
    assert log.code(Heartbeat("t", "g", "a")) is ErrorCode.GROUP_TOPIC_MISMATCH
    assert log.ask(Heartbeat("new", "g", "a", 2)).generation == 2
    log.ask(AddPartitions("new", 1))
    assert log.ask(SyncGroup("new", "g", "b")) == GroupJoined("b", 3, (1, 3))
    again = restarted(log)
    assert again.ask(SyncGroup("new", "g", "b")) == GroupJoined("b", 3, (1, 3))


def test_a_topic_brings_its_groups_to_a_name_that_others_wait_for(log: Log) -> None:
    log.ask(JoinGroup("new", "waits", "m", assume_partitions=1))
    log.ask(UpdateTopic("t", name="new"))
    assert log.ask(Heartbeat("new", "g", "a")).generation == 2
    assert log.code(Heartbeat("new", "waits", "m")) is ErrorCode.UNKNOWN_GROUP
    assert statistic(log, "members") == 2
    assert set(log.store.catalog.groups[DEFAULT_NAMESPACE_NUMBER, "new"]) == {"g"}


def test_groups_that_wait_for_a_name_are_found_by_a_topic_renamed_to_it() -> None:
    log = Log()
    log.ask(JoinGroup("new", "g", "m", assume_partitions=1))
    log.ask(CreateTopic("t", 2))
    log.ask(UpdateTopic("t", name="new"))
    assert log.ask(SyncGroup("new", "g", "m")) == GroupJoined("m", 2, (0, 1))


def test_a_namespace_takes_its_groups_along_and_away() -> None:
    log = Log()
    log.ask(CreateNamespace("n"))
    log.ask(CreateTopic("t", 1, namespace="n"))
    log.ask(JoinGroup("t", "g", "m", namespace="n"))
    log.ask(JoinGroup("later", "g", "m", namespace="n", assume_partitions=1))
    log.ask(RenameNamespace("n", "o"))
    assert log.ask(Heartbeat("t", "g", "m", namespace="o")).generation == 1
    assert log.ask(Heartbeat("later", "g", "m", namespace="o")).generation == 1
    assert log.code(Heartbeat("t", "g", "m", namespace="n")) is ErrorCode.UNKNOWN_GROUP
    log.ask(DeleteNamespace("o"))
    assert log.code(Heartbeat("t", "g", "m", namespace="o")) is ErrorCode.UNKNOWN_GROUP
    assert (statistic(log, "groups"), statistic(log, "members")) == (0, 0)
    assert not log.store.catalog.groups


def test_a_group_needs_its_namespace() -> None:
    log = Log()
    request = JoinGroup("t", "g", "m", namespace="n", assume_partitions=3)
    assert log.code(request) is ErrorCode.UNKNOWN_NAMESPACE


def test_nothing_of_dropped_groups_is_kept(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "c", bound=True), BOUND)
    log.ask(DeleteTopic("t"))
    groups = log.engine._groups
    assert (groups._bound, groups._homes, groups._homes_by_topic) == ({}, {}, {})
    assert (groups._namesakes, groups._home_of, len(groups._due)) == ({}, {}, 0)
    log.engine.disconnected(BOUND, log.now)


def test_silent_members_of_a_group_go_with_one_generation(log: Log) -> None:
    log.ask(JoinGroup("t", "g", "c", session_timeout_us=60_000_000))
    log.pass_time(11)
    assert log.ask(SyncGroup("t", "g", "c")) == GroupJoined("c", 4, (0, 1, 2))
    assert statistic(log, "members_expired") == 2


def test_a_tick_looks_at_few_groups_however_many_are_due() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    for number in range(600):
        log.hand(JoinGroup("t", str(number), "m"))
    log.flush()
    log.pass_time(10.1)
    assert statistic(log, "members") == 600 - 256
    log.pass_time(0)
    log.pass_time(0)
    assert statistic(log, "members") == 0


def test_a_group_that_is_heard_of_costs_a_tick_nothing(log: Log) -> None:
    for _ in range(40):
        log.pass_time(2)
        log.ask(Heartbeat("t", "g", "a"))
        log.ask(Heartbeat("t", "g", "b"))
    assert statistic(log, "members") == 2
    assert len(log.engine._groups._due._heap) < 100


@pytest.mark.parametrize("ending", ["fenced", "closing"])
def test_nobody_leaves_a_log_that_takes_no_changes(log: Log, ending: str) -> None:
    log.ask(JoinGroup("t", "g", "c", bound=True), BOUND)
    if ending == "fenced":
        log.hand(CreateTopic("u", 1))
        log.flush(OSError(5, "I/O error"))
    else:
        log.engine.begin_close(log.now)
    log.engine.disconnected(BOUND, log.now)
    log.pass_time(60)
    assert statistic(log, "members") == 3
    code = ErrorCode.STORAGE_FAILED if ending == "fenced" else ErrorCode.SHUTTING_DOWN
    for request in (JoinGroup("t", "g", "d"), SyncGroup("t", "g", "a"), LeaveGroup("t", "g", "a")):
        assert log.code(request) is code


def test_every_change_is_in_the_journal_before_its_reply(log: Log) -> None:
    changing: list[Callable[[], Any]] = [
        lambda: JoinGroup("t", "g", "c"),
        lambda: JoinGroup("t", "g", "c", session_timeout_us=1_000_000),
        lambda: JoinGroup("t", "g", "c", assignor=Assignor.RANGE),
        lambda: LeaveGroup("t", "g", "c"),
        lambda: CreateGroup("t", "h"),
    ]
    for make in changing:
        outcome = log.hand(make())
        assert not outcome.ready
        log.flush()
        assert outcome.ready


def test_what_shows_a_generation_waits_until_it_is_durable(log: Log) -> None:
    log.hand(JoinGroup("t", "g", "c"))
    shown = [
        log.hand(Heartbeat("t", "g", "a", 3)),
        log.hand(SyncGroup("t", "g", "a", 3)),
        log.hand(JoinGroup("t", "g", "a")),
        log.hand(CommitOffset("t", "g", ((0, 0),), member="a", generation=3)),
        log.hand(Heartbeat("t", "g", "a", 2)),
        log.hand(DescribeGroup("t", "g")),
        log.hand(ListGroups("t")),
    ]
    assert [outcome.ready for outcome in shown] == [False] * len(shown)
    log.flush()
    assert [outcome.ready for outcome in shown] == [True] * len(shown)
    assert log.hand(Heartbeat("t", "g", "a", 3)).ready


def test_a_group_whose_name_is_a_free_number_has_that_number() -> None:
    home = Home(1, "t")
    names = ["b", "2", "c", "007", "0", str(GROUP_NUMBER_MAX), str(GROUP_NUMBER_MAX + 1), "1", "٣"]
    numbers = []
    for name in names:
        group = Group(name, home.number_for(name), Assignor.RANGE, 1)
        home.add(group)
        numbers.append(group.number)
    assert numbers == [1, 2, 3, 4, 5, GROUP_NUMBER_MAX, 6, 7, 8]
    home.remove(home.by_name["c"])
    assert home.number_for("d") == 3


def test_the_journal_holds_the_whole_group(log: Log) -> None:
    group = log.engine._groups.homes(DEFAULT_NAMESPACE_NUMBER)[0].by_name["g"]
    assert group.at_rest(DEFAULT_NAMESPACE_NUMBER, "t") == GroupPut(
        DEFAULT_NAMESPACE_NUMBER,
        "t",
        "g",
        1,
        2,
        "round_robin",
        3,
        [["a", "test", 10_000_000, False], ["b", "test", 10_000_000, False]],
    )


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_the_catalog_knows_the_groups_as_they_are(seed: int) -> None:
    log = Log()
    random = Random(seed)
    clients = [Client(number, "iggy") for number in range(4)]
    for _ in range(500):
        topic, group, member = random.choice("abc"), random.choice("gh7"), random.choice("uvwx")
        assignor = random.choice((None, Assignor.RANGE))
        requests: list[Request] = [
            JoinGroup(topic, group, member, assume_partitions=3, assignor=assignor),
            JoinGroup(topic, group, member, bound=True, must_exist=True),
            LeaveGroup(topic, group, member, None),
            CreateGroup(topic, group, random.randrange(3)),
            DeleteGroup(topic, group),
            CommitOffset(topic, group, ((0, 1),)),
            CreateTopic(topic, random.randrange(4)),
            AddPartitions(topic, 1),
            RemovePartitions(topic, 1),
            UpdateTopic(topic, name=random.choice("abc")),
            DeleteTopic(topic),
        ]
        client = random.choice(clients)
        log.hand(random.choice(requests), client)
        if random.random() < 0.1:
            log.engine.disconnected(client, log.now)
        log.flush()
        shown = log.ask(ListGroups(None)).groups
        kept = log.store.catalog.groups
        assert {(g.topic, g.name, g.generation, len(g.members)) for g in shown} == {
            (topic, name, state.generation, len(state.members))
            for (_, topic), states in kept.items()
            for name, state in states.items()
        }
        for one in (one for one in shown if one.members):
            owned = [partition for each in one.members for partition in each.partitions]
            assert sorted(owned) == list(range(one.partition_count))
