"""What each compression costs: MB/s of content out (compressed) and in (opened), one thread.

Two bodies: a batch of 1,000 records of 100 bytes, as the other benchmarks write them, and 1 MiB of
lines of JSON. Prints one table in Markdown; `make bench` measures everything else.
"""

from __future__ import annotations

import os
import platform
import random
import time
from functools import partial
from typing import TYPE_CHECKING

import orjson

from dragoman.codecs.compression import registry
from dragoman.codecs.registry import dialect
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import Produce
from dragoman.core.column import VarColumn

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS, RECORD_BYTES = 1_000, 100
TEXT_BYTES = 1024 * 1024
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
"""Of each figure; the best of its rounds counts, since a busy machine only slows down."""
ROUNDS = 5


def batch_body() -> bytes:
    """A batch as it is framed; each record is 50 hexadecimal digits of noise, twice."""
    dice = random.Random(1)
    half = RECORD_BYTES // 2
    values = VarColumn.of([dice.randbytes(half // 2).hex().encode() * 2 for _ in range(RECORDS)])
    batch = RecordBatch(RECORDS, values, origin=Origin.NONE)
    _, *body = dialect("cursus").speak({}).ask(Produce("bench", batch, 0))
    return b"".join(map(bytes, body))


def text_body() -> bytes:
    """Lines of JSON, such as services log."""
    dice = random.Random(2)
    text = bytearray()
    while len(text) < TEXT_BYTES:
        row = {
            "time": f"2026-03-17T{dice.randrange(24):02}:00:17.{dice.randrange(1000):03}Z",
            "level": dice.choice(("info", "info", "info", "warning", "error")),
            "service": dice.choice(("billing", "shipping", "web", "search")),
            "customer": dice.randrange(1_000_000),
            "amount": dice.randrange(100_000) / 100,
            "message": dice.choice(("order placed", "order paid", "order shipped", "cart emptied")),
            "trace": f"{dice.getrandbits(64):016x}",
        }
        text += orjson.dumps(row) + b"\n"
    return bytes(text[:TEXT_BYTES])


def mb_per_s(action: Callable[[], object], size: int) -> float:
    """Content a second, in the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        count = 0
        started = now = time.perf_counter()
        while now < started + SECONDS / ROUNDS:
            action()
            count += 1
            now = time.perf_counter()
        best = min(best, (now - started) / count)
    return size / best / 1e6


def main() -> None:
    """Prints the table."""
    print(
        f"{platform.machine()}, Python {platform.python_version()}, one thread; MB/s of content\n"
    )
    print("| body | compression | smaller by | out, MB/s | in, MB/s |")
    print("|---|---|---|---|---|")
    for title, body in (
        (f"{RECORDS:,} x {RECORD_BYTES} B", batch_body()),
        ("1 MiB of JSON lines", text_body()),
    ):
        for name in registry().names():
            one = registry().named(name)
            packed = one.compress(body)
            assert one.open(packed, len(body)) == body
            made = mb_per_s(partial(one.compress, body), len(body))
            opened = mb_per_s(partial(one.open, packed, len(body)), len(body))
            ratio = len(body) / len(packed)
            print(f"| {title} | {name} | {ratio:.1f} | {made:,.0f} | {opened:,.0f} |")


if __name__ == "__main__":
    main()
