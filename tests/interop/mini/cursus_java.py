"""The Java client of Cursus as it talks to a broker, replayed from a description of it.

Its producer looks its ACKs through for names and quotes instead of parsing them, and has up to five
batches in flight that are matched in order; its consumer asks everything but STREAM on plain
one-shot connections. Version 0.1.0 stops for good once a heartbeat tells it of a rebalance: only
its reads can. Nothing here runs by itself: a test takes one step after another.
"""

from __future__ import annotations

import re
import uuid
from collections import deque
from typing import TYPE_CHECKING

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
    from collections.abc import Sequence

IN_FLIGHT_MAX = 5
TRIES = 4
JOINED = re.compile(r"OK generation=(\d+) member=(\S+) assignments=\[?([\d\s]*)\]?")
LOST = (b"REBALANCE_REQUIRED", b"GEN_MISMATCH")


def scanned_text(reply: str, name: str) -> str | None:
    """A text as its ACK reader finds it: up to the next quote."""
    found = re.search(rf'"{name}":"', reply)
    return reply[found.end() : reply.index('"', found.end())] if found else None


def scanned_number(reply: str, name: str) -> int:
    """A number as its ACK reader finds it, within a Java long."""
    found = re.search(rf'"{name}":(-?\d+)', reply)
    assert found, reply
    number = int(found[1])
    assert -(1 << 63) <= number < 1 << 63, "Long.parseLong fails"
    return number


def key_partition(key: bytes, partitions: int) -> int:
    """Its own hash: FNV-1a of 32 bits without the sign."""
    found = 0x811C9DC5
    for byte in key:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF) % partitions


