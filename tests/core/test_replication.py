"""Roles, reports and produces that wait for replicas, asked in core's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from dragoman.core.calls import (
    Acks,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Fetch,
    Follow,
    Produce,
    Produced,
    ProducedMany,
    ProduceMany,
    RemovePartitions,
    ReportReplica,
    Role,
    SetRole,
    Whence,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.outcome import Client, Outcome
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.outside import OutsideLog
from dragoman.simulation.disk import SimDisk
from support.log import Log, batch, values
from support.store import small_options

if TYPE_CHECKING:
    from dragoman.core.memory import MemoryStore

TIMEOUT_S = 2.0


def log(**options: int) -> Log:
    """A log with topic t of three partitions."""
    made = Log(**options)
    made.ask(CreateTopic("t", 3))
    return made


def all_of(*written: bytes, partition: int = 0) -> Produce:
    return Produce("t", batch(*written), partition, acks=Acks.ALL)


def many(*hashes: int) -> ProduceMany:
    written = [b"%d" % number for number in hashes]
    return ProduceMany("t", written, written, hashes, 0, acks=Acks.ALL)


def report(offset: int, *, replica: int = 1, partition: int = 0) -> ReportReplica:
    return ReportReplica("t", partition, replica, offset)


def described(log: Log, partition: int = 0) -> Any:
    return log.ask(DescribeTopic("t")).topic.partitions[partition]


# ---------------------------------------------------------------- roles


def test_a_followers_partition_takes_no_records_and_reads_go_on() -> None:
    one = log()
    one.put("t", b"a")
    assert one.ask(SetRole("t", 0, Role.FOLLOWER)).high_watermark == 1
    assert one.code(Produce("t", batch(b"b"), 0)) is ErrorCode.NOT_LEADER
    assert one.code(Produce("t", batch(b"b"), 0, acks=Acks.NONE)) is ErrorCode.NOT_LEADER
    assert one.code(report(0)) is ErrorCode.NOT_LEADER
    assert one.read("t") == [b"a"]
    assert one.put("t", b"c", partition=1).base_offset == 0


def test_a_partition_that_leads_again_takes_records_again() -> None:
    one = log()
    one.ask(SetRole("t", 0, Role.FOLLOWER))
    one.ask(SetRole("t", 0, Role.LEADER))
    assert one.put("t", b"a").base_offset == 0


def test_of_many_only_the_share_of_the_follower_is_refused() -> None:
    one = log()
    one.ask(SetRole("t", 1, Role.FOLLOWER))
    reply = one.ask(many(0, 1, 2, 1))
    assert [isinstance(part, Failure) for part in reply.parts] == [False, True, False]
    assert reply.parts[1].code is ErrorCode.NOT_LEADER
    assert reply.places == [0, 1, 2, 1]
    alone = one.ask(many(1))
    assert alone.parts[0].code is ErrorCode.NOT_LEADER


def test_a_role_makes_its_topic_where_it_is_missing() -> None:
    one = Log()
    assert one.code(SetRole("new", 0, Role.FOLLOWER)) is ErrorCode.UNKNOWN_TOPIC
    reply = one.ask(SetRole("new", 2, Role.FOLLOWER, create_partitions=3))
    assert (reply.topic, reply.partition, reply.role) == ("new", 2, Role.FOLLOWER)
    assert one.code(SetRole("new", 3, Role.LEADER)) is ErrorCode.UNKNOWN_PARTITION


def test_a_role_is_told_once_it_is_durable_and_so_is_its_refusal() -> None:
    one = log()
    set_role = one.hand(SetRole("t", 0, Role.FOLLOWER))
    refused = one.hand(Produce("t", batch(b"a"), 0))
    assert not set_role.ready
    assert not refused.ready
    one.flush()
    assert set_role.ready
    assert refused.ready


def test_the_same_role_again_is_no_change() -> None:
    one = log()
    one.ask(SetRole("t", 0, Role.FOLLOWER))
    assert one.hand(SetRole("t", 0, Role.FOLLOWER)).ready
    assert one.engine.take_flush() is None


def test_roles_survive_a_restart() -> None:
    one = log()
    one.ask(SetRole("t", 1, Role.FOLLOWER))
    two = Log(one.store.restarted())
    assert two.code(Produce("t", batch(b"a"), 1)) is ErrorCode.NOT_LEADER
    assert [p.role for p in two.ask(DescribeTopic("t")).topic.partitions] == [
        Role.LEADER,
        Role.FOLLOWER,
        Role.LEADER,
    ]
    assert two.engine.statistics()["follower_partitions"] == 1


def disk_log(disk: SimDisk, **options: int) -> Log:
    """A log on a simulated disk."""
    return Log(cast("MemoryStore", DiskStore("data", small_options(), disk=disk)), **options)


def settle(one: Log, seconds: float) -> None:
    """Lets time pass and everything that is due on the disk happen."""
    one.pass_time(seconds)
    for _ in range(8):
        one.flush()
        one.work()


@pytest.mark.parametrize("clean", [True, False])
def test_roles_survive_a_restart_on_a_disk(clean: bool) -> None:
    disk = SimDisk()
    one = disk_log(disk)
    one.ask(CreateTopic("t", 2))
    settle(one, 40)  # the topic is in a catalog, the role in the journal behind it
    one.ask(SetRole("t", 1, Role.FOLLOWER))
    if clean:
        one.engine.begin_close(one.now)
        settle(one, 1)
        one.engine.close()
    else:
        disk = disk.crashed()
    two = disk_log(disk)
    assert two.code(Produce("t", batch(b"a"), 1)) is ErrorCode.NOT_LEADER
    assert two.put("t", b"a", partition=0).base_offset == 0


def test_readers_beside_a_server_on_a_disk_are_held_back_as_well() -> None:
    disk = SimDisk()
    one = disk_log(disk, replica_lag_max=5)
    one.ask(CreateTopic("t", 1))
    one.put("t", b"a")
    one.ask(report(0))
    one.put("t", b"b")
    settle(one, 2)
    outside = OutsideLog("data", disk=disk)
    (topic,) = outside.topics()
    assert outside.partitions(topic.topic_id)[0].high_watermark == 1
    settle(one, 10)
    settle(one, 2)
    outside.refresh()
    assert outside.partitions(topic.topic_id)[0].high_watermark == 2


def test_a_role_is_refused_where_nothing_can_be_written() -> None:
    one = log()
    one.engine.begin_close(one.now)
    assert one.code(SetRole("t", 0, Role.FOLLOWER)) is ErrorCode.SHUTTING_DOWN
    assert described(one).role is Role.LEADER


# ---------------------------------------------------------------- reports


@pytest.mark.parametrize("replica", [-1, 0, 3, 1 << 62])
def test_a_replica_is_1_to_the_replication_factor_less_1(replica: int) -> None:
    assert log().code(report(0, replica=replica)) is ErrorCode.INVALID_NUMBER


def test_a_replica_of_no_place_is_refused() -> None:
    one = log()
    assert one.code(report(0, partition=3)) is ErrorCode.UNKNOWN_PARTITION
    assert one.code(ReportReplica("none", 0, 1, 0)) is ErrorCode.UNKNOWN_TOPIC


def test_a_report_is_answered_with_who_is_in_sync() -> None:
    one = log(in_sync_min=3)
    one.put("t", b"a", b"b")
    assert one.ask(report(7, replica=2)).in_sync == (0, 2)
    reply = one.ask(report(1))
    assert reply.in_sync == (0, 1, 2)
    assert (reply.offset, reply.high_watermark, reply.under_replicated) == (1, 2, False)
    one.put("t", b"c")
    reply = one.ask(report(2))
    assert (reply.in_sync, reply.under_replicated) == ((0, 1), True)


def test_a_description_tells_roles_and_who_is_in_sync() -> None:
    one = log(in_sync_min=2)
    one.ask(report(-1))
    one.ask(SetRole("t", 2, Role.FOLLOWER))
    partitions = one.ask(DescribeTopic("t")).topic.partitions
    assert [p.in_sync for p in partitions] == [(0, 1), (0,), (0,)]
    assert [p.under_replicated for p in partitions] == [False, True, True]
    assert [p.role for p in partitions] == [Role.LEADER, Role.LEADER, Role.FOLLOWER]
    assert one.engine.statistics()["under_replicated_partitions"] == 2


# ---------------------------------------------------------------- readers


def test_a_lagging_replica_holds_every_reader_back_and_its_report_lets_them_on() -> None:
    one = log(replica_lag_max=5)
    one.put("t", b"a")
    one.ask(report(0))
    assert one.put("t", b"b").high_watermark == 1
    poll = one.hand(Fetch("t", 0, 1, wait_us=60_000_000))
    follow = one.hand(Follow("t", 0, 1))
    assert not poll.ready
    assert one.engine.pull(follow, one.now) is None
    assert one.read("t") == [b"a"]
    assert one.ask(Fetch("t", 0, 1, whence=Whence.LAST)).next_offset == 1
    assert described(one).high_watermark == 1
    one.ready.clear()
    one.ask(report(1))
    assert poll.ready
    assert values(poll.reply.slices) == [b"b"]
    assert follow in one.ready
    pushed = one.engine.pull(follow, one.now)
    assert values(pushed.slices) == [b"b"]


def test_a_replica_that_falls_silent_lets_readers_on() -> None:
    one = log(replica_lag_max=5)
    one.put("t", b"a")
    one.ask(report(0))
    one.put("t", b"b")
    poll = one.hand(Fetch("t", 0, 1, wait_us=60_000_000))
    one.pass_time(9.99)
    assert not poll.ready
    one.pass_time(0.02)
    assert values(poll.reply.slices) == [b"b"]


def test_readers_beside_the_engine_are_held_back_as_well() -> None:
    one = log(replica_lag_max=5)
    one.put("t", b"a")
    one.ask(report(0))
    one.put("t", b"b")
    (place,) = one.store.visible
    assert one.store.visible[place] == 1
    one.ask(report(1))
    assert one.store.visible[place] == 2


def test_what_was_held_back_is_seen_after_a_restart() -> None:
    one = log(replica_lag_max=5)
    one.put("t", b"a")
    one.ask(report(0))
    one.put("t", b"b")
    assert Log(one.store.restarted()).read("t") == [b"a", b"b"]


# ---------------------------------------------------------------- acks=all


def test_a_lone_server_answers_as_soon_as_it_is_durable() -> None:
    one = log()
    outcome = one.hand(all_of(b"a"))
    assert not outcome.ready
    one.flush()
    assert outcome.reply == Produced(0, 0, 1, 1)
    assert one.engine.statistics()["replica_waits"] == 0


def test_nobody_reports_and_the_produce_times_out_but_the_record_stays() -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(all_of(b"a"))
    one.flush()
    one.pass_time(TIMEOUT_S - 0.001)
    assert not outcome.ready
    one.pass_time(0.001)
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.REPLICATION_TIMEOUT
    assert one.ready.count(outcome) == 1
    assert one.read("t") == [b"a"]
    statistics = one.engine.statistics()
    assert (statistics["replication_timeouts"], statistics["replica_waits"]) == (1, 0)


def test_other_acks_never_wait_for_replicas() -> None:
    one = log(in_sync_min=2)
    assert isinstance(one.put("t", b"a"), Produced)
    assert one.hand(Produce("t", batch(b"b"), 0, acks=Acks.NONE)).ready


@pytest.mark.parametrize("early", [True, False])
def test_a_report_of_the_record_lets_the_produce_go_once_it_is_durable(early: bool) -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(all_of(b"a", b"b"))
    if not early:
        one.flush()
    one.hand(report(0))
    assert not outcome.ready
    one.hand(report(1))
    if early:
        assert not outcome.ready
        one.flush()
    assert outcome.reply == Produced(0, 0, 2, 2)
    assert one.ready.count(outcome) == 1


def test_a_lagging_replica_in_sync_must_have_the_record_too() -> None:
    one = log(replica_lag_max=5)
    one.put("t", b"a")
    one.ask(report(0))
    outcome = one.hand(all_of(b"b"))
    one.flush()
    assert not outcome.ready
    one.ask(report(1))
    assert outcome.reply == Produced(0, 1, 1, 2)


def test_a_replica_that_falls_silent_lets_the_produce_go() -> None:
    one = log(replica_lag_max=5, acks_all_timeout_us=60_000_000)
    one.put("t", b"a")
    one.ask(report(0))
    outcome = one.hand(all_of(b"b"))
    one.flush()
    one.pass_time(10)
    assert outcome.reply == Produced(0, 1, 1, 2)


def test_a_timeout_is_not_told_before_the_record_is_durable() -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(all_of(b"a"))
    one.pass_time(TIMEOUT_S)
    assert not outcome.ready
    one.flush()
    assert outcome.ready
    assert isinstance(outcome.reply, Failure)


def test_many_wait_for_each_of_their_partitions() -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(many(0, 1, 0))
    one.flush()
    one.ask(report(1))
    assert not outcome.ready
    one.ask(report(0, partition=1))
    assert outcome.reply == ProducedMany([Produced(0, 0, 2, 2), Produced(1, 0, 1, 1)], [0, 1, 0])


def test_of_many_only_the_partitions_without_replicas_time_out() -> None:
    one = log(in_sync_min=2)
    one.ask(SetRole("t", 2, Role.FOLLOWER))
    outcome = one.hand(many(0, 1, 2))
    one.flush()
    one.ask(report(0))
    one.pass_time(TIMEOUT_S)
    assert isinstance(outcome.reply, ProducedMany)
    first, second, third = outcome.reply.parts
    assert first == Produced(0, 0, 1, 1)
    assert isinstance(second, Failure)
    assert second.code is ErrorCode.REPLICATION_TIMEOUT
    assert isinstance(third, Failure)
    assert third.code is ErrorCode.NOT_LEADER


def test_many_on_a_lone_server_are_answered_when_durable() -> None:
    one = log()
    outcome = one.hand(many(0, 1))
    one.flush()
    assert outcome.reply == ProducedMany([Produced(0, 0, 1, 1), Produced(1, 0, 1, 1)], [0, 1])


# ---------------------------------------------------------------- the end of a wait


def waiting(one: Log, client: Client | None = None) -> Outcome:
    outcome = one.hand(all_of(b"a"), client)
    one.flush()
    assert not outcome.ready
    return outcome


def test_a_client_that_is_gone_waits_no_more() -> None:
    one = log(in_sync_min=2)
    client = Client(7, "test")
    one.engine.connected(client, one.now)
    outcome = waiting(one, client)
    one.engine.disconnected(client, one.now)
    assert one.engine.statistics()["replica_waits"] == 0
    one.ask(report(0))
    one.pass_time(TIMEOUT_S)
    assert outcome not in one.ready


def test_a_wait_can_be_cancelled() -> None:
    one = log(in_sync_min=2)
    outcome = waiting(one)
    one.engine.cancel(outcome, one.now)
    one.pass_time(TIMEOUT_S)
    assert outcome not in one.ready
    assert one.engine.statistics()["replica_waits"] == 0


def test_a_fenced_log_ends_the_wait() -> None:
    one = log(in_sync_min=2)
    durable = waiting(one)
    pending = one.hand(all_of(b"b"))
    one.flush(OSError(5, "broken"))
    for outcome in (durable, pending):
        assert isinstance(outcome.reply, Failure)
        assert outcome.reply.code is ErrorCode.STORAGE_FAILED
        assert one.ready.count(outcome) == 1


def test_a_dropped_topic_ends_the_wait() -> None:
    one = log(in_sync_min=2)
    outcome = waiting(one)
    one.ask(DeleteTopic("t"))
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.UNKNOWN_TOPIC
    statistics = one.engine.statistics()
    assert (statistics["replica_waits"], statistics["under_replicated_partitions"]) == (0, 0)


def test_a_removed_partition_ends_only_its_own_share_of_a_wait() -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(many(0, 2))
    one.flush()
    one.ask(RemovePartitions("t", 1))
    assert not outcome.ready
    one.ask(report(0))
    assert isinstance(outcome.reply, ProducedMany)
    kept, gone = outcome.reply.parts
    assert kept == Produced(0, 0, 1, 1)
    assert isinstance(gone, Failure)
    assert gone.code is ErrorCode.UNKNOWN_PARTITION


def test_a_stop_ends_the_wait_once_the_record_is_durable() -> None:
    one = log(in_sync_min=2)
    outcome = one.hand(all_of(b"a"))
    one.engine.begin_close(one.now)
    assert not outcome.ready
    one.flush()
    assert isinstance(outcome.reply, Failure)
    assert outcome.reply.code is ErrorCode.REPLICATION_TIMEOUT


def test_waits_that_ended_leave_nothing_behind() -> None:
    one = log(in_sync_min=2)
    for _ in range(200):
        one.hand(all_of(b"a"))
        one.flush()
        one.pass_time(TIMEOUT_S)
    (topic,) = one.engine._directory.topics.values()
    kept = topic.partitions[0].replication
    assert kept is not None
    assert not kept.waits
    assert len(one.engine._waiting) == 0


def once(sequence: int, *written: bytes) -> Produce:
    """A batch of an idempotent producer."""
    one = batch(*written)
    one.producers = (b"p",)
    one.producer_epoch = 0
    one.base_sequence = sequence
    return Produce("t", one, 0, acks=Acks.ALL, idempotent=True)


def test_a_duplicate_is_answered_at_once_by_a_lone_server() -> None:
    one = log()
    first = one.hand(once(1, b"a"))
    one.flush()
    assert isinstance(first.reply, Produced)
    again = one.hand(once(1, b"a"))
    assert again.ready
    assert isinstance(again.reply, Produced)
    assert (again.reply.base_offset, again.reply.high_watermark) == (0, 1)


def test_a_duplicate_after_a_timeout_waits_for_replicas_like_the_original() -> None:
    one = log(in_sync_min=2)
    one.hand(once(1, b"a"))
    one.flush()
    one.pass_time(TIMEOUT_S)
    again = one.hand(once(1, b"a"))
    assert not again.ready
    one.ask(report(0))
    assert isinstance(again.reply, Produced)
    assert again.reply.base_offset == 0
    assert one.hand(once(1, b"a")).ready
    assert one.read("t") == [b"a"]


def test_a_batch_in_several_pieces_waits_for_all_of_them() -> None:
    one = log(in_sync_min=2, request_bytes_max=80 << 20)
    big = batch(*[bytes(20 << 20)] * 3)
    assert isinstance(big.values, VarColumn)
    outcome = one.hand(Produce("t", big, 0, acks=Acks.ALL))
    one.flush()
    one.ask(report(1))
    assert not outcome.ready
    one.ask(report(2))
    assert outcome.reply == Produced(0, 0, 3, 3)
