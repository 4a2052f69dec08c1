"""The client's promises against a real server that is killed, and a real member that is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.consumer import connect_consumer
from dragoman.clients.producer import connect_producer
from dragoman.clients.sync import connect
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 10_000
BATCH = 100
KILLS = (2_000, 5_000, 8_000)
"""The server is killed when so many records are acknowledged, while the next ones are sent."""
PRINTED_BEFORE_DEATH = 1_500


def number(value: bytes | None) -> int:
    assert value is not None
    return int(value)


def test_a_producer_writes_everything_once_through_kills_of_the_server(tmp_path: Path) -> None:
    acknowledged = threading.Semaphore(0)
    with Server(tmp_path / "data") as server:
        port = server.ports["cursus"]
        with connect("cursus", port=port) as client:
            client.create_topic("t", 3)

        def kill() -> None:
            done = 0
            for limit in KILLS:
                while done < limit:
                    acknowledged.acquire()
                    done += BATCH
                server.kill()
                server.start(same_ports=True)

        killer = threading.Thread(target=kill)
        killer.start()
        with connect_producer("cursus", port=port) as producer:
            for first in range(0, RECORDS, BATCH):
                values = [b"%d" % each for each in range(first, first + BATCH)]
                keys = [b"k%d" % (each % 50) for each in range(first, first + BATCH)]
                written = producer.produce("t", values, keys)
                assert sum(each.count for each in written) == BATCH
                acknowledged.release()
        killer.join()
        found: list[int] = []
        with connect("cursus", port=port) as client:
            for partition in range(3):
                offset = 0
                while records := client.fetch("t", partition, offset):
                    found += [number(record.value) for record in records]
                    offset = records[-1].offset + 1
    assert len(found) == RECORDS
    assert set(found) == set(range(RECORDS))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        with connect("cursus", port=running.ports["cursus"]) as client:
            client.create_topic("t", 4)
        yield running


def start_member(port: int) -> subprocess.Popen[bytes]:
    """`dragoman consume --group --follow`, whose output tells what it has read."""
    command = Path(sys.executable).with_name("dragoman")
    return subprocess.Popen(
        [str(command), "consume", "t", "--group", "g", "--follow", f"--port={port}"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.slow
def test_a_member_takes_over_from_one_that_is_killed(server: Server) -> None:
    """Nothing is missing, and what comes twice is what the dead member had not committed."""
    port = server.ports["cursus"]
    with connect_producer("cursus", port=port) as producer:
        child = start_member(port)
        assert child.stdout is not None
        with child.stdout as out:
            survivor: list[tuple[int, int, int]] = []
            with connect_consumer("t", "g", port=port) as consumer:
                while len(consumer.partitions) != 2:
                    consumer.poll(0.05)
                for first in range(0, RECORDS, BATCH):
                    values = [b"%d" % each for each in range(first, first + BATCH)]
                    producer.produce("t", values, [b"k%d" % (each % 97) for each in range(BATCH)])
                dead = [json.loads(out.readline()) for _ in range(PRINTED_BEFORE_DEATH)]
                child.send_signal(signal.SIGKILL)
                child.wait(10)
                *rest, last = out.read().split(b"\n")
                dead += [json.loads(line) for line in rest]
                theirs = {(row["partition"], row["offset"], int(row["value"])) for row in dead}
                committed = {}
                with connect("cursus", port=port) as client:
                    for partition in range(4):
                        committed[partition] = client.committed("t", "g", partition) or 0
                while len({value for *_, value in [*theirs, *survivor]}) < RECORDS:
                    for delivered in consumer.poll(0.1):
                        survivor += [
                            (delivered.partition, record.offset, number(record.value))
                            for record in delivered.records
                        ]
                    consumer.commit()
                assert consumer.partitions == (0, 1, 2, 3)
                assert consumer.poll(0) == []
    assert last.count(b"\n") == 0
    mine = Counter(survivor)
    assert max(mine.values()) == 1, "the survivor reads nothing twice"
    twice = theirs & mine.keys()
    assert all(offset >= committed[partition] for partition, offset, _ in twice)
    assert {value for *_, value in theirs | mine.keys()} == set(range(RECORDS))