class JavaProducer:
    """Sends batches, several in flight; a context.

    Attributes:
        dropped: Batches given up after four tries.
        last_offsets: Of the accepted ACKs by partition, in order.
    """

    def __init__(self, broker: tuple[str, int], topic: str, partitions: int, *, acks: str = "1"):
        self.topic, self.acks = topic, acks
        self.dropped = 0
        self.in_flight: deque[tuple[int, bytes]] = deque()
        with Wire(broker) as wire:
            wire.ask(envelope(f"CREATE topic={topic} partitions={partitions}", "admin"))
            listed = wire.ask(f"LIST topic={topic}".encode())
        found = re.search(r"partitions=(\d+)", listed)
        count = int(found[1]) if found else partitions
        told = one_shot(broker, envelope(f"METADATA topic={topic}"))
        # It sizes its arrays by one count and indexes them by the other.
        assert count == partitions
        self.wires = [Wire(address(leader)) for leader in fields(told)["leaders"].split(",")]
        self.sequences = [0] * count
        self.last_offsets: list[list[int]] = [[] for _ in range(count)]

    def send(self, partition: int, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Sends keys and values to one partition, after the oldest batch where five are out."""
        messages = []
        for key, value in records:
            self.sequences[partition] += 1
            messages.append(Message(0, self.sequences[partition], value, b"", key, 0))
        body = batch(self.topic, partition, self.acks, messages)
        if len(self.in_flight) == IN_FLIGHT_MAX:
            self._settle()
        self.wires[partition].send(body)
        self.in_flight.append((partition, body))

    def flush(self) -> None:
        """Waits for every batch in flight."""
        while self.in_flight:
            self._settle()

    def _settle(self) -> None:
        """Takes the next reply on its connection for the oldest batch's, whatever it says."""
        partition, body = self.in_flight.popleft()
        wire = self.wires[partition]
        for attempt in range(TRIES):
            if attempt:
                wire.send(body)
            reply = wire.receive()
            text = "" if reply is None else reply.decode()
            if "NOT_LEADER" not in text and scanned_text(text, "status") == "OK":
                self.last_offsets[partition].append(scanned_number(text, "last_offset"))
                return
        self.dropped += 1

    def __enter__(self) -> JavaProducer:
        return self

    def __exit__(self, *_: object) -> None:
        for wire in self.wires:
            wire.close()


class JavaConsumer:
    """A member of a group, streaming or polling; a context.

    Args:
        version: "0.1.0", or "0.1.1", which survives what its heartbeats tell.

    Attributes:
        is_dead: Version 0.1.0 was told of a rebalance by a heartbeat, and reads no more.
        joins: How often it joined.
        heard: Messages by partition, in the order in which they came.
    """

    def __init__(
        self,
        broker: tuple[str, int],
        topic: str,
        group: str,
        *,
        version: str = "0.1.0",
        streaming: bool = False,
    ) -> None:
        self.broker, self.topic, self.group = broker, topic, group
        self.version, self.streaming = version, streaming
        self.member = str(uuid.uuid4())
        self.is_dead = False
        self.joins = 0
        self.heard: list[tuple[int, Message]] = []
        self.data: dict[int, Wire] = {}
        self.front = Wire(broker)
        self.join()

    @property
    def _us(self) -> str:
        return f"topic={self.topic} group={self.group}"

    @property
    def _member(self) -> str:
        return f"generation={self.generation} member={self.member}"

    def join(self) -> None:
        """From the coordinator, asked for raw on the lasting connection, to positions."""
        self.joins += 1
        found = fields(self.front.ask(f"FIND_COORDINATOR group={self.group}".encode()))
        self.coordinator = (found["host"], int(found["port"]))
        reply = self._ask(f"JOIN_GROUP {self._us} member={self.member}")
        joined = JOINED.fullmatch(reply)
        assert joined, f"not the shape that it wants: {reply!r}"
        self.generation, self.member = int(joined[1]), joined[2]
        partitions = [int(word) for word in joined[3].split()]
        if not partitions:
            synced = f"SYNC_GROUP {self._us} member={self.member} generation={self.generation}"
            inside = re.search(r"assignments=\[?([\d\s]*)\]?", self._ask(synced))
            partitions = [int(word) for word in inside[1].split()] if inside else []
        self.positions = {partition: self._committed(partition) for partition in partitions}
        self.dirty: dict[int, int] = {}
        leaders = fields(self._ask(f"METADATA topic={self.topic}"))["leaders"].split(",")
        self.places = {partition: address(leaders[partition]) for partition in partitions}
        if self.streaming:
            self.data = {partition: Wire(place) for partition, place in self.places.items()}
            for partition in self.data:
                self.stream(partition)

    def _ask(self, command: str, timeout_s: float = 5) -> str:
        return one_shot(self.coordinator, envelope(command), timeout_s)

    def _committed(self, partition: int) -> int:
        asked = f"FETCH_OFFSET topic={self.topic} partition={partition} group={self.group}"
        reply = self._ask(asked, 30)
        assert reply.startswith("OK"), reply
        return int(fields(reply)["offset"])

    def stream(self, partition: int) -> None:
        """STREAM, raw; sent again on the same connection after a frame that it cannot read."""
        at = f"group={self.group} offset={self.positions[partition]} {self._member}"
        self.data[partition].send(f"STREAM topic={self.topic} partition={partition} {at}".encode())

    def beat(self) -> None:
        """One heartbeat on a connection of its own."""
        asked = f"HEARTBEAT {self._us} member={self.member} generation={self.generation}"
        reply = self._ask(asked).encode()
        if not any(word in reply for word in LOST):
            return
        self._stop_reading()
        if self.version == "0.1.0":
            # Its workers are gone, and only one of them could raise the flag that it waits for.
            self.is_dead = True
        else:
            self.join()

    def poll(self, wait_s: float = 0.05) -> int:
        """Reads once from every partition; returns how many messages came."""
        if self.is_dead:
            return 0
        count = 0
        for partition in list(self.positions):
            body = self._read(partition, wait_s)
            if body is None:
                continue
            assert b"NOT_LEADER LEADER_IS" not in body
            assert not body.startswith((b"ERROR:", b"ERROR ")), f"it backs off for ever: {body!r}"
            if body and any(word in body for word in LOST):
                self._stop_reading()
                self.join()
                return count
            count += self._take(partition, body)
        return count

    def _read(self, partition: int, wait_s: float) -> bytes | None:
        if self.streaming:
            return self.data[partition].receive(wait_s)
        at = f"offset={self.positions[partition]} group={self.group} {self._member}"
        with Wire(self.places[partition], 30) as wire:
            wire.send(envelope(f"CONSUME topic={self.topic} partition={partition} {at}"))
            return wire.receive()

    def _take(self, partition: int, body: bytes) -> int:
        if not body:
            # A frame of no bytes is no batch: its reader throws, waits and streams again.
            self.stream(partition)
            return 0
        messages = messages_of(body, self.topic, partition)
        self.heard += [(partition, message) for message in messages]
        if messages:
            self.dirty[partition] = self.positions[partition] = messages[-1].offset + 1
        return len(messages)

    def commit(self) -> None:
        """BATCH_COMMIT of what was handled since the last one."""
        if not self.dirty:
            return
        mark = "" if self.version == "0.1.0" else "P"
        pairs = ",".join(f"{mark}{p}:{offset}" for p, offset in self.dirty.items())
        reply = self._ask(f"BATCH_COMMIT {self._us} {self._member} {pairs}")
        assert reply == f"OK batched={len(self.dirty)}", reply
        self.dirty = {}

    def _stop_reading(self) -> None:
        for wire in self.data.values():
            wire.close()
        self.data, self.positions = {}, {}

    def close(self) -> None:
        """Leaves the group."""
        self._ask(f"LEAVE_GROUP {self._us} member={self.member}")
        self.die()

    def die(self) -> None:
        """Goes without a word."""
        self._stop_reading()
        self.front.close()

    def __enter__(self) -> JavaConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
