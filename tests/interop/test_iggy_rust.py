"""The published Rust client of the generation (crate `iggy` 0.0.60) against a real server.

The driver is built by hand, since that takes minutes and needs libssl-dev and pkg-config::

    cd tests/interop/iggy_rust
    OPENSSL_NO_VENDOR=1 cargo build --locked --target-dir ../../../.interop/iggy_rust
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.server import Server

DRIVER = Path(__file__).parents[2] / ".interop" / "iggy_rust" / "debug" / "iggy-driver"
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


@pytest.mark.interop
def test_the_published_rust_client_of_2023_is_served(tmp_path: Path) -> None:
    if not DRIVER.exists():
        pytest.skip(f"iggy 0.0.60 driver is not built: no {DRIVER}")
    with Server(tmp_path / "data") as server:
        run = subprocess.run(
            [str(DRIVER), f"127.0.0.1:{server.ports['iggy']}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert run.stdout == SEEN, run.stderr
