"""Throughput and latency of every dialect, as tables, beside what the machine and a peer can do.

    python bench/throughput.py [--quick] [--only TABLE] [--dialect NAME ...] [--rounds N]

The server runs on processor 0 and the load on processor 1; one connection with a batch of 100 or
less shares processor 0 with the server, because two idle processors wake each other slowly. Each
figure is the median of the rounds. Compare figures of one run only: ratios travel, absolute figures
do not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import cursus_peer
from ceilings import echoes_per_s, syncs_per_s
from load import Load, Result
from peers import redis_acks, redis_server

from dragoman.codecs.registry import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVER_CPU, LOAD_CPU = 0, 1
MODES = ("fsync", "interval:100ms", "os")


@contextmanager
def server(durability: str) -> Iterator[tuple[dict[str, int], int]]:
    """A fresh server on processor 0: its ports and its pid."""
    command = Path(sys.executable).with_name("dragoman")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as directory:
        process = subprocess.Popen(
            [
                *(str(command), "serve", "--ephemeral", "--print-ports", "--log-level", "error"),
                *("--data", f"{directory}/log", "--durability", durability),
            ],
            stdout=subprocess.PIPE,
        )
        os.sched_setaffinity(process.pid, {SERVER_CPU})
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process.pid
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def measure(load: Load, ports: dict[str, int]) -> Result:
    """Runs one load in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("load.py")), json.dumps(asdict(load))],
        env={**os.environ, "BENCH_PORTS": json.dumps(ports)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return Result(**json.loads(done.stdout))


def median(results: list[Result]) -> Result:
    """Field by field."""
    return Result(
        **{f.name: statistics.median(getattr(r, f.name) for r in results) for f in fields(Result)}
    )


def load_cpu(connections: int, batch: int) -> int:
    """Where the load runs, so that wake-ups between idle processors are not measured."""
    return SERVER_CPU if connections == 1 and batch <= 100 else LOAD_CPU


class Bench:
    """Runs loads and prints rows.

    Args:
        seconds: Of each timed loop.
        rounds: Of which each figure is the median.
    """

    def __init__(self, seconds: float, rounds: int) -> None:
        self.seconds = seconds
        self.rounds = rounds
        self._topics = 0

    def run(self, where: tuple[dict[str, int], int], **shape: object) -> Result:
        """The median of the rounds of one shape."""
        ports, pid = where
        results = []
        for _ in range(self.rounds):
            self._topics += 1
            load = Load(
                port=ports[str(shape["dialect"])],
                topic=f"bench-{self._topics}",
                seconds=self.seconds,
                server_pid=pid,
                cpu=load_cpu(int(str(shape["connections"])), int(str(shape["batch"]))),
                **shape,  # type: ignore[arg-type]
            )
            results.append(measure(load, ports))
        return median(results)

    def machine(self) -> None:
        """What the machine can do now."""
        here = Path(os.environ.get("BENCH_DIR", tempfile.gettempdir()))
        echo = echoes_per_s(64, self.seconds, (SERVER_CPU, LOAD_CPU))
        print(f"machine: {echo:,.0f} echoes/s of 64 B over 64 connections (epoll loop in Python), ")
        print(f"         {syncs_per_s(here, self.seconds):,.0f} fdatasync/s of 4 KiB\n", flush=True)

    def batches(self, op: str, dialects: list[str], shapes: list[dict[str, object]]) -> None:
        """Records a second by dialect, size, batch and connections, durable by fsync."""
        print(f"## {op}, durability fsync\n")
        columns = ("dialect", "size", "sizes", "batch", "conns", "records/s", "MB/s", "p50 ms")
        print(f"| {' | '.join((*columns, 'p99 ms', 'CPU us/req'))} |")
        print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in dialects:
            with server("fsync") as where:
                for shape in shapes:
                    r = self.run(where, dialect=name, op=op, **shape)
                    sizes = "mixed" if shape["spread"] else "equal"
                    print(
                        f"| {name} | {shape['size']} | {sizes} | {shape['batch']:,} "
                        f"| {shape['connections']} | {r.records_per_s:,.0f} | {r.mb_per_s:,.1f} "
                        f"| {r.p50_ms:.2f} | {r.p99_ms:.2f} | {r.server_cpu_us:,.1f} |",
                        flush=True,
                    )
        print()

    def acks(self, dialects: list[str], connections: list[int]) -> None:
        """Acknowledged requests a second at one record a request, by durability mode."""
        print("## acks: produce 100 B, batch 1\n")
        print("| dialect | durability | conns | acks/s | p50 ms | p99 ms | CPU us/req |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for mode in MODES:
            for name in dialects:
                with server(mode) as where:
                    for count in connections:
                        r = self.run(where, dialect=name, op="produce", batch=1, connections=count)
                        print(
                            f"| {name} | {mode} | {count} | {r.requests_per_s:,.0f} "
                            f"| {r.p50_ms:.3f} | {r.p99_ms:.2f} | {r.server_cpu_us:,.1f} |",
                            flush=True,
                        )
        print()

    def redis(self, connections: list[int]) -> None:
        """The same of a Redis that syncs."""
        print("## Redis streams, appendfsync always, produce 100 B\n")
        with redis_server(SERVER_CPU) as port:
            if port is None:
                print("Left out: no redis-server on the PATH.\n")
                return
            print("| batch | conns | requests/s | records/s | p50 ms | p99 ms |")
            print("|---|---|---|---|---|---|", flush=True)
            for count, batch in [*((count, 1) for count in connections), (1, 1000), (4, 1000)]:
                load = Load("redis", "produce", port, batch=batch, connections=count)
                r = self._beside(load, redis_acks)
                print(
                    f"| {load.batch:,} | {load.connections} | {r.requests_per_s:,.0f} "
                    f"| {r.records_per_s:,.0f} | {r.p50_ms:.3f} | {r.p99_ms:.2f} |",
                    flush=True,
                )
        print()

    def cursus(self, broker: str | None) -> None:
        """Cursus of ours, durable and not, beside a broker that does not sync: row by row."""
        print("## Cursus beside its broker of December 2025, 100 B\n")
        if broker is None:
            print("Left out: --cursus-broker names none.\n")
            return
        print("| op | batch | conns | ours, fsync | ours, os | broker, no sync | ", end="")
        print("p50 ms ours, fsync | ours, os | broker |")
        print(f"|{9 * '---|'}", flush=True)
        shapes = [(op, batch, 1) for op in ("produce", "consume") for batch in (1, 100, 1000)]
        shapes[3:3] = [("produce", 1, 64), ("produce", 100, 4), ("produce", 1000, 4)]
        with (
            server("fsync") as durable,
            server("os") as quick,
            cursus_peer.cursus_broker(broker, SERVER_CPU),
        ):
            for op, batch, connections in shapes:
                shape = {"batch": batch, "connections": connections}
                mine = {"dialect": "cursus", "op": "fetch" if op == "consume" else op, **shape}
                load = Load("cursus", op, cursus_peer.PORT, **shape)
                theirs = cursus_peer.consume if op == "consume" else cursus_peer.produce
                results = (
                    self.run(durable, **mine),
                    self.run(quick, **mine),
                    self._beside(load, theirs),
                )
                rates = " | ".join(f"{r.records_per_s:,.0f}" for r in results)
                waits = " | ".join(f"{r.p50_ms:.3f}" for r in results)
                print(f"| {op} | {batch:,} | {connections} | {rates} | {waits} |", flush=True)
        print()

    def _beside(self, load: Load, run: Callable[[Load], Result]) -> Result:
        """The median of a peer's rounds, the load where it would run for ours."""
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {load_cpu(load.connections, load.batch)})
        try:
            return median([run(replace(load, seconds=self.seconds)) for _ in range(self.rounds)])
        finally:
            os.sched_setaffinity(0, mine)


def shapes(*, quick: bool, op: str) -> list[dict[str, object]]:
    """Sizes, batches and connections of the batch tables."""
    found: list[dict[str, object]] = []
    for size in (100, 1024):
        for spread in (0.0, 0.5):
            for batch in (1, 100, 1000):
                for connections in (1, 4, 64):
                    if quick and not (batch == 1000 and connections in (1, 4) and size == 100):
                        continue
                    if op == "fetch" and quick and connections != 1:
                        continue
                    found.append(
                        {
                            "size": size,
                            "spread": spread,
                            "batch": batch,
                            "connections": connections,
                        }
                    )
    return found


def cold(bench: Bench, dialects: list[str]) -> None:
    """The first reading of every batch by another dialect than wrote it: nothing rendered yet."""
    print("## fetch of records written in another dialect, 1,000 x 100 B mixed, 1 connection\n")
    print("| reader | writer | records/s |")
    print("|---|---|---|", flush=True)
    for reader in dialects:
        writer = "rustlog" if reader != "rustlog" else "iggy"
        with server("fsync") as where:
            r = bench.run(
                where,
                dialect=reader,
                op="fetch",
                batch=1000,
                spread=0.5,
                connections=1,
                preload=300,
                preload_dialect=writer,
                once=True,
            )
            print(f"| {reader} | {writer} | {r.records_per_s:,.0f} |", flush=True)
    print()


def main() -> None:
    """Reads the arguments and prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the shapes")
    parser.add_argument("--dialect", action="append", choices=BUILT_IN)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("produce", "fetch", "cold", "acks", "redis", "cursus"))
    parser.add_argument("--cursus-broker", metavar="PATH", help="a broker binary to compare with")
    asked = parser.parse_args()
    dialects = asked.dialect or list(BUILT_IN)
    bench = Bench(asked.seconds, asked.rounds)
    bench.machine()
    for op in ("produce", "fetch"):
        if asked.only in (None, op):
            bench.batches(op, dialects, shapes(quick=asked.quick, op=op))
    if asked.only in (None, "cold"):
        cold(bench, dialects)
    connections = [1, 64] if asked.quick else [1, 4, 64, 256]
    if asked.only in (None, "acks"):
        bench.acks(dialects, connections)
    if asked.only in (None, "redis"):
        bench.redis(connections)
    if asked.only in (None, "cursus"):
        bench.cursus(asked.cursus_broker)


if __name__ == "__main__":
    main()
