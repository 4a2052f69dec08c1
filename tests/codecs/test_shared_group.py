"""One group of members of several dialects: who is pushed to and who polls share its partitions."""

from __future__ import annotations

import re

import pytest

from dragoman.codecs.cursus.ask_group import PUSH_BYTES
from dragoman.gateway.session import REPLY_BYTES_WAITING_MAX
from support.conversation import Conversation
from support.cursus import framed, unframed


class Poller:
    """A V1 member, which reads from where its group is and commits what it read."""

    def __init__(self, connection: Conversation) -> None:
        self._connection = connection
        self.generation, self.owned = 0, ""
        self.ask("JOIN|g t zed")

    def ask(self, text: str) -> str:
        answer = self._connection.send(f"V1|1|{text}\n".encode()).decode()
        joined = re.search(r"generation=(\d+) assigned=\[([\d ]*)]", answer)
        if joined is not None:
            self.generation, self.owned = int(joined[1]), joined[2]
        return answer

    def poll(self) -> list[bytes]:
        """Everything new of its partitions, committed."""
        got: list[bytes] = []
        for partition in self.owned.split():
            start = int(self.ask(f"OFFSET|g t {partition}").rsplit("=")[-1])
            answer = self.ask(f"CONSUME|t {partition} {start}")
            found = re.findall(r"\d+:(\w+)", answer)
            got += [value.encode() for value in found]
            if found:
                end = start + len(found)
                self.ask(f"COMMIT|g t zed {self.generation} {partition} {end}")
        return got


class Room:
    """A topic t with 3 partitions, a publisher, and what was published."""

    def __init__(self) -> None:
        self.publisher = Conversation("cursus")
        self.publisher.send(framed("CREATE t 3"))
        self.published: list[bytes] = []

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.published.append(b"m%d" % len(self.published))
            assert self.publisher.send(framed(b"PUBLISH t " + self.published[-1])) == framed("OK")

    def subscriber(self) -> tuple[Conversation, list[bytes]]:
        """A connection that subscribed, and what it was pushed at once."""
        connection = self.publisher.another("cursus")
        answer, *pushed = unframed(connection.send(framed("SUBSCRIBE t g")))
        assert answer == b"OK topic=t group=g subscribed=true"
        return connection, pushed


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_poller_and_a_subscriber_share_a_group_and_every_message_comes_once(room: Room) -> None:
    subscriber, _ = room.subscriber()
    poller = Poller(room.publisher.another("v1"))
    room.publish(9)
    pushed, polled = unframed(subscriber.heard()), poller.poll()
    assert (len(pushed), len(polled)) == (6, 3)
    assert sorted(pushed + polled) == room.published
    assert poller.ask(f"LEAVE|g t zed {poller.generation}") == "V1|1|OK|left=true\n"
    room.publish(9)
    pushed += unframed(subscriber.heard())
    assert sorted(pushed + polled) == sorted(room.published)


def test_what_a_poller_had_not_committed_is_pushed_after_it_fell_silent(room: Room) -> None:
    subscriber, _ = room.subscriber()
    room.publish(3)
    first = unframed(subscriber.heard())
    poller = Poller(room.publisher.another("v1"))
    poller.ask("COMMIT|g t zed 3 0 1")
    room.publish(6)
    shared = unframed(subscriber.heard())
    assert len(shared) == 4
    subscriber.advance(0.1)
    late = unframed(subscriber.advance(11))
    assert sorted(first + shared + late) == sorted(room.published)


def test_subscribers_that_come_and_go_beside_a_poller_leave_no_gap(room: Room) -> None:
    stays, _ = room.subscriber()
    poller = Poller(room.publisher.another("v1"))
    got: list[bytes] = []
    for _ in range(4):
        comes, pushed = room.subscriber()
        got += pushed
        poller.ask("JOIN|g t zed")
        room.publish(6)
        got += unframed(stays.heard()) + unframed(comes.heard())
        comes.hang_up()
        poller.ask("JOIN|g t zed")
        room.publish(6)
        got += unframed(stays.heard())
    assert poller.generation > 8
    assert len(got) == len(set(got))
    poller.ask(f"LEAVE|g t zed {poller.generation}")
    got += unframed(stays.heard())
    assert sorted(set(got)) == sorted(room.published)


def test_a_slow_subscriber_costs_its_place_and_no_memory(room: Room) -> None:
    slow, _ = room.subscriber()
    size = 64 * 1024
    for _ in range(100):
        room.publisher.send(framed(b"PUBLISH t " + b"x" * size))
        assert slow.session.outbox.size < REPLY_BYTES_WAITING_MAX + PUSH_BYTES + size
    assert slow.session.outbox.size >= REPLY_BYTES_WAITING_MAX
    quick, pushed = room.subscriber()
    got = pushed + unframed(slow.heard()) + unframed(quick.heard())
    assert [len(value) for value in got] == [size] * 100
