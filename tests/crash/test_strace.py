"""Failing calls under the real server: `strace` makes the kernel's k-th answer an error.

From the first failed sync on no dialect gets an acknowledgement, each hears an error, and a restart
has everything that was acknowledged. A write that was interrupted, or found no room once, only
delays. Skipped where there is no strace or it may not attach.
"""

from __future__ import annotations

import select
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.registry import BUILT_IN
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import ROUND_ROBIN, CreateTopic, Produce, Produced, TopicCreated
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from support.caller import Caller
from support.effort import effort
from support.server import Server
from support.verdict import rule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAST = effort("CRASH_STRACE", 30)
STRIDES = [1, 2, 3, 5, 8, 13, 21, 30]
CALLS = {
    "fdatasync": STRIDES if LAST == 30 else list(range(1, LAST + 1)),
    "fsync": [1, 2, 4] if LAST == 30 else list(range(1, LAST // 4 + 1)),
}
"""fdatasync makes bytes durable, fsync the entries of directories."""
PRODUCES_MAX = 20_000
ATTACH_TIMEOUT_S = 20
SMALL = [
    *("--set", "storage.journal_file_bytes=64KiB"),
    *("--set", "storage.journal_first_bytes=64KiB"),
    *("--set", "storage.journal_files_max=4"),
    *("--set", "storage.segment_bytes=64KiB"),
]
"""So that checkpoints come after some dozens of groups."""


@contextmanager
def failing(call: str, error: str, number: int, server: Server) -> Iterator[None]:
    """The n-th call of each thread fails from now on; in the end the server is killed."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("there is no strace")
    inject = f"inject={call}:error={error}:when={number}"
    command = [program, "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
    tracer = subprocess.Popen([*command, "-p", str(server.pid)], stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    try:
        assert select.select([tracer.stderr], [], [], ATTACH_TIMEOUT_S)[0], "strace says nothing"
        said = tracer.stderr.readline().decode()
        if "attached" not in said:
            pytest.skip(f"strace may not attach: {said.strip()}")
        yield
    finally:
        server.kill()
        tracer.wait(ATTACH_TIMEOUT_S)
        tracer.stderr.close()


def produce(name: str, number: int, partition: int) -> Produce:
    """One numbered record as this dialect would write it."""
    value = b"%b:%d" % (name.encode(), number)
    batch = RecordBatch(1, VarColumn.single(value), origin=Origin.NONE)
    if name != "v1":
        return Produce("load", batch, partition)
    batch.keys = VarColumn.of([b"k"])  # the server chooses by key there
    return Produce("load", batch, ROUND_ROBIN)


def load(server: Server) -> list[bytes]:
    """Writes in all dialects in turn until one is refused; then all are. Returns what was
    acknowledged."""
    callers = {name: Caller(name, server.ports[name]) for name in BUILT_IN}
    acknowledged: list[bytes] = []
    refused: dict[str, Failure] = {}
    for number in range(PRODUCES_MAX):
        for at, (name, caller) in enumerate(callers.items()):
            if name in refused:
                continue
            reply = caller.ask(produce(name, number, at % 2))
            if isinstance(reply, Failure):
                refused[name] = reply
            else:
                assert isinstance(reply, Produced), reply
                assert not refused, f"{name} was answered after {list(refused)} had been refused"
                acknowledged.append(b"%b:%d" % (name.encode(), number))
        if len(refused) == len(callers):
            break
    for caller in callers.values():
        caller.socket.close()
    assert len(refused) == len(callers), "no sync failed"
    codes = {failure.code for failure in refused.values()}
    assert ErrorCode.STORAGE_FAILED in codes, refused
    return acknowledged


@pytest.mark.slow
@pytest.mark.timeout(60 + 20 * LAST)
@pytest.mark.parametrize("call", CALLS)
def test_a_sync_that_the_kernel_fails_ends_all_acknowledgements(call: str, tmp_path: Path) -> None:
    with rule("D7", f"EIO at the k-th {call} of the real server") as row:
        for number in CALLS[call]:
            server = Server(tmp_path / f"data-{number}", *SMALL)
            with server:
                with Caller("rustlog", server.ports["rustlog"]) as caller:
                    made = caller.ask(CreateTopic("load", 2))
                    assert isinstance(made, TopicCreated), made
                with failing(call, "EIO", number, server):
                    acknowledged = load(server)
                server.start()
                with Caller("rustlog", server.ports["rustlog"]) as caller:
                    rows = [caller.read_all("load", partition) for partition in range(2)]
            for partition in rows:
                assert [offset for offset, _ in partition] == list(range(len(partition)))
            found = [value for partition in rows for _, value in partition]
            row.lost += len(set(acknowledged) - set(found))
            row.duplicated += len(found) - len(set(found))
            row.cases += 1


@pytest.mark.slow
@pytest.mark.parametrize("error", ["EINTR", "ENOSPC", "EDQUOT"])
def test_a_write_that_fails_in_passing_is_made_again(error: str, tmp_path: Path) -> None:
    with rule("D8", f"{error} at a write of the real server, once") as row:
        server = Server(tmp_path / "data", *SMALL)
        with server:
            with Caller("rustlog", server.ports["rustlog"]) as caller:
                made = caller.ask(CreateTopic("load", 1))
                assert isinstance(made, TopicCreated), made
                with failing("pwrite64,pwritev", error, 3, server):
                    acknowledged = [
                        b"rustlog:%d" % number
                        for number in range(200)
                        if isinstance(caller.ask(produce("rustlog", number, 0)), Produced)
                    ]
                    while not isinstance(caller.ask(produce("rustlog", 200, 0)), Produced):
                        continue
                    acknowledged.append(b"rustlog:200")
            server.start()
            with Caller("rustlog", server.ports["rustlog"]) as caller:
                rows = caller.read_all("load", 0)
        assert [value for _, value in rows] == acknowledged
        row.cases += 201
