"""The published Rust client of Iggy (crate `iggy`) against the real server.

Version 0.0.60 is of the generation that is served, 0.0.74 the last that speaks it unchanged. Their
driver takes minutes to build and needs cargo, libssl-dev and pkg-config: `make interop-build`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / ".interop" / "iggy_rust" / "debug"
RECORDS = 1000
PARTITIONS = 3
TYPED = (
    "n=Uint32:[7, 0, 0, 0],name=String:[120],pi=Float64:[0, 0, 0, 0, 0, 0, 12, 64],"
    f"wide=Int128:[{', '.join(['255'] * 16)}],yes=Bool:[1]"
)
FIRST = "0|5|907060870||hello"
SECOND = "1|6|2924724097||world, again"
THIRD = "2|10|1908338681||b"
FOURTH = "3|made|1170795051||no id"
SEEN = f"""\
ping: done
create stream: done
create stream again: error 1011
create stream of that name: error 1012
create stream of odd name: error 1013
create topic: done
create topic again: error 2012
create partitions: done
send to partition 1: done
send by key: done
send balanced: done
send without id: done
send to partition 9: error 3007
send nothing: error 4009
send an empty payload: error 4024
poll first: p1 at 3 [{FIRST}; {SECOND}; {THIRD}; {FOURTH}]
poll offset 1: p1 at 3 [{SECOND}; {THIRD}; {FOURTH}]
poll last 1: p1 at 3 [{FOURTH}]
poll timestamp 1: p1 at 3 [{FIRST}; {SECOND}]
poll beyond: p1 at 3 []
poll next 2: p1 at 3 [{FIRST}; {SECOND}]
poll next again: p1 at 3 [{THIRD}; {FOURTH}]
poll next at end: p1 at 3 []
poll keyed: p3 at 0 [0|9|3672313079|{TYPED}|typed]
poll partition 9: error 3007
poll nothing: error 4009
offset of 7: p1 3 of 3
offset never stored: p1 0 of 3
store offset 0: done
poll next after 0: p1 at 3 [{SECOND}]
store offset beyond: error 4100
get topic: 1 my.top expiry Some(3600) messages 5 partitions 1:3:4 2:0:0 3:0:1
get topics: my.top
get stream: 1 dev topics 1 messages 5
get streams: dev
get me: error 5
get stream 77: error 1009
get topic none: error 2011
delete partitions: done
delete topic: done
delete stream: done
delete stream again: error 1010
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(params=["0.0.60", "0.0.74"])
def driver(request: pytest.FixtureRequest) -> Path:
    """The driver over one version of the client."""
    version: str = request.param
    built = BUILT / f"iggy-{version.replace('.', '-')}"
    if not built.exists():
        pytest.skip(f"the driver over iggy {version} is not built: make interop-build")
    return built


def drive(driver: Path, server: Server, *words: str) -> list[str]:
    """The lines that the driver prints."""
    command = [str(driver), f"127.0.0.1:{server.ports['iggy']}", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout[-500:] + run.stderr[-2000:]
    return run.stdout.splitlines()


def read_all(server: Server, dialect: str, topic: str) -> list[str]:
    """Every record, as the driver prints them: partitions from 1."""
    rows: list[str] = []
    with connect(dialect, port=server.ports[dialect]) as reader:
        for partition in range(PARTITIONS):
            at = 0
            while records := reader.fetch(topic, partition, at):
                rows += [f"{partition + 1} {r.offset} {(r.value or b'').decode()}" for r in records]
                at = records[-1].offset + 1
    return rows


def test_every_command_of_the_published_rust_client_is_served(driver: Path, server: Server) -> None:
    assert drive(driver, server, "scenario") == SEEN.splitlines()


def test_what_the_rust_client_sends_is_read_in_every_dialect(driver: Path, server: Server) -> None:
    told = drive(driver, server, "write", "shop", "orders", str(RECORDS))
    assert all(line.endswith(": done") for line in told), told
    seen = drive(driver, server, "read", "shop", "orders")
    wrote = {1: 0, 2: 0, 3: 0}
    expected = []
    for number in range(RECORDS):
        partition = 1 + number // 100 % PARTITIONS
        expected.append((partition, wrote[partition], f"record-{number}"))
        wrote[partition] += 1
    assert seen == [f"{p} {offset} {value}" for p, offset, value in sorted(expected)]
    for dialect in ("cursus", "v1", "rustlog"):
        assert read_all(server, dialect, "shop/orders") == seen


@pytest.mark.parametrize("writer", ["cursus", "v1", "rustlog"])
def test_the_rust_client_reads_what_other_dialects_wrote(
    driver: Path, server: Server, writer: str
) -> None:
    with connect(writer, port=server.ports[writer]) as client:
        if writer != "v1":
            client.create_topic("crossing", PARTITIONS)
        client.produce("crossing", [b"%s-%d" % (writer.encode(), n) for n in range(RECORDS)])
    seen = drive(driver, server, "read", "default", "crossing")
    assert {line.split()[2] for line in seen} == {f"{writer}-{n}" for n in range(RECORDS)}
    assert seen == read_all(server, writer, "crossing")
