"""The log engine: requests in, outcomes out, everything that blocks handed to others.

It decides (offsets, names, numbers, who waits for what) and a `core.store.Store` keeps. It knows no
file, socket, clock or thread; every call comes from one thread and returns at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import calls
from dragoman.core.clock import Now
from dragoman.core.compacting import Compacting
from dragoman.core.describe import Describer
from dragoman.core.directory import Directory
from dragoman.core.error import EngineError
from dragoman.core.events.eventing import Eventing
from dragoman.core.events.job import Job
from dragoman.core.fetch import Fetching
from dragoman.core.follow import Following
from dragoman.core.groups.admin import GroupAdmin
from dragoman.core.groups.coordinator import Coordinator
from dragoman.core.groups.groups import Groups
from dragoman.core.lag import Lags, lags_of
from dragoman.core.matching import Gathering, Matching
from dragoman.core.namespace import Namespaces
from dragoman.core.offset import Offsets
from dragoman.core.options import EngineOptions
from dragoman.core.outcome import Outcome
from dragoman.core.produce import Producing
from dragoman.core.reader import Reader
from dragoman.core.replica import Replicas
from dragoman.core.replication import AckWait, Replicating
from dragoman.core.retention import Retention
from dragoman.core.topic import Topics
from dragoman.core.trim import Trimming
from dragoman.core.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman.core.error import Failure
    from dragoman.core.interface import Flush, Work
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store

CLOCK_JUMP_US = 1_000_000
"""A wall clock that falls back by more is counted: retention and searches by time err by it."""


class Engine:
    """A `core.interface.LogEngine` over a store.

    Args:
        store: What it recovered becomes the live state; all of that is durable and visible.
    """

    def __init__(self, store: Store, options: EngineOptions | None = None) -> None:
        options = options or EngineOptions()
        self._store = store
        self._now = Now(0, 0)
        self._clients = 0
        self._requests = 0
        self._clock_jumps = 0
        directory = self._directory = Directory(store)
        waiting = self._waiting = Waiting(store)
        replicas = Replicas(options, store)
        describer = Describer(store, directory, replicas)
        groups = self._groups = Groups(options, directory)
        coordinator = Coordinator(options, directory, groups, waiting)
        offsets = self._offsets = Offsets(options, directory, coordinator, waiting)
        topics = Topics(options, directory, describer, waiting, self._dropped)
        namespaces = Namespaces(options, directory, describer, waiting, self._dropped)
        self._replicating = Replicating(
            options, store, directory, topics, replicas, waiting, self._moved
        )
        self._producing = Producing(options, store, directory, topics, self._replicating, waiting)
        self._idempotence = self._producing.idempotence
        self._dedupe = self._producing.dedupe
        self._reader = Reader(store, offsets)
        self._fetching = Fetching(
            options, directory, topics, offsets, self._reader, waiting, coordinator
        )
        self._matching = Matching(directory, offsets, self._reader, waiting)
        self._following = Following(
            store, directory, offsets, self._reader, waiting, coordinator, groups
        )
        self._eventing = Eventing(
            options,
            store,
            directory,
            topics,
            self._producing,
            self._reader,
            waiting,
            lambda: self._now,
            self._revealed_by_refusal,
        )
        trimming = Trimming(directory, waiting)
        self._retention = Retention(options, store, directory, trimming)
        self._compacting = Compacting(options, store, directory)
        self._handlers: dict[type, Callable[[Any, Client, Now], Outcome]] = {
            calls.Produce: self._producing.produce,
            calls.ProduceMany: self._producing.produce_many,
            calls.Fetch: self._fetching.fetch,
            calls.FetchMatching: self._matching.fetch,
            calls.Follow: self._following.follow,
            calls.CommitOffset: offsets.commit,
            calls.FetchOffset: offsets.fetch,
            **self._eventing.handlers,
            **coordinator.handlers,
            **GroupAdmin(directory, groups, waiting).handlers,
            calls.CreateTopic: topics.create_topic,
            calls.UpdateTopic: topics.update_topic,
            calls.AddPartitions: topics.add_partitions,
            calls.RemovePartitions: topics.remove_partitions,
            calls.DeleteTopic: topics.delete_topic,
            calls.ListTopics: topics.list_topics,
            calls.DescribeTopic: topics.describe_topic,
            calls.DeleteRecords: trimming.delete,
            calls.SetRole: self._replicating.set_role,
            calls.ReportReplica: self._replicating.report,
            **namespaces.handlers,
            calls.Ping: _ping,
            calls.ReadStatistics: self._read_statistics,
            calls.Answer: _answer,
        }

    def handle(self, request: calls.Request, client: Client, now: Now) -> Outcome:
        """Serves one request; a refusal is a `Failure` reply."""
        self._now = now
        self._requests += 1
        try:
            return self._handlers[type(request)](request, client, now)
        except EngineError as error:
            return self._refused(error, client)

    def has_topic(self, namespace: str, topic: str) -> bool:
        """Whether there is such a topic now."""
        found = self._directory.catalog.namespaces.get(namespace)
        return found is not None and topic in found.topics

    def pull(self, outcome: Outcome, now: Now) -> calls.Followed | Failure | None:
        """The next push of a Follow, or None until it is announced again."""
        return self._following.pull(outcome, now)

    def cancel(self, outcome: Outcome, now: Now) -> None:
        """Forgets a long poll or Follow."""
        self._now = now
        if outcome.ready or outcome.state is None:
            return
        if outcome.follows:
            self._following.cancel(outcome)
        elif isinstance(outcome.state, AckWait):
            self._replicating.cancel(outcome)
        elif isinstance(outcome.state, Job):
            self._eventing.cancel(outcome)
        elif isinstance(outcome.state, Gathering):
            self._matching.cancel(outcome)
        elif outcome.reply is None:
            self._fetching.cancel(outcome)
        else:
            outcome.state = None

    def connected(self, client: Client, now: Now) -> None:
        """A connection began."""
        self._now = now
        self._clients += 1

    def disconnected(self, client: Client, now: Now) -> None:
        """A connection ended: nothing of it waits any more, its bound members leave."""
        self._now = now
        self._clients -= 1
        for outcome in self._waiting.kept(client):
            self.cancel(outcome, now)
        self._waiting.forget(client)
        self._groups.disconnected(client)

    def take_flush(self) -> Flush | None:
        """Everything pending, as one group; None while one is under way."""
        return self._store.take_flush(self._now)

    def flushed(self, work: Flush, error: OSError | None, now: Now) -> None:
        """The group is durable: high watermarks move and who waited hears; or the log is fenced."""
        self._now = now
        if self._groups.stirred:
            self._following.settle(now)
        flush = self._store.flushed(work, error)
        moved: list[Partition] = []
        if flush is not None:
            topics = self._directory.topics
            last_sequence = flush.last_sequence
            for (topic_id, number), end in flush.ends.items():
                topic = topics.get(topic_id)
                if topic is None or number >= len(topic.partitions):
                    continue
                partition = topic.partitions[number]
                if partition.created_sequence > last_sequence:
                    continue
                end = min(end, partition.state.next_offset)
                if end > partition.high_watermark:
                    if partition.replication is None:
                        partition.high_watermark = end
                    elif not self._replicating.durable(partition, end, now):
                        continue
                    if partition.polls or partition.followers:
                        moved.append(partition)
        self._released()
        for partition in moved:
            self._moved(partition)

    def take_work(self) -> list[Work]:
        """Reads that block, segment writes and checkpoints that are due."""
        reads = self._reader.take_work() + self._retention.take_work()
        return reads + self._store.take_work(self._now)

    def finished(self, work: Work, error: OSError | None, now: Now) -> None:
        """A work of `take_work` ended."""
        self._now = now
        if not (self._reader.finished(work, error) or self._retention.finished(work)):
            self._store.finished(work, error)
            if self._store.failure is not None:
                self._released()

    def take_ready(self) -> list[Outcome]:
        """The outcomes that became ready since the last call, and follows to pull."""
        if self._groups.stirred:
            self._following.settle(self._now)
        return self._waiting.take_ready()

    def tick(self, now: Now) -> None:
        """What time alone brings: deadlines, expiry, commits of follows, retention."""
        if now.wall_us < self._now.wall_us - CLOCK_JUMP_US:
            self._clock_jumps += 1
        self._now = now
        self._fetching.expire(now)
        self._replicating.tick(now)
        self._following.commit_due(now)
        self._groups.tick(now)
        self._retention.tick(now)
        self._compacting.tick(now)
        self._idempotence.tick(now)
        self._dedupe.tick(now)

    def overloaded(self) -> bool:
        """Whether producers should not be read for now."""
        buffers = self._producing.buffers
        if buffers is not None and self._store.failure is None and buffers.any_full():
            return True
        return self._store.overloaded()

    def begin_close(self, now: Now) -> None:
        """Answers long polls, ends follows, refuses what would write, asks for the last flush."""
        self._now = now
        self._following.end_all()
        self._directory.closing = True
        self._fetching.end_all()
        self._replicating.end_all()
        self._store.begin_close(now)

    def close(self) -> None:
        """Releases what the store holds."""
        self._store.close()

    def statistics(self) -> Mapping[str, int | float | str]:
        """Counters since the start and gauges as they stand, the store's among them."""
        store = self._store
        directory = self._directory
        buffers = self._producing.buffers
        return {
            **store.statistics(),
            "requests": self._requests,
            "produced_records": self._producing.records,
            "produced_bytes": self._producing.bytes,
            "idempotent_producers": len(self._idempotence),
            "duplicates": self._idempotence.duplicates,
            "sequence_gaps": self._idempotence.gaps,
            "stale_producer_epochs": self._idempotence.stale_epochs,
            "dedupe_entries": len(self._dedupe),
            "dedupe_hits": self._dedupe.hits,
            "dedupe_evicted": self._dedupe.evicted,
            "cleanups": self._dedupe.cleanups + self._retention.cleanups,
            "buffers_filled": 0 if buffers is None else buffers.filled,
            "fetched_records": self._fetching.records + self._matching.records,
            "followed_records": self._following.records,
            **self._eventing.statistics(),
            "commits": self._offsets.commits,
            "unfenced_commits": self._offsets.unfenced_commits,
            "cold_reads": self._reader.cold_reads,
            "retention_trims": self._retention.trims,
            "clock_jumps": self._clock_jumps,
            "clients": self._clients,
            "namespaces": len(directory.catalog.namespaces),
            "topics": len(directory.topics),
            "partitions": directory.partition_count,
            "groups": self._groups.count,
            "members": self._groups.member_count,
            "members_expired": self._groups.expired,
            "group_generations": self._groups.dealt,
            "waiting": len(self._waiting),
            "long_polls": self._fetching.waiting_count,
            "reading": len(self._reader),
            "followers": len(self._following),
            "replica_waits": self._replicating.waiting_count,
            "replication_timeouts": self._replicating.timeouts,
            "follower_partitions": self._replicating.follower_count,
            "under_replicated_partitions": self._replicating.under_replicated_count,
            "revealed_sequence": store.revealed_sequence,
            "failure": "" if store.failure is None else str(store.failure),
        }

    def lags(self, count_max: int) -> Lags:
        """How far groups are behind, up to so many of their partitions."""
        return lags_of(self._directory, count_max)

    def _read_statistics(self, request: calls.ReadStatistics, client: Client, now: Now) -> Outcome:
        return Outcome(calls.StatisticsRead(self.statistics()))

    def _released(self) -> None:
        """What the store revealed, or its failure, frees who waited for it."""
        self._waiting.release()
        self._eventing.flushed()
        self._following.announce_held()
        if self._store.failure is not None:
            self._replicating.fail_all(self._store.failure)

    def _moved(self, partition: Partition) -> None:
        """The partition's high watermark moved: who waits there for records may read."""
        if partition.polls:
            self._fetching.wake(partition)
        if partition.followers:
            self._following.wake(partition)

    def _refused(self, error: EngineError, client: Client) -> Outcome:
        """A refusal may reveal what was changed last (a deleted topic, a committed offset, a log
        start, a generation, what a producer or the writer of a stream wrote)."""
        return self._waiting.answer(client, error.failure(), self._revealed_by_refusal())

    def _revealed_by_refusal(self) -> int:
        directory = self._directory
        return max(
            directory.sequence,
            directory.offsets_sequence,
            directory.trims_sequence,
            self._groups.sequence,
            self._idempotence.sequence,
            self._eventing.sequence,
        )

    def _dropped(self, partitions: list[Partition]) -> None:
        if partitions:
            self._idempotence.dropped(partitions)
            for partition in partitions:
                self._fetching.dropped(partition)
                self._replicating.dropped(partition)
                self._eventing.dropped(partition)
            self._following.dropped()


def _ping(request: calls.Ping, client: Client, now: Now) -> Outcome:
    return Outcome(calls.Ponged())


def _answer(request: calls.Answer, client: Client, now: Now) -> Outcome:
    return Outcome(calls.Answered(request.payload))
