"""How long a start takes over a log of 1 GiB, and a look at every byte of it.

Run as `python bench/recovery.py [DIRECTORY] [MIB]`; the directory decides which disk is measured.
Two logs are built through the store: one is stopped in order; the other one's process is killed
with its journal so full of what no checkpoint holds that producers would rest, which is the most
that a start may have to replay. Each row is a process of its own, from its first instruction to the
line that says it serves; the page cache is as the rows before left it. "bare" is `dragoman serve`
over an empty directory: what Python and the imports take.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from dragoman.core import change as ch
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.clock import Now
from dragoman.core.column import VarColumn
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER
from dragoman.core.storage.checkpoint import Checkpoint
from dragoman.core.storage.disk_store import DiskStore

MIB = 1024 * 1024
PARTITIONS = 4
RECORDS = 100
VALUE = b"v" * 100
JOURNAL_MIB = 700
"""Just below three quarters of the journal, where producers rest."""


class Builder:
    """Fills a log as a server would, on one thread.

    Attributes:
        checkpoints: Checkpoints are made when they are due; else never.
    """

    def __init__(self, directory: str) -> None:
        self.store = DiskStore(directory)
        self.checkpoints = True
        self._us = 0
        change = ch.TopicPut(1, DEFAULT_NAMESPACE_NUMBER, 1, "bench", 1, [1] * PARTITIONS, {})
        self.store.catalog.apply(change)
        self.store.append(change)

    def now(self, passed_us: int = 20_000) -> Now:
        """A clock that moves by so much a reading."""
        self._us += passed_us
        return Now(1_700_000_000_000_000 + self._us, self._us)

    def fill(self, size: int) -> None:
        """Appends batches of 100 records until so many bytes were written."""
        state = self.store.catalog.topics[1].partitions
        values = VarColumn.uniform(VALUE * RECORDS, len(VALUE), RECORDS)
        while size > 0:
            now = self.now()
            for number in range(64):
                partition = number % PARTITIONS
                batch = RecordBatch(RECORDS, values, origin=Origin.NONE)
                end = state[partition].next_offset
                batch.place(base_offset=end, timestamp_us=now.wall_us, log_epoch=0)
                state[partition].next_offset = end + RECORDS
                self.store.append_batch(1, partition, batch)
                size -= batch.nbytes
            work = self.store.take_flush(now)
            while work is None:
                self.settle(self.now())
                work = self.store.take_flush(self.now())
            work.run()
            self.store.flushed(work, None)
            self.settle(self.now())

    def settle(self, now: Now) -> None:
        """Runs what is due."""
        while works := self.store.take_work(now):
            for work in works:
                if self.checkpoints or not isinstance(work, Checkpoint):
                    work.run()
                    self.store.finished(work, None)

    def empty_journal(self) -> None:
        """Has two checkpoints made: the older one needs the journal up to the newer."""
        for _ in range(2):
            self.fill(1)
            self.settle(self.now(60_000_000))
            self.settle(self.now())

    def stop(self) -> None:
        """An orderly stop."""
        self.store.begin_close(self.now())
        for _ in range(1000):
            self.settle(self.now())
        self.store.close()


def build(directory: str, mib: int, *, clean: bool) -> None:
    """Builds a log in a process of its own, which ends in order or not."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert status == 0, "the log could not be built"
        return
    builder = Builder(directory)
    if clean:
        builder.fill(mib * MIB)
        builder.stop()
    else:
        in_journal = min(mib, JOURNAL_MIB)
        builder.fill((mib - in_journal) * MIB)
        builder.empty_journal()
        builder.checkpoints = False
        builder.fill(in_journal * MIB)
    os._exit(0)


def serve(directory: str, *flags: str) -> float:
    """Seconds from the start of `dragoman serve` to its line of ports; then it stops in order."""
    command = [str(Path(sys.executable).with_name("dragoman")), "serve", "--ephemeral"]
    began = perf_counter()
    with subprocess.Popen(
        [*command, "--print-ports", "--data", directory, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        took = perf_counter() - began
        process.send_signal(signal.SIGTERM)
        process.wait()
    return took


def verify(directory: str) -> tuple[float, int]:
    """Seconds of `dragoman verify`, and how many journal groups it found to replay."""
    command = [str(Path(sys.executable).with_name("dragoman")), "verify", directory]
    began = perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)
    took = perf_counter() - began
    assert done.returncode == 0, done.stderr.decode()
    return took, json.loads(done.stdout)["journal_groups"]


def row(name: str, took: float, mib: float) -> None:
    """Prints one row."""
    rate = f"{mib / took:7.0f} MiB/s" if mib else ""
    print(f"{name:52} {took:7.2f} s {rate}", flush=True)


def main() -> None:
    """Prints the table."""
    place = sys.argv[1] if len(sys.argv) > 1 else "."
    mib = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    with tempfile.TemporaryDirectory(dir=place) as folder:
        clean, killed, copy = f"{folder}/clean", f"{folder}/killed", f"{folder}/copy"
        row("bare", serve(f"{folder}/bare"), 0)
        build(clean, mib, clean=True)
        row("a start after an orderly stop", serve(clean), 0)
        row("dragoman verify", verify(clean)[0], mib)
        row("a start with --verify", serve(clean, "--verify"), mib)
        build(killed, mib, clean=False)
        shutil.copytree(killed, copy)
        took, groups = verify(killed)
        row(f"dragoman verify after a kill, {groups} groups to replay", took, mib)
        row("a start after that kill", serve(killed), mib)
        row("the same with --verify", serve(copy, "--verify"), mib)


if __name__ == "__main__":
    main()
