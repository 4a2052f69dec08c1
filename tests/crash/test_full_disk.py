"""A real disk that is really full, under a real server: a tmpfs of a few MiB in a mount namespace
of its own, which somebody else fills up and empties again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.error import RequestRefused
from dragoman.clients.sync import connect
from dragoman.codecs.registry import BUILT_IN
from dragoman.core.error import ErrorCode
from dragoman.core.storage.verify import verify
from support.server import Server
from support.verdict import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.clients.sync import SyncClient

SIZE_MIB = 12
PRODUCES_MAX = 4000
WAIT_S = 20.0
VALUE = b"v" * 2000
SETTINGS = {
    "storage.reserve_bytes": "512KiB",
    "storage.segment_bytes": "256KiB",
    "storage.journal_first_bytes": "256KiB",
    "storage.journal_file_bytes": "512KiB",
    "storage.journal_files_max": "4",
    "storage.retry_ms": "50",
}


class SmallDisk:
    """A tmpfs that only processes started by `launcher` have at `place`.

    Attributes:
        seen: Where everybody else finds it.
    """

    def __init__(self, place: Path) -> None:
        script = f'mount -t tmpfs -o size={SIZE_MIB}m tmpfs "$1" && echo ready && exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "-Urm", "sh", "-c", script, "sh", str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        holder = self._holder
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != b"ready\n":
            holder.stdin.close()
            reason = holder.stderr.read().decode().strip()
            self.close()
            pytest.skip(f"a tmpfs in a mount namespace of its own is not allowed here: {reason}")
        self.launcher = (
            *("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(holder.pid)),
            *("--wd=.", "--"),
        )
        self.seen = Path(f"/proc/{holder.pid}/root{place}")

    def fill(self) -> None:
        """Takes all the room that is left."""
        with (self.seen / "filler").open("ab", buffering=0) as filler:
            for size in (1 << 20, 1 << 16, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(bytes(size))
            with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
                filler.write(bytes(4096))

    def empty(self) -> None:
        """Gives it back."""
        (self.seen / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """The disk goes with the last process that has it."""
        for pipe in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            if pipe is not None:
                pipe.close()
        self._holder.wait(WAIT_S)


@contextmanager
def small_disk(place: Path) -> Iterator[SmallDisk]:
    try:
        disk = SmallDisk(place)
    except FileNotFoundError as missing:
        pytest.skip(f"there is no {missing.filename} here")
    try:
        yield disk
    finally:
        disk.close()


def produce_until_refused(
    client: SyncClient, disk: SmallDisk, acknowledged: list[bytes], mark: str
) -> ErrorCode:
    """Writes until the disk is full and the server says so."""
    for number in range(PRODUCES_MAX):
        if number % 50 == 5:
            disk.fill()
        value = f"{mark}-{number}-".encode() + VALUE
        try:
            client.produce("t", [value])
        except RequestRefused as refused:
            return refused.code
        acknowledged.append(value)
    raise AssertionError("the disk never was full")


def produce_until_taken(client: SyncClient, acknowledged: list[bytes], mark: str) -> None:
    """Writes until the server takes it."""
    value = f"{mark}-again-".encode() + VALUE
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            client.produce("t", [value])
        except RequestRefused as refused:
            if refused.code is not ErrorCode.STORAGE_FULL or time.monotonic() > deadline:
                raise
        else:
            acknowledged.append(value)
            return


def read_all(server: Server) -> list[bytes]:
    """Every value in the order of offsets."""
    values: list[bytes] = []
    with connect("cursus", port=server.ports["cursus"]) as client:
        while read := client.fetch("t", 0, len(values)):
            assert read[0].offset == len(values)
            values += [record.value or b"" for record in read]
    return values


def test_a_full_disk_is_answered_clearly_in_every_dialect_and_heals(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    flags = [flag for key, value in SETTINGS.items() for flag in ("--set", f"{key}={value}")]
    acknowledged: list[bytes] = []
    what = "a real tmpfs filled up and emptied by somebody else, in each dialect"
    with rule("D8", what) as row, small_disk(place) as disk:
        server = Server(place / "data", *flags, launcher=disk.launcher)
        server.log = tmp_path / "stderr"
        with server:
            with connect("rustlog", port=server.ports["rustlog"]) as client:
                client.create_topic("t", 1)
            for name in BUILT_IN:
                with connect(name, port=server.ports[name]) as client:
                    code = produce_until_refused(client, disk, acknowledged, name)
                    assert code is ErrorCode.STORAGE_FULL, (name, code)
                    others = [other for other in BUILT_IN if other != name]
                    for other in others:
                        with (
                            connect(other, port=server.ports[other]) as second,
                            pytest.raises(RequestRefused) as refused,
                        ):
                            second.produce("t", [VALUE])
                        assert refused.value.code is ErrorCode.STORAGE_FULL, other
                    assert read_all(server) == acknowledged
                    disk.empty()
                    produce_until_taken(client, acknowledged, name)
                    row.cases += 1
            assert verify(disk.seen / "data").damage == []
            server.kill()
            server.start()
            assert read_all(server) == acknowledged
            assert server.stop() == 0, server.tail()
            report = verify(disk.seen / "data")
            assert (report.damage, report.records) == ([], len(acknowledged))
