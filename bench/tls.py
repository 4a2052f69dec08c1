"""What TLS costs the server: its processor time a request, and handshakes a second, in one line.

    python bench/tls.py [--connections N] [--rounds N]

A client of plain sockets asks on all connections, then reads all answers, over and over; the same
with TLS. The server's time is the system's figure for its process, so that the client's own work
does not count. The requests are V1's CONSUME at the end of a partition, which has nothing to tell.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORT = Path(__file__).parent.parent / "tests" / "support"
CERTIFICATE, KEY = SUPPORT / "localhost.cert.pem", SUPPORT / "localhost.key.pem"
TURNS = 200
HANDSHAKES = 300
MAKE = b"V1|0|PRODUCE|t k:v\n"
ASK = b"V1|1|CONSUME|t 0 1\n"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def server(*flags: str) -> Iterator[tuple[int, int]]:
    """A fresh server: V1's port and its pid."""
    command = Path(sys.executable).with_name("dragoman")
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [
                *(str(command), "serve", "--ephemeral", "--print-ports", "--log-level", "error"),
                *("--data", f"{directory}/log", *flags),
            ],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["v1"], process.pid
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def dial(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """A connection, with TLS where there is a context."""
    made = socket.create_connection(("127.0.0.1", port), 10)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made if context is None else context.wrap_socket(made, server_hostname="localhost")


def measure(context: ssl.SSLContext | None, connections: int, rounds: int) -> float:
    """Microseconds of the server's time a request."""
    flags = ()
    if context is not None:
        flags = (f"--set=listeners.v1.tls_cert={CERTIFICATE}", f"--set=listeners.v1.tls_key={KEY}")
    with server(*flags) as (port, pid):
        peers = [dial(port, context) for _ in range(connections)]
        peers[0].sendall(MAKE)
        peers[0].recv(1000)
        figures = []
        for _ in range(rounds + 1):
            before = cpu_s(pid)
            for _ in range(TURNS):
                for peer in peers:
                    peer.sendall(ASK)
                for peer in peers:
                    peer.recv(1000)
            figures.append(1e6 * (cpu_s(pid) - before) / TURNS / connections)
        for peer in peers:
            peer.close()
    return median(figures[1:])


def handshakes_per_s(context: ssl.SSLContext) -> float:
    """Handshakes a second, one after the other, the client's half among the cost."""
    flags = (f"--set=listeners.v1.tls_cert={CERTIFICATE}", f"--set=listeners.v1.tls_key={KEY}")
    with server(*flags) as (port, _):
        began = perf_counter()
        for _ in range(HANDSHAKES):
            dial(port, context).close()
        return HANDSHAKES / (perf_counter() - began)


def main() -> None:
    """Prints the line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    plain = measure(None, asked.connections, asked.rounds)
    secret = measure(context, asked.connections, asked.rounds)
    print(
        f"{asked.connections} connections: {plain:.1f} us a request plain, {secret:.1f} us with "
        f"TLS ({secret / plain:.1f} times); {handshakes_per_s(context):.0f} handshakes/s"
    )


if __name__ == "__main__":
    main()
