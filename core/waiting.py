"""Outcomes on their way out: what waits for durability, what is ready, and whose it is.

A reply reveals state, and state may be revealed once the store says so (`Store.revealed_sequence`).
One list in the order of requests is enough: at each flush it is walked once, and an entry is walked
at most twice, because what is pending goes out with the next group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core.due import Due
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.outcome import Outcome

if TYPE_CHECKING:
    from dragoman.core.calls import Produced, ProducedMany, Reply
    from dragoman.core.outcome import Client
    from dragoman.core.partition import Partition
    from dragoman.core.store import Store


class Waiting:
    """Holds outcomes until their replies may leave.

    An outcome's `state` is `(client, where)` while it waits here: a produce with the partition, or
    the list of partitions, whose high watermark its reply takes along as it stands when it leaves;
    everything else with None.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: list[Outcome] = []
        self._ready: list[Outcome] = []
        self._gone: dict[Client, int] = {}
        self._newest = 0
        self._kept: dict[Client, dict[Outcome, None]] = {}

    def answer(self, client: Client, reply: Reply | Failure, sequence: int) -> Outcome:
        """An outcome with this reply, which leaves once `sequence` is revealed."""
        store = self._store
        if sequence <= store.revealed_sequence:
            return Outcome(reply)
        if store.failure is not None:
            return Outcome(fenced(store.failure))
        outcome = Outcome(reply, sequence, ready=False)
        outcome.state = (client, None)
        self._held.append(outcome)
        self._newest = max(self._newest, sequence)
        return outcome

    def hold(self, client: Client, reply: Produced, sequence: int, partition: Partition) -> Outcome:
        """The outcome of a produce, which leaves once it is durable."""
        outcome = Outcome(reply, sequence, ready=False)
        outcome.state = (client, partition)
        self._held.append(outcome)
        self._newest = sequence
        return outcome

    def hold_unless_revealed(
        self, client: Client, reply: Produced, sequence: int, partition: Partition
    ) -> Outcome:
        """As `hold`, for records that may have been appended long ago."""
        if sequence > self._store.revealed_sequence:
            return self.hold(client, reply, max(sequence, self._newest), partition)
        reply.high_watermark = partition.high_watermark
        return Outcome(reply)

    def hold_many(
        self, client: Client, reply: ProducedMany, sequence: int, partitions: list[Partition]
    ) -> Outcome:
        """The outcome of a produce to several partitions; `partitions` goes with `reply.parts`."""
        outcome = Outcome(reply, sequence, ready=False)
        outcome.state = (client, partitions)
        self._held.append(outcome)
        self._newest = sequence
        return outcome

    def settle(
        self, outcome: Outcome, client: Client, reply: Reply | Failure, sequence: int
    ) -> None:
        """A promised outcome has its reply now, which leaves once `sequence` is revealed."""
        outcome.reply = reply
        store = self._store
        if sequence <= store.revealed_sequence:
            self.make_ready(outcome)
        elif store.failure is not None:
            outcome.reply = fenced(store.failure)
            self.make_ready(outcome)
        else:
            outcome.sequence = sequence
            outcome.state = (client, None)
            self._held.append(outcome)
            self._newest = max(self._newest, sequence)

    def make_ready(self, outcome: Outcome) -> None:
        """The reply may leave."""
        outcome.ready = True
        outcome.state = None
        self._ready.append(outcome)

    def announce(self, follow: Outcome) -> None:
        """A Follow has something to pull."""
        self._ready.append(follow)

    def release(self) -> None:
        """Lets go of everything that is revealed, in the order of requests; all of it, as failures,
        where the store is fenced."""
        store = self._store
        revealed = store.revealed_sequence
        failure = store.failure
        ready = self._ready
        gone = self._gone
        held: list[Outcome] = []
        for outcome in self._held:
            state = outcome.state
            if state is None or (gone and state[0] in gone):
                continue
            if outcome.sequence > revealed:
                if failure is None:
                    held.append(outcome)
                    continue
                outcome.reply = fenced(failure)
            elif (where := state[1]) is not None:
                sequence = _finish(outcome, where)
                if sequence > revealed and failure is None:
                    outcome.sequence = sequence
                    outcome.state = (state[0], None)
                    held.append(outcome)
                    continue
            outcome.ready = True
            outcome.state = None
            ready.append(outcome)
        self._held = held
        if gone:
            if not held:
                gone.clear()
            for client in [client for client, until in gone.items() if until <= revealed]:
                del gone[client]

    def forget(self, client: Client) -> None:
        """Nobody is there any more to read this client's replies."""
        if self._held:
            self._gone[client] = self._newest

    def keep(self, client: Client, outcome: Outcome) -> None:
        """The client has a long poll, a cold read or a Follow."""
        self._kept.setdefault(client, {})[outcome] = None

    def let_go(self, client: Client, outcome: Outcome) -> None:
        """It is over."""
        kept = self._kept.get(client)
        if kept is not None:
            kept.pop(outcome, None)
            if not kept:
                del self._kept[client]

    def kept(self, client: Client) -> list[Outcome]:
        """The client's long polls, cold reads and Follows."""
        return list(self._kept.get(client, ()))

    def take_ready(self) -> list[Outcome]:
        """What became ready since the last call."""
        ready = self._ready
        self._ready = []
        return ready

    def __len__(self) -> int:
        return len(self._held)


def _finish(outcome: Outcome, where: Partition | list[Partition]) -> int:
    """Writes into a produce's reply what became of it; returns what else that reveals."""
    reply: Any = outcome.reply
    if not isinstance(where, list):
        if not where.dropped:
            reply.high_watermark = where.high_watermark
            return 0
        outcome.reply = dropped_failure(where)
        return where.topic.sequence
    sequence = 0
    parts = reply.parts
    for index, partition in enumerate(where):
        if isinstance(parts[index], Failure):
            continue
        if partition.dropped:
            parts[index] = dropped_failure(partition)
            sequence = max(sequence, partition.topic.sequence)
        else:
            parts[index].high_watermark = partition.high_watermark
    return sequence


def fenced(error: OSError) -> Failure:
    """The refusal of a store that failed: nothing more is taken until restart."""
    return Failure(
        ErrorCode.STORAGE_FAILED, f"the log failed and takes nothing until restart: {error}"
    )


def dropped_failure(partition: Partition) -> Failure:
    """What becomes of whoever waits at a partition that was dropped."""
    topic = partition.topic
    if not topic.dropped:
        return Failure(
            ErrorCode.UNKNOWN_PARTITION,
            "the partition was removed",
            {"partition": partition.number},
        )
    return Failure(ErrorCode.UNKNOWN_TOPIC, "the topic was deleted", {"topic": topic.state.name})


Deadlines = Due[Outcome]
"""Outcomes by the time at which something is due for them."""
