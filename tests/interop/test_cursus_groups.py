"""Groups of the published Python clients of Cursus against the real server.

Version 0.1.1 commits, and joins again when a heartbeat says so. Version 0.1.0 never commits, hears
no heartbeat's reply and reads for ever what it was first given, which the tests hold it to: nobody
misses anything, and one member is told of nothing twice.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from interop.published_client import (
    CONSUME,
    FACES,
    KEYS,
    MODES,
    RECORDS,
    asked_of_consumer,
    committed,
    produce,
    records_in,
)
from interop.topic_reading import PARTITIONS, read_all, write
from support.environment import Driver, drive, python_with
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

SHARE = RECORDS // 2
COMMITTED_S = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cursus-groups") / "data") as running:
        yield running
        assert running.stop() == 0


class Member:
    """One running consumer, as the driver tells of it.

    Attributes:
        heard: Values in the order in which they came.
        partitions: What the group last gave it.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.heard: list[str] = []
        self.partitions: list[int] = []

    def until(self, so: Callable[[], bool]) -> None:
        """Takes steps until it is so."""
        while not so():
            step = self.driver.step()
            assert step["step"] != "closed", f"heard {len(self.heard)}, has {self.partitions}"
            if step["step"] == "record":
                self.heard.append(step["value"])
            elif step["step"] == "member":
                self.partitions = step["partitions"]

    def until_heard(self, count: int) -> None:
        """Takes steps until so many records came in all."""
        self.until(lambda: len(self.heard) >= count)


class Scene:
    """A topic and its group of at most two members, both of one version, face and mode."""

    def __init__(
        self, server: Server, stack: ExitStack, client: Path, face: str, mode: str
    ) -> None:
        self.version = client.parents[1].name.rpartition("-")[2]
        self.topic = f"members-{self.version}-{face}-{mode}"
        self.server = server
        asked = {"face": face, "mode": mode, "patience_s": 120, "heartbeat_ms": 400}
        self.asked = asked_of_consumer(server, self.topic, 1 << 30, commit_s=0.1, **asked)
        self.join = lambda: Member(stack.enter_context(Driver(client, CONSUME, **self.asked)))
        self.first: Member
        self.second: Member
        with connect("rustlog", port=server.ports["rustlog"]) as maker:
            maker.create_topic(self.topic, PARTITIONS)

    @property
    def moves(self) -> bool:
        """Whether its members hear of a rebalance."""
        return self.version != "0.1.0"

    def add(self, dialect: str, prefix: str) -> None:
        """Another dialect writes a share of records."""
        write(
            self.server,
            dialect,
            self.topic,
            [b"%s-%d" % (prefix.encode(), n) for n in range(SHARE)],
        )

    def of(self, partitions: list[int]) -> set[str]:
        """The values that those partitions hold."""
        rows = read_all(self.server, "rustlog", self.topic)
        return {value for partition, _, value in rows if partition in partitions}

    def wait_until_committed(self) -> None:
        """Until the group is to read next what is not written yet."""
        if not self.moves:
            return
        rows = read_all(self.server, "rustlog", self.topic)
        ends = {partition: offset + 1 for partition, offset, _ in rows}
        deadline = time.monotonic() + COMMITTED_S
        while committed(self.server, "rustlog", self.topic, self.asked["group"]) != ends:
            assert time.monotonic() < deadline, f"{self.topic}: not committed"

    def second_joins(self) -> None:
        """Another member comes, and both know what they have."""
        self.second = self.join()
        self.second.until(lambda: bool(self.second.partitions))
        if self.moves:
            self.first.until(lambda: len(self.first.partitions) < PARTITIONS)
            both = self.first.partitions + self.second.partitions
            assert sorted(both) == [*range(PARTITIONS)], self.topic

    def both_hear(self) -> None:
        """Both have what is theirs; who never moves has everything since it joined."""
        if self.moves:
            mine = [v for v in self.of(self.first.partitions) if v.startswith("together-")]
            self.first.until_heard(SHARE + len(mine))
            self.second.until_heard(SHARE - len(mine))
        else:
            self.first.until_heard(2 * SHARE)
            self.second.until_heard(len(self.of(self.second.partitions)))

    def first_hears_the_rest(self) -> None:
        """The one that is left has everything, and nobody had anything twice."""
        shared = self.second.heard if self.moves else []
        self.first.until_heard(3 * SHARE - len(shared))
        heard = self.first.heard + shared
        assert len(heard) == 3 * SHARE
        assert set(heard) == self.of([*range(PARTITIONS)]), self.topic
        assert len(self.second.heard) == len(set(self.second.heard))


