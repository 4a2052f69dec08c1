"""The engine as a whole: every request served, nothing revealed before it is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from dragoman.core import calls
from dragoman.core.calls import (
    Acks,
    Answer,
    Answered,
    CommitOffset,
    CreateTopic,
    DeleteTopic,
    DescribeTopic,
    Fetch,
    FetchOffset,
    Follow,
    Ping,
    Ponged,
    Produce,
    ReadStatistics,
)
from dragoman.core.clock import Now
from dragoman.core.engine import Engine
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.interface import WorkLane
from dragoman.core.memory import MemoryStore
from dragoman.core.outcome import Client
from support.log import Log, batch, values

if TYPE_CHECKING:
    from dragoman.core.interface import LogEngine, Work


def test_the_engine_fulfils_its_interface() -> None:
    engine: LogEngine = Engine(MemoryStore())
    assert engine.take_flush() is None


@pytest.mark.parametrize("request_type", get_args(calls.Request))
def test_every_request_has_a_handler(request_type: type) -> None:
    assert request_type in Log().engine._handlers


def test_what_is_not_a_request_is_our_own_bug() -> None:
    with pytest.raises(KeyError):
        Log().hand("produce")  # type: ignore[arg-type]


def test_a_ping_is_answered_at_once() -> None:
    assert isinstance(Log().hand(Ping()).reply, Ponged)


def test_an_answer_passes_through() -> None:
    outcome = Log().hand(Answer("pong"))
    assert outcome.ready
    assert outcome.reply == Answered("pong")


def test_statistics_are_a_request_too() -> None:
    log = Log()
    log.put("t", b"abc", b"d")
    log.read("t")
    found = log.ask(ReadStatistics()).values
    assert found["produced_records"] == 2
    assert found["produced_bytes"] == 4
    assert found["fetched_records"] == 2
    assert found["topics"] == 1
    assert found["partitions"] == 3


def test_a_produce_is_answered_only_when_it_is_durable() -> None:
    log = Log()
    log.put("t", b"a")
    outcome = log.hand(Produce("t", batch(b"b"), 0))
    assert not outcome.ready
    work = log.engine.take_flush()
    assert work is not None
    work.run()
    log.collect()
    assert not outcome.ready
    log.engine.flushed(work, None, log.now)
    assert log.engine.take_ready() == [outcome]
    assert outcome.reply == calls.Produced(0, 1, 1, high_watermark=2)


def test_nobody_reads_what_is_not_durable() -> None:
    log = Log()
    log.put("t", b"a")
    log.hand(Produce("t", batch(b"b"), 0))
    assert log.read("t") == [b"a"]
    work = log.engine.take_flush()
    assert work is not None
    assert values(log.hand(Fetch("t", 0)).reply.slices) == [b"a"]  # type: ignore[union-attr]
    assert log.hand(Fetch("t", 0, 1)).reply.slices == []  # type: ignore[union-attr]
    log.engine.flushed(work, None, log.now)
    assert log.read("t") == [b"a", b"b"]


def test_what_arrives_during_a_flush_waits_for_the_next() -> None:
    log = Log()
    log.put("t", b"a")
    first = log.hand(Produce("t", batch(b"b"), 0))
    work = log.engine.take_flush()
    assert work is not None
    second = log.hand(Produce("t", batch(b"c"), 0))
    assert log.engine.take_flush() is None
    log.engine.flushed(work, None, log.now)
    log.collect()
    assert first.ready
    assert not second.ready
    assert log.read("t") == [b"a", b"b"]
    log.flush()
    assert second.ready


def test_outcomes_become_ready_in_the_order_of_their_requests() -> None:
    log = Log()
    clients = [Client(number, "test") for number in range(3)]
    asked = []
    for turn in range(4):
        for client in clients:
            request = Produce("t", batch(b"x"), turn % 2, create_partitions=2)
            asked.append(log.hand(request, client))
        asked.append(log.hand(DescribeTopic("t"), clients[0]))
    assert not any(outcome.ready for outcome in asked)
    log.flush()
    assert log.ready == asked


def test_acks_none_is_answered_at_once_with_the_watermark_as_it_stands() -> None:
    log = Log()
    log.put("t", b"a")
    outcome = log.hand(Produce("t", batch(b"b"), 0, acks=Acks.NONE))
    assert outcome.ready
    assert outcome.reply == calls.Produced(0, 1, 1, high_watermark=1)
    log.flush()
    assert log.read("t") == [b"a", b"b"]


def test_a_new_topic_is_revealed_to_nobody_before_it_is_durable() -> None:
    log = Log()
    created = log.hand(CreateTopic("t", 1))
    asked = [
        log.hand(request, Client(2, "test"))
        for request in (
            calls.ListTopics(),
            DescribeTopic("t"),
            CreateTopic("t", 1),
            calls.ListNamespaces(),
            calls.DescribeNamespace("default"),
            Fetch("t", 0),
        )
    ]
    assert not created.ready
    assert not any(outcome.ready for outcome in asked)
    log.flush()
    assert created.ready
    assert all(outcome.ready for outcome in asked)


def test_that_a_topic_is_gone_is_revealed_only_when_that_is_durable() -> None:
    log = Log()
    log.put("t", b"a")
    log.hand(DeleteTopic("t"))
    outcome = log.hand(Fetch("t", 0))
    assert not outcome.ready
    log.flush()
    assert outcome.ready
    assert isinstance(outcome.reply, Failure)


def test_a_committed_offset_is_revealed_only_when_it_is_durable() -> None:
    log = Log()
    log.put("t", b"a")
    commit = log.hand(CommitOffset("t", "g", ((0, 1),)))
    fetch = log.hand(FetchOffset("t", "g", 0))
    other = log.hand(FetchOffset("t", "another", 0))
    assert not commit.ready
    assert not fetch.ready
    assert other.ready
    log.flush()
    assert log.ready[-2:] == [commit, fetch]
    assert fetch.reply.offset == 1  # type: ignore[union-attr]


def test_a_failed_flush_fences_everything_that_writes() -> None:
    log = Log()
    log.put("t", b"a")
    waiting = log.hand(Produce("t", batch(b"b"), 0))
    log.flush(OSError(5, "I/O error"))
    assert isinstance(waiting.reply, Failure)
    assert waiting.reply.code is ErrorCode.STORAGE_FAILED
    for request in (
        Produce("t", batch(b"c"), 0),
        Produce("t", batch(b"c"), 0, acks=Acks.NONE),
        CreateTopic("u", 1),
        DeleteTopic("t"),
        CommitOffset("t", "g", ((0, 1),)),
        calls.CreateNamespace("n"),
        calls.UpdateTopic("t", name="x"),
        calls.AddPartitions("t", 1),
        calls.RemovePartitions("t", 1),
        calls.ProduceMany("t", [b"v"], [b"k"], [1], 0),
    ):
        assert log.code(request) is ErrorCode.STORAGE_FAILED, request
    assert log.read("t") == [b"a"]
    assert log.engine.statistics()["failure"] == "[Errno 5] I/O error"


def test_a_full_store_refuses_and_goes_on() -> None:
    log = Log(MemoryStore(bytes_max=1000))
    log.put("t", b"a")
    assert log.code(Produce("t", batch(bytes(2000)), 0)) is ErrorCode.STORAGE_FULL
    assert log.put("t", b"b").base_offset == 1


def test_the_engine_says_when_it_is_overloaded() -> None:
    log = Log(MemoryStore(bytes_max=1000))
    assert not log.engine.overloaded()
    log.put("t", bytes(800))
    assert log.engine.overloaded()


def test_a_restart_gives_back_what_was_durable_and_nothing_else() -> None:
    log = Log()
    log.put("t", b"a", b"b")
    log.ask(CommitOffset("t", "g", ((0, 2),)))
    log.hand(Produce("t", batch(b"lost"), 0))
    log.hand(CreateTopic("lost", 1))
    again = Log(log.store.restarted())
    assert again.read("t") == [b"a", b"b"]
    assert again.ask(FetchOffset("t", "g", 0)).offset == 2
    assert again.code(DescribeTopic("lost")) is ErrorCode.UNKNOWN_TOPIC
    assert again.put("t", b"c").base_offset == 2
    assert again.read("t") == [b"a", b"b", b"c"]


def test_a_client_that_went_away_is_not_answered() -> None:
    log = Log()
    log.put("t", b"a")
    gone, stays = Client(2, "test"), Client(3, "test")
    log.engine.connected(gone, log.now)
    log.ready.clear()
    log.hand(Produce("t", batch(b"b"), 0), gone)
    log.hand(Fetch("t", 0, 5, wait_us=1000), gone)
    log.hand(Follow("t", 0, 5), gone)
    kept = log.hand(Produce("t", batch(b"c"), 0), stays)
    log.engine.disconnected(gone, log.now)
    log.flush()
    assert log.ready == [kept]
    assert log.read("t") == [b"a", b"b", b"c"]
    found = log.engine.statistics()
    assert (found["waiting"], found["long_polls"], found["followers"]) == (0, 0, 0)


def test_a_client_gone_in_an_earlier_flush_leaves_no_trace() -> None:
    log = Log()
    log.put("t", b"a")
    gone = Client(2, "test")
    log.hand(Produce("t", batch(b"b"), 0), gone)
    log.engine.disconnected(gone, log.now)
    log.flush()
    assert log.engine._waiting._gone == {}


def test_a_cancelled_produce_is_still_written() -> None:
    log = Log()
    log.put("t", b"a")
    log.ready.clear()
    outcome = log.hand(Produce("t", batch(b"b"), 0))
    log.engine.cancel(outcome, log.now)
    log.engine.cancel(outcome, log.now)
    log.flush()
    assert log.ready == []
    assert log.read("t") == [b"a", b"b"]


def test_deleting_a_topic_fails_who_waits_there() -> None:
    log = Log()
    log.put("t", b"a")
    log.ready.clear()
    produce = log.hand(Produce("t", batch(b"b"), 0))
    poll = log.hand(Fetch("t", 0, 1, wait_us=10**6))
    log.hand(DeleteTopic("t"))
    assert not poll.ready
    log.flush()
    for outcome in (produce, poll):
        assert isinstance(outcome.reply, Failure)
        assert outcome.reply.code is ErrorCode.UNKNOWN_TOPIC


def test_a_produce_waits_for_the_deletion_that_it_reveals() -> None:
    log = Log()
    log.put("t", b"a")
    produce = log.hand(Produce("t", batch(b"b"), 0))
    work = log.engine.take_flush()
    assert work is not None
    log.hand(DeleteTopic("t"))
    log.engine.flushed(work, None, log.now)
    log.collect()
    assert not produce.ready
    log.flush()
    assert isinstance(produce.reply, Failure)


def test_a_topic_of_the_same_name_begins_anew() -> None:
    log = Log()
    log.put("t", b"a", b"b")
    log.hand(Produce("t", batch(b"c"), 0))
    log.ask(DeleteTopic("t"))
    assert log.put("t", b"new").base_offset == 0
    assert log.read("t") == [b"new"]


def test_a_removed_partition_that_comes_back_shows_nothing_of_its_namesake() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    log.ask(Produce("t", batch(b"a", b"b"), 0))
    log.hand(Produce("t", batch(b"c"), 0))
    work = log.engine.take_flush()
    assert work is not None
    log.hand(calls.RemovePartitions("t", 1))
    log.hand(calls.AddPartitions("t", 1))
    log.hand(Produce("t", batch(b"new"), 0))
    log.engine.flushed(work, None, log.now)
    held = log.hand(Fetch("t", 0))
    assert not held.ready
    assert held.reply.slices == []  # type: ignore[union-attr]
    log.flush()
    assert log.read("t") == [b"new"]


def test_closing_answers_polls_ends_follows_and_refuses_writes() -> None:
    log = Log()
    log.put("t", b"a")
    poll = log.hand(Fetch("t", 0, 1, wait_us=10**6))
    follow = log.hand(Follow("t", 0))
    assert log.engine.pull(follow, log.now) is not None
    log.engine.begin_close(log.now)
    log.collect()
    assert poll.ready
    ended = log.engine.pull(follow, log.now)
    assert isinstance(ended, Failure)
    assert ended.code is ErrorCode.SHUTTING_DOWN
    assert log.code(Produce("t", batch(b"b"), 0)) is ErrorCode.SHUTTING_DOWN
    assert log.code(Follow("t", 0)) is ErrorCode.SHUTTING_DOWN
    assert log.hand(Fetch("t", 0, 1, wait_us=10**6)).ready
    log.flush()
    assert log.engine.take_flush() is None
    assert log.engine.take_work() == []
    log.engine.close()


def test_a_wall_clock_that_falls_back_is_counted_and_stamps_never_fall() -> None:
    log = Log()
    log.put("t", b"a")
    stamp = log.now.wall_us
    log.now = Now(stamp - 5_000_000, log.now.mono_us + 1)
    log.engine.tick(log.now)
    log.put("t", b"b")
    slices = log.ask(Fetch("t", 0)).slices
    assert [piece.batch.timestamp_at(i) for piece in slices for i in range(*piece[1:])] == [
        stamp,
        stamp,
    ]
    assert log.engine.statistics()["clock_jumps"] == 1


class _Checkpoint:
    lane = WorkLane.CHECKPOINT

    def run(self) -> None:
        """Nothing; its end is what matters."""


class _FailingCheckpoint(MemoryStore):
    """A store whose checkpoint fails, which fences it outside a flush."""

    def take_work(self, now: Now) -> list[Work]:
        return [_Checkpoint()]

    def finished(self, work: Work, error: OSError | None) -> None:
        self.failure = error


def test_a_failed_checkpoint_fails_who_waits_for_durability() -> None:
    log = Log(_FailingCheckpoint())
    log.ask(CreateTopic("t", 1))
    follow = log.hand(Follow("t", 0))
    produce = log.hand(Produce("t", batch(b"a"), 0))
    delete = log.hand(DeleteTopic("t"))
    log.work(OSError(28, "No space left on device"))
    for outcome in (produce, delete):
        assert isinstance(outcome.reply, Failure)
        assert outcome.reply.code is ErrorCode.STORAGE_FAILED
    assert follow in log.ready
    assert isinstance(log.engine.pull(follow, log.now), Failure)


def test_a_read_that_would_commit_is_refused_once_fenced() -> None:
    log = Log()
    log.put("t", b"a")
    log.hand(Produce("t", batch(b"b"), 0))
    log.flush(OSError(5, "I/O error"))
    request = Fetch("t", 0, group="g", auto_commit=True)
    assert log.code(request) is ErrorCode.STORAGE_FAILED


def test_a_cold_read_that_would_commit_is_refused_once_fenced() -> None:
    log = Log(MemoryStore(blocking_reads=True))
    log.put("t", b"a")
    read = log.hand(Fetch("t", 0, group="g", auto_commit=True))
    log.hand(Produce("t", batch(b"b"), 0))
    log.flush(OSError(5, "I/O error"))
    log.work()
    assert isinstance(read.reply, Failure)
    assert read.reply.code is ErrorCode.STORAGE_FAILED


def test_a_long_poll_that_reveals_what_was_lost_is_refused_once_fenced() -> None:
    log = Log()
    log.put("t", b"a")
    poll = log.hand(Fetch("t", 0, 1, wait_us=1_000_000, group="g"))
    log.hand(CommitOffset("t", "g", ((0, 1),)))
    log.flush(OSError(5, "I/O error"))
    log.pass_time(1)
    assert isinstance(poll.reply, Failure)
    assert poll.reply.code is ErrorCode.STORAGE_FAILED
