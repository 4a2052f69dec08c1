from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import orjson
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVE = (sys.executable, "-m", "dragoman.cli.main", "serve")
START_SECONDS_MAX = 30


def refused(*arguments: str, directory: Path) -> str:
    """Runs a server that should not start; returns what it said."""
    ended = subprocess.run(
        (*SERVE, *arguments),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    return ended.stderr.splitlines()[-1]


class Served:
    """A server process.

    Attributes:
        ports: By dialect, and `admin`.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        self.ports: dict[str, int] = orjson.loads(line)

    def ask_v1(self, line: bytes) -> bytes:
        """Asks one line of the V1 dialect."""
        with socket.create_connection(("127.0.0.1", self.ports["v1"]), 10) as peer:
            peer.sendall(line)
            with peer.makefile("rb") as answers:
                return answers.readline()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stops it; returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(START_SECONDS_MAX)


@contextmanager
def served(directory: Path, *arguments: str) -> Iterator[Served]:
    process = subprocess.Popen(
        (*SERVE, "--ephemeral", "--print-ports", "--data", "data", *arguments),
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


def test_the_ports_are_one_line_of_json_and_each_accepts(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert list(server.ports) == ["cursus", "v1", "iggy", "rustlog", "admin"]
        for port in server.ports.values():
            socket.create_connection(("127.0.0.1", port), 5).close()
        assert server.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_acknowledged_record_is_there_after_a_restart(tmp_path: Path, number: int) -> None:
    with served(tmp_path) as server:
        assert server.ask_v1(b"V1|1|PRODUCE|t k:hello\n").startswith(b"V1|1|OK|")
        assert server.stop(number) == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    with served(tmp_path) as server:
        answers = b"".join(
            server.ask_v1(b"V1|2|CONSUME|t %d 0\n" % partition) for partition in range(3)
        )
        assert b"hello" in answers
        assert server.stop() == 0


def test_a_second_server_on_the_same_directory_names_the_first(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        said = refused("--ephemeral", "--data", "data", directory=tmp_path)
        assert str(server.process.pid) in said


def test_a_log_that_nobody_reads_any_more_does_not_end_the_server(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.process.stderr is not None
        server.process.stderr.close()
        server.process.stderr = None
        assert server.ask_v1(b"GET / HTTP/1.1\n").startswith(b"V1|")
        assert server.ask_v1(b"V1|1|PRODUCE|t k:hello\n").startswith(b"V1|1|OK|")
        assert server.stop() == 0


def test_ports_that_cannot_be_printed_are_in_the_log(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            (*SERVE, "--ephemeral", "--print-ports"),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any("cannot print the ports" in line and "No space" in line for line in lines)
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS_MAX) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--set", f"listeners.cursus.port={port}", directory=tmp_path)
    assert said == f"dragoman: listeners.cursus: port {port} of 127.0.0.1 is taken already"


def test_a_directory_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "FORMAT").write_text('{"format": 999, "oldest_reader": 999}')
    said = refused("--ephemeral", "--data", "data", directory=tmp_path)
    assert said.startswith("dragoman: ")
    assert "format 999" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--host", "0.0.0.0"), "pass --insecure to accept that"),
        (("--durability", "maybe"), "is none of fsync, interval, os"),
        (("--profile", "cursus-doc"), 'did you mean "cursus-document"?'),
        (("--set", "listeners.v1.prot=1"), "listeners.v1: "),
        (("--set", "listeners.v1.port"), "write key=value"),
        (("--config", "absent.toml"), "there is no configuration file"),
        (("--log-format", "xml"), "is none of console, json, logfmt"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(*arguments, directory=tmp_path)


def test_relaxed_durability_is_said_at_start(tmp_path: Path) -> None:
    with served(tmp_path, "--durability", "os", "--log-format", "json") as server:
        assert server.ask_v1(b"V1|1|PRODUCE|t k:hello\n").startswith(b"V1|1|OK|")
        assert server.stop() == 0
        stderr: IO[str] | None = server.process.stderr
        assert stderr is not None
        lines: list[dict[str, Any]] = [orjson.loads(line) for line in stderr.read().splitlines()]
    assert {line["event"] for line in lines} >= {
        "acknowledged records may be lost in a power cut",
        "serving",
        "stopping",
    }


def ask_cursus(port: int, *bodies: bytes) -> list[bytes]:
    """The answers to frames of the Cursus dialect, one each."""
    with socket.create_connection(("127.0.0.1", port), 10) as peer, peer.makefile("rb") as answers:
        found = []
        for body in bodies:
            peer.sendall(len(body).to_bytes(4, "big") + body)
            found.append(answers.read(int.from_bytes(answers.read(4), "big")))
        return found


def test_a_profile_is_served_and_its_durability_said_in_one_line(tmp_path: Path) -> None:
    arguments = ("--profile", "cursus-document", "--log-format", "json")
    with served(tmp_path, *arguments) as server:
        direct = b"\0\x01thello"
        asked = (b"CREATE t 1", direct, direct, b"METADATA topic=t")
        answers = ask_cursus(server.ports["cursus"], *asked)
        assert answers[:3] == [b"OK topic=t partitions=1", b"OK", b"OK"]
        assert b"dedupe" not in answers[3]
        assert ask_cursus(server.ports["cursus"], b"CONSUME t 0 0") == [b"hello"]
        assert ask_cursus(server.ports["cursus"], b"CONSUME t 0 1") == [b""]
        assert server.stop() == 0
        assert server.process.stderr is not None
        lines = [orjson.loads(line) for line in server.process.stderr.read().splitlines()]
    (line,) = [line for line in lines if "profile" in line]
    assert line["event"] == "acknowledged records may be lost in a power cut"
    assert (line["profile"], line["durability"]) == ("cursus-document", "interval")
    assert line["synced"] == "every 500 records or 100 ms"


def leave_damage(directory: Path) -> Path:
    """Damages the second of three batches that a server wrote; returns the segment."""
    with served(directory) as server:
        for value in (b"first", b"second", b"third"):
            assert server.ask_v1(b"V1|1|PRODUCE|t k:%b\n" % value).startswith(b"V1|1|OK|")
        assert server.stop() == 0
    (segment,) = [
        path
        for path in (directory / "data/topics").rglob("*.log")
        if b"second" in path.read_bytes()
    ]
    segment.write_bytes(segment.read_bytes().replace(b"second", b"sEcond"))
    return segment


def test_verify_names_damage_with_file_and_offsets_and_serves_all_the_same(tmp_path: Path) -> None:
    segment = leave_damage(tmp_path)
    with served(
        tmp_path, "--verify", "--log-format", "json", "--set", "storage.scrub_bytes_per_s=0"
    ) as server:
        answers = [server.ask_v1(b"V1|2|CONSUME|t %d 0\n" % partition) for partition in range(3)]
        assert server.stop() == 0
        assert server.process.stderr is not None
        lines = [orjson.loads(line) for line in server.process.stderr.read().splitlines()]
    assert any(b"first" in answer for answer in answers)
    assert not any(b"sEcond" in answer for answer in answers)
    (damage,) = [line for line in lines if line["event"] == "damage"]
    assert damage["level"] == "error"
    assert "offsets 1 to 1" in damage["what"]
    assert segment.name in damage["what"]
    (summary,) = [line for line in lines if line["event"] == "log verified"]
    assert (summary["records"], summary["damaged"]) == (2, 1)


def test_the_scrub_logs_damage_while_it_serves(tmp_path: Path) -> None:
    leave_damage(tmp_path)
    with served(tmp_path, "--log-format", "json") as server:
        stderr = server.process.stderr
        assert stderr is not None
        line = next(line for line in stderr if '"damage"' in line)
        assert server.stop() == 0
    assert "offsets 1 to 1" in orjson.loads(line)["what"]


def test_variables_are_read(tmp_path: Path) -> None:
    ended = subprocess.run(
        SERVE,
        cwd=tmp_path,
        env={**os.environ, "DRAGOMAN_LISTENERS__V1__HOST": "0.0.0.0"},
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 1
    assert "listeners.v1.host: 0.0.0.0" in ended.stderr
