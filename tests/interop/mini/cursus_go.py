"""The Go client of Cursus as it talks to a broker, replayed from a description of it.

Its producer keeps one connection a partition to the leader that METADATA names, with one batch in
flight on each; its consumer has a connection for heartbeats, one for commits and one a partition.
Between May and July 2026 replies changed from phrases to `OK name=value`; `older` is the client
before that. Nothing here runs by itself: a test takes one step after another.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from interop.mini.cursus_wire import (
    Message,
    Wire,
    address,
    batch,
    envelope,
    fields,
    messages_of,
    one_shot,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

LOST = ("REBALANCE_REQUIRED", "GEN_MISMATCH", "NOT_OWNER", "member_not_found")
"""Any of these in a reply makes the consumer join again."""


class Fenced(Exception):
    """A newer epoch of this producer is known; it stops."""


def acknowledged(reply: bytes, producer: str, epoch: int, *, idempotent: bool) -> dict[str, Any]:
    """What an ACK says, as its strict reader takes it.

    Raises:
        ValueError: Not one it accepts, so the batch is sent again.
        Fenced: It must not be.
    """
    text = reply.decode()
    if "stale_producer_epoch" in text:
        raise Fenced(text)
    if text.startswith("ERROR:"):
        raise ValueError(text)
    ack: dict[str, Any] = json.loads(text)
    for name in ("last_offset", "producer_epoch", "seq_start", "seq_end"):
        if type(ack.get(name)) is not int:
            raise ValueError(f"{name} is no integer: {text}")
    if idempotent and (not ack["producer_id"] or ack["producer_epoch"] != epoch):
        raise ValueError(f"an ACK for {ack['producer_id']} epoch {ack['producer_epoch']}")
    if ack["status"] != "OK":
        raise ValueError(text)
    return ack


class GoProducer:
    """Deals values to the partitions in turn; a context.

    Attributes:
        late: ACKs that came after the client had given up waiting for them.
        acks_seen: What the accepted ACKs said.
    """

    def __init__(
        self,
        broker: tuple[str, int],
        topic: str,
        partitions: int,
        *,
        acks: str = "1",
        idempotent: bool = False,
        older: bool = False,
    ) -> None:
        self.topic, self.acks, self.idempotent = topic, acks, idempotent
        self.older = older
        self.producer = str(uuid.uuid4())
        self.epoch = time.time_ns()
        self.sequences = [0] * partitions
        self.late = 0
        self.acks_seen: list[dict[str, Any]] = []
        made = f"CREATE topic={topic} partitions={partitions}"
        told = one_shot(broker, envelope(made if older else f"{made} idempotent=false", "admin"))
        assert "ERROR:" not in told, told
        assert older or told.startswith("OK"), told
        leaders = fields(one_shot(broker, envelope(f"METADATA topic={topic}")))["leaders"]
        self.wires = [Wire(address(leader)) for leader in leaders.split(",")]
        assert len(self.wires) == partitions

    def name(self, partition: int) -> str:
        """The producer id, which newer clients have for each partition when they are idempotent."""
        return (
            f"{self.producer}-p{partition}" if self.idempotent and not self.older else self.producer
        )

    def prepare(self, partition: int, values: Iterable[bytes]) -> bytes:
        """The next batch of a partition."""
        # Without idempotence one count serves all partitions.
        counter = partition if self.idempotent else 0
        messages = []
        for value in values:
            self.sequences[counter] += 1
            producer = self.name(partition).encode()
            messages.append(Message(0, self.sequences[counter], value, producer, b"", self.epoch))
        return batch(self.topic, partition, self.acks, messages, idempotent=self.idempotent)

    def send(self, partition: int, values: list[bytes], *, ack_timeout_s: float = 5) -> None:
        """Sends a batch until it is acknowledged.

        A reply that does not come in time stays on its way: the batch is sent again on the same
        socket, and the late reply is taken for that one's.
        """
        body = self.prepare(partition, values)
        wire = self.wires[partition]
        for timeout_s in (ack_timeout_s, 5, 5, 5):
            wire.send(body)
            if self.acks == "0":
                return
            reply = wire.receive(timeout_s)
            if reply is not None:
                ack = acknowledged(
                    reply, self.name(partition), self.epoch, idempotent=self.idempotent
                )
                self.acks_seen.append(ack)
                return
            self.late += 1
        raise AssertionError("no ACK after four tries")

    def close(self) -> None:
        """Leaves, whatever is unread."""
        for wire in self.wires:
            wire.close()

    def __enter__(self) -> GoProducer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class GoConsumer:
    """A member of a group, polling or streaming; a context.

    Attributes:
        joins: How often it joined.
        heard: Messages by partition, in the order in which they came.
    """

    def __init__(
        self,
        broker: tuple[str, int],
        topic: str,
        group: str,
        *,
        streaming: bool = False,
        older: bool = False,
    ) -> None:
        self.broker, self.topic, self.group = broker, topic, group
        self.streaming, self.older = streaming, older
        self.member = f"consumer-{uuid.uuid4().hex[:8]}"
        self.joins = 0
        self.heard: list[tuple[int, Message]] = []
        self.wires: list[Wire] = []
        self.join()

    @property
    def _us(self) -> str:
        return f"topic={self.topic} group={self.group}"

    @property
    def _member(self) -> str:
        return f"generation={self.generation} member={self.member}"

    def join(self) -> None:
        """From the coordinator to open data connections."""
        self.joins += 1
        found = fields(one_shot(self.broker, envelope(f"FIND_COORDINATOR group={self.group}")))
        self.coordinator = (found["host"], int(found["port"]))
        asked = f"JOIN_GROUP {self._us} member={self.member}"
        reply = one_shot(self.coordinator, envelope(asked), 10)
        assert reply.startswith("OK"), reply
        joined = fields(reply)
        self.generation, self.member = int(joined["generation"]), joined["member"]
        partitions = self._assigned(reply)
        if not partitions:
            synced = f"SYNC_GROUP {self._us} member={self.member} generation={self.generation}"
            partitions = self._assigned(one_shot(self.coordinator, envelope(synced)))
        self.positions = {partition: self._committed(partition) for partition in partitions}
        self.dirty: dict[int, int] = {}
        self._connect()

    def _assigned(self, reply: str) -> list[int]:
        return [
            int(word) for word in reply[reply.index("[") + 1 : reply.index("]")].split(" ") if word
        ]

    def _committed(self, partition: int) -> int:
        asked = f"FETCH_OFFSET topic={self.topic} partition={partition} group={self.group}"
        reply = one_shot(self.coordinator, envelope(asked))
        if self.older:
            return int(reply)
        assert reply.startswith("OK "), reply
        return int(fields(reply)["offset"])

    def _connect(self) -> None:
        leaders = fields(one_shot(self.broker, envelope(f"METADATA topic={self.topic}")))["leaders"]
        places = [address(leader) for leader in leaders.split(",")]
        self.heart, self.committing = Wire(self.coordinator), Wire(self.coordinator)
        self.data = {partition: Wire(places[partition], 30) for partition in self.positions}
        self.wires = [self.heart, self.committing, *self.data.values()]
        if self.streaming:
            for partition, wire in self.data.items():
                at = f"group={self.group} offset={self.positions[partition]} {self._member}"
                wire.send(envelope(f"STREAM topic={self.topic} partition={partition} {at}"))

    def beat(self) -> bool:
        """One heartbeat; joins again where it says so, which is then False."""
        asked = f"HEARTBEAT {self._us} member={self.member} generation={self.generation}"
        reply = self.heart.ask(envelope(asked))
        lost = any(word in reply for word in LOST)
        assert lost or reply.startswith("OK"), reply
        if lost:
            self._hang_up()
            self.join()
        return not lost

    def poll(self, wait_s: float = 0.05) -> int:
        """Reads once from every partition; returns how many messages came."""
        count = 0
        for partition, wire in self.data.items():
            if self.streaming:
                body = wire.receive(wait_s)
            else:
                at = f"offset={self.positions[partition]} group={self.group} {self._member}"
                wire.send(envelope(f"CONSUME topic={self.topic} partition={partition} {at}"))
                body = wire.receive()
                assert body is not None, "no batch in 30 s"
            if not body:
                continue
            assert not body.startswith(b"ERROR"), body
            messages = messages_of(body, self.topic, partition)
            self.heard += [(partition, message) for message in messages]
            count += len(messages)
            if messages:
                self.dirty[partition] = self.positions[partition] = messages[-1].offset + 1
        return count

    def commit(self) -> None:
        """BATCH_COMMIT of what was handled since the last one."""
        if not self.dirty:
            return
        mark = "" if self.older else "P"
        pairs = ",".join(f"{mark}{p}:{offset}" for p, offset in self.dirty.items())
        reply = self.committing.ask(envelope(f"BATCH_COMMIT {self._us} {self._member} {pairs}"))
        assert reply == f"OK batched={len(self.dirty)}", reply
        self.dirty = {}

    def _hang_up(self) -> None:
        for wire in self.wires:
            wire.close()

    def close(self) -> None:
        """Leaves the group without waiting for the answer."""
        with Wire(self.coordinator) as wire:
            wire.send(envelope(f"LEAVE_GROUP {self._us} member={self.member}"))
        self._hang_up()

    def die(self) -> None:
        """Goes without a word."""
        self._hang_up()

    def __enter__(self) -> GoConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
