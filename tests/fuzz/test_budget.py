"""A real server whose memory others want: half frames by the hundred, and readers that stop.

`FUZZ_ANNOUNCERS` is how many connections announce large frames; the budget grows with them.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from dragoman.codecs.registry import dialect
from dragoman.core import calls
from support.effort import effort
from support.prey import Prey, many

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
ANNOUNCERS = effort("FUZZ_ANNOUNCERS", 200)
HALF_BYTES = 80 * 1024
BUDGET_BYTES = ANNOUNCERS * HALF_BYTES
"""Memory is short once three quarters of all halves have come."""
GROWTH_BYTES_MAX = 64 * MIB + BUDGET_BYTES
STALLED = "half a frame made no progress while memory was short"
TLS = Path(__file__).parent.parent / "support"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def prey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prey]:
    """A server with a small budget and little patience, Iggy behind TLS."""
    settings = {
        "server.in_flight_bytes_max": str(BUDGET_BYTES),
        "server.frame_stall_timeout": "500ms",
        "server.slow_reader_timeout": "500ms",
        "listeners.cursus.connections_max": str(ANNOUNCERS),
        "listeners.iggy.tls_cert": str(TLS / "localhost.cert.pem"),
        "listeners.iggy.tls_key": str(TLS / "localhost.key.pem"),
    }
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    with Prey(tmp_path_factory.mktemp("budget") / "data", *flags) as server:
        yield server
        assert server.stop() == 0, server.tail()
        server.assert_unharmed()


@pytest.fixture(scope="module")
def honest(prey: Prey) -> str:
    """A topic for small records."""
    with connect("rustlog", port=prey.ports["rustlog"]) as client:
        client.create_topic("honest", partitions=1)
    return "honest"


def half(name: str) -> bytes:
    """The beginning of the largest frame that a dialect has, as far as it is sent."""
    if name == "v1":
        start = b"V1|1|PRODUCE|t k:"
    else:
        start = dialect(name).limits.frame_bytes_max.to_bytes(4, "big")
    return start + b"h" * (HALF_BYTES - len(start))


def closed_for(prey: Prey, reason: str, since: int = 0) -> list[str]:
    """The dialects of the connections that were closed for this reason."""
    lines = prey.log_lines()[since:]
    return [line["dialect"] for line in lines if line.get("reason") == reason]


def test_half_frames_above_the_budget_take_turns_and_go_when_they_stall(
    prey: Prey, honest: str
) -> None:
    prey.forget_peak()
    before = prey.rss()
    slowest = 0.0
    with contextlib.ExitStack() as stack:
        for name in ("cursus", "v1", "rustlog"):
            for made in stack.enter_context(many(prey, name, ANNOUNCERS // 3)):
                made.sendall(half(name))
        prey.wait_for("the shortage", lambda: "is short; who sends large" in prey.log.read_text())
        done = threading.Event()

        def send_large() -> None:
            with connect("cursus", port=prey.ports["cursus"]) as client:
                client.produce(honest, [bytes(8 * MIB)], partition=0)
            done.set()

        large = threading.Thread(target=send_large, daemon=True)
        large.start()
        with connect("rustlog", port=prey.ports["rustlog"]) as client:
            while not done.is_set():
                began = time.monotonic()
                client.produce(honest, [b"small"], partition=0)
                slowest = max(slowest, time.monotonic() - began)
        large.join()
        growth = prey.peak_rss() - before
        shed = closed_for(prey, STALLED)
        print(
            f"{ANNOUNCERS} halves of large frames, budget {BUDGET_BYTES / MIB:.0f} MiB: "
            f"{growth / MIB:.1f} MiB at most, {len(shed)} closed, others waited "
            f"{slowest * 1000:.0f} ms"
        )
    assert growth < GROWTH_BYTES_MAX
    assert set(shed) == {"cursus", "v1", "rustlog"}
    prey.wait_for("the end of the shortage", lambda: "is enough again" in prey.log.read_text())


@pytest.fixture(scope="module")
def bulk(prey: Prey) -> str:
    """A topic with 16 MiB."""
    with connect("cursus", port=prey.ports["cursus"]) as client:
        client.create_topic("bulk", partitions=1)
        for _ in range(16):
            client.produce("bulk", [bytes(8192)] * 128, partition=0)
    return "bulk"


@pytest.mark.parametrize("name", ["iggy", "rustlog", "stream"])
def test_a_reader_that_stops_reading_is_closed_with_a_word_in_the_log(
    prey: Prey, honest: str, bulk: str, name: str
) -> None:
    spoken = "cursus" if name == "stream" else name
    if name == "stream":
        request: calls.Request = calls.Follow(bulk, 0, 0)
    else:
        request = calls.Fetch(bulk, 0, 0, bytes_max=4 * MIB)
    asked = b"".join(map(bytes, dialect(spoken).speaker().ask(request)))
    seen = len(prey.log_lines())
    with prey.dial(spoken, receive_bytes=4096) as plain, contextlib.ExitStack() as stack:
        made = plain
        if spoken == "iggy":
            context = ssl.create_default_context(cafile=str(TLS / "localhost.cert.pem"))
            made = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
        made.sendall(asked * 30)
        with connect("rustlog", port=prey.ports["rustlog"]) as other:

            def is_closed() -> bool:
                other.produce(honest, [b"small"], partition=0)
                return closed_for(prey, "stopped reading", seen) == [spoken]

            prey.wait_for("the close", is_closed)
