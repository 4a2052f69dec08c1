"""The end-to-end tests of the Cursus broker of December 2025 against the real server.

They are those that the published Go module `github.com/downfa11-org/go-broker` v0.1.0 carries,
compiled unchanged: `make interop-build` needs Go and makes them. They talk to `localhost:9000` and
wait for `localhost:9080/health`, so the server gets both within a network of its own.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.interop

BUILT = Path(__file__).parents[2] / ".interop" / "cursus_e2e" / "cursus-e2e.test"
LOOPBACK_UP = Path(__file__).parent / "drivers" / "loopback_up.py"
OWN_NETWORK = ("unshare", "--map-root-user", "--net", "--")
PORTS = (9000, 9080)
TESTS = {
    "TestBasicPubSub",
    "TestConfigValidation",
    "TestConsumerGroupJoin",
    "TestConsumerHeartbeat",
    "TestConsumerOffsetCommit",
    "TestDefaultGroupOffsetSharing",
    "TestExactlyOnceSemantics",
    "TestIdempotentProducer",
    "TestMultiPartition",
    "TestMultipleTopicConsumption",
    "TestPublisherAcks",
    "TestPublisherConfigOptions",
    "TestPublisherRetryLogic",
    "TestRegexPatternConsumption",
    "TestRegexPatternWithQuestionMark",
    "TestWithCustomConsumerGroup",
    "TestWithDefaultConsumerGroup",
}
SUITE_TIMEOUT_S = 180
"""The suite sleeps for about 50 s by itself."""


def can_have_own_network() -> bool:
    """Whether this user may make a network namespace."""
    try:
        return (
            subprocess.run([*OWN_NETWORK, "true"], capture_output=True, check=False).returncode == 0
        )
    except FileNotFoundError:
        return False


def taken(ports: Sequence[int]) -> list[int]:
    """Those that somebody listens on already."""
    found = []
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                found.append(port)
    return found


@pytest.fixture
def entered(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """A running server on the two ports; how a command gets to where they are."""
    if not BUILT.exists():
        pytest.skip("the Go suite is not built: make interop-build")
    flags = ["--set=listeners.cursus.legacy_replies=true"]
    launcher: tuple[str, ...] = ()
    if can_have_own_network():
        launcher = (*OWN_NETWORK, sys.executable, str(LOOPBACK_UP))
    else:
        if busy := taken(PORTS):
            pytest.skip(f"no network of its own, and ports {busy} are taken")
        flags += [f"--set=listeners.{name}.port=0" for name in ("v1", "iggy", "rustlog")]
    server = Server(tmp_path / "data", *flags, launcher=launcher).start(same_ports=True)
    try:
        assert server.ports["cursus"] == PORTS[0]
        enter = ("nsenter", f"--target={server.pid}", "--user", "--preserve-credentials", "--net")
        yield (*enter, "--") if launcher else ()
        assert server.stop() == 0
    finally:
        server.kill()


@pytest.mark.timeout(SUITE_TIMEOUT_S + 30)
def test_all_seventeen_tests_of_the_december_broker_pass(
    entered: tuple[str, ...], tmp_path: Path
) -> None:
    done = subprocess.run(
        [*entered, str(BUILT), "-test.v", "-test.failfast", f"-test.timeout={SUITE_TIMEOUT_S}s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SUITE_TIMEOUT_S + 10,
        check=False,
    )
    verdicts = {
        name: verdict
        for verdict, name in re.findall(r"^--- (PASS|FAIL|SKIP): (\w+)", done.stdout, re.MULTILINE)
    }
    assert verdicts == dict.fromkeys(TESTS, "PASS"), done.stdout[-6000:]
    assert done.returncode == 0