def test_nothing_is_missed_or_doubled_while_a_second_member_joins_and_dies(
    server: Server, clients: dict[str, Path]
) -> None:
    with ExitStack() as stack:
        scenes = [
            Scene(server, stack, client, face, mode)
            for client in clients.values()
            for face in FACES
            for mode in MODES
        ]
        for scene in scenes:
            scene.add("rustlog", "alone")
            scene.first = scene.join()
        for scene in scenes:
            scene.first.until_heard(SHARE)
            scene.wait_until_committed()
            scene.second_joins()
            scene.add("v1", "together")
        for scene in scenes:
            scene.both_hear()
            scene.wait_until_committed()
            scene.second.driver.kill()
            scene.add("iggy", "last")
        for scene in scenes:
            scene.first_hears_the_rest()
            scene.first.driver.kill()


def test_the_next_consumer_of_a_group_goes_on_where_the_last_committed(server: Server) -> None:
    client = python_with("cursus-client==0.1.1")
    topic = "committed"
    produce(client, server, topic, keys=KEYS)
    asked = asked_of_consumer(server, topic, RECORDS)
    assert len(records_in(drive(client, CONSUME, **asked))) == RECORDS
    ends = {p: offset + 1 for p, offset, _ in read_all(server, "rustlog", topic)}
    for dialect in ("rustlog", "v1"):
        assert committed(server, dialect, topic, asked["group"]) == ends
    produce(client, server, topic, keys=KEYS, prefix="later-")
    heard = records_in(drive(client, CONSUME, **asked))
    assert {step["value"] for step in heard} == {f"later-{n}" for n in range(RECORDS)}
    assert len(heard) == RECORDS


def test_what_a_consumer_died_with_is_read_by_the_next_of_its_group(
    client: Path, server: Server
) -> None:
    topic = f"{client.parents[1].name}-died"
    produce(client, server, topic)
    asked = asked_of_consumer(server, topic, RECORDS, mode="streaming", pause_s=0.001)
    with Driver(client, CONSUME, **asked) as first:
        heard = [first.step() for _ in range(1 + RECORDS // 4)]
        first.kill()
    known = {step["value"] for step in records_in(heard)}
    # The dead member keeps its partitions until its session ends. 0.1.1 then hears that it should
    # join again; 0.1.0 listens to no heartbeat's reply, so that the next one after it has them.
    for _ in range(2):
        if len(known) < RECORDS:
            asked |= {"known": [*known], "pause_s": 0, "patience_s": 13}
            known |= {step["value"] for step in records_in(drive(client, CONSUME, **asked))}
    assert known == {f"value-{n}" for n in range(RECORDS)}


@pytest.mark.parametrize("face", FACES)
def test_a_streaming_consumer_lives_on_when_the_server_is_killed_and_started_again(
    client: Path, tmp_path: Path, face: str
) -> None:
    with Server(tmp_path / "data") as server:
        produce(client, server, "lived", face=face)
        asked = asked_of_consumer(
            server, "lived", 2 * RECORDS, face=face, mode="streaming", heartbeat_ms=500
        )
        with Driver(client, CONSUME, **asked) as consumer:
            heard = [consumer.step() for _ in range(1 + RECORDS)]
            server.kill()
            server.start(same_ports=True)
            produce(client, server, "lived", face=face, prefix="later-")
            heard += consumer.until("closed")
        values = {step["value"] for step in records_in(heard, failing=True)}
        kept = [value for _, _, value in read_all(server, "iggy", "lived")]
    sent = {f"{prefix}{n}" for prefix in ("value-", "later-") for n in range(RECORDS)}
    assert (len(kept), set(kept)) == (len(sent), sent)
    assert values == sent
