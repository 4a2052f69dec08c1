"""A real server under attack over real sockets: it stays up, small and honest.

One server takes everything in this file, attack after attack; in the end it has to serve honest
clients of every dialect, stop in order, and have told of no fault. `FUZZ_LIVE_INPUTS` is how many
mutated inputs each dialect gets.
"""

from __future__ import annotations

import contextlib
import gzip
import random
import re
import socket
import ssl
import threading
import time
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.clients.sync import connect
from dragoman.codecs.registry import dialect
from dragoman.core import calls
from support.cursus import batch, framed, message
from support.effort import effort
from support.iggy import frame as iggy_frame
from support.mutation import DIALECTS, corpus, mutated
from support.prey import WAIT_S, Prey, many, receive_all, reset
from support.wellformed import REPLIES

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
BINARY = ("cursus", "iggy", "rustlog")
FRAME_BYTES_MAX = {name: dialect(name).limits.frame_bytes_max for name in DIALECTS}
INPUTS = effort("FUZZ_LIVE_INPUTS", 750)
GROWTH_BYTES_MAX = 64 * MIB
TLS = Path(__file__).parent.parent / "support"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def prey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prey]:
    """The server of this file; how it ends is the last assertion."""
    with Prey(tmp_path_factory.mktemp("prey") / "data") as server:
        yield server
        for name in DIALECTS:
            assert_serves(server, name)
        assert server.stop() == 0, server.tail()
        server.assert_unharmed()


def assert_serves(prey: Prey, name: str) -> None:
    """An honest client writes a record and reads it back."""
    topic = f"honest-{time.monotonic_ns()}"
    with connect(name, port=prey.ports[name]) as client:
        if name != "v1":
            client.create_topic(topic, partitions=1)
        (produced,) = client.produce(topic, [b"value"])
        read = client.fetch(topic, max(produced.partition, 0))
    assert [record.value for record in read] == [b"value"]


def first_of(name: str) -> bytes:
    """A small valid request."""
    return min([frame for frame in corpus(name) if len(frame) > 6], key=len)


def client_hello() -> bytes:
    """What a TLS client says first."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="a")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def header(name: str, length: int) -> bytes:
    """The beginning of a frame that says it is so long."""
    return length.to_bytes(4, "little" if name == "iggy" else "big")


# ---------------------------------------------------------------- strangers

STRANGERS = {
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS handshake": client_hello(),
    "an SSH banner": b"SSH-2.0-OpenSSH_9.6\r\n",
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_another_protocol_gets_a_reply_or_a_close_and_is_named(
    prey: Prey, name: str, stranger: str
) -> None:
    seen = len(prey.log_lines())
    with prey.dial(name) as made:
        made.sendall(STRANGERS[stranger])
        REPLIES[name](receive_all(made))
    prey.wait_for("the log line", lambda: len(prey.log_lines()) > seen)
    line = prey.log_lines()[seen]
    assert (line["event"], line["dialect"], line["looks_like"]) == ("refused", name, stranger)


@pytest.mark.parametrize(("name", "other"), [*permutations(DIALECTS, 2)])
def test_a_client_at_another_dialects_port_is_refused_in_that_dialect(
    prey: Prey, name: str, other: str
) -> None:
    seen = len(prey.log_lines())
    REPLIES[name](prey.provoke(name, first_of(other) * 3))
    prey.wait_for("the log line", lambda: len(prey.log_lines()) > seen)
    line = prey.log_lines()[seen]
    assert (line["event"], line["dialect"]) == ("refused", name)


@pytest.mark.parametrize("name", DIALECTS)
def test_garbage_is_refused(prey: Prey, name: str) -> None:
    dice = random.Random(name)
    for _ in range(100):
        REPLIES[name](prey.provoke(name, dice.randbytes(dice.randrange(1, 3000))))
    assert_serves(prey, name)


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", BINARY)
def test_a_frame_above_the_limit_is_refused_at_its_header(prey: Prey, name: str) -> None:
    with prey.dial(name) as made:
        made.sendall(header(name, FRAME_BYTES_MAX[name] + 1))
        heard = receive_all(made)
    assert REPLIES[name](heard) == (0 if name == "iggy" else 1)


def test_a_line_above_the_limit_is_refused_before_its_end(prey: Prey) -> None:
    with prey.dial("v1") as made:
        made.sendall(b"V1|1|PRODUCE|t k:" + b"x" * FRAME_BYTES_MAX["v1"])
        assert receive_all(made) == b"V1|0|ERR|BAD_REQUEST|line too long\n"


def test_who_only_announces_gets_no_memory(prey: Prey) -> None:
    before = prey.rss()
    with contextlib.ExitStack() as stack:
        for name in BINARY:
            for made in stack.enter_context(many(prey, name, 100)):
                made.sendall(header(name, min(60 * MIB, FRAME_BYTES_MAX[name])) + bytes(8))
        for made in stack.enter_context(many(prey, "v1", 100)):
            made.sendall(b"V1|1|PRODUCE|t k:")
        for name in DIALECTS:
            assert_serves(prey, name)
        growth = prey.rss() - before
    print(f"400 connections that announce up to 60 MiB each: {growth / MIB:.1f} MiB")
    assert growth < GROWTH_BYTES_MAX


def test_who_trickles_a_large_frame_costs_what_it_sent(prey: Prey) -> None:
    before = prey.rss()
    with contextlib.ExitStack() as stack:
        trickling = [
            (made, header(name, FRAME_BYTES_MAX[name]))
            for name in BINARY
            for made in stack.enter_context(many(prey, name, 10))
        ]
        for made, start in trickling:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.sendall(start)
        for _ in range(300):
            for made, _start in trickling:
                made.sendall(b"\x64\0")
        growth = prey.rss() - before
    print(f"30 connections that trickle 600 bytes each: {growth / MIB:.1f} MiB")
    assert growth < 8 * MIB


def bomb(size: int) -> bytes:
    """Zeros, a thousandth of their size."""
    return gzip.compress(bytes(size), 9)


BOMBS = {
    "64 MiB of zeros": bomb(64 * MIB),
    "a size that lies": bomb(64 * MIB)[:-4] + (4096).to_bytes(4, "little"),
    "a gzip in a gzip": gzip.compress(bomb(64 * MIB)),
    "many members": bomb(MIB) * 64,
    "cut off": bomb(64 * MIB)[:-100] + (4096).to_bytes(4, "little"),
    "a batch of zeros": gzip.compress(batch([message(payload=bytes(60 * MIB))]), 9),
    "no end": b"\x1f\x8b\x08" + bytes(100_000),
}


def test_what_is_packed_too_tightly_is_not_unpacked(prey: Prey) -> None:
    prey.forget_peak()
    before = prey.rss()
    for name, packed in BOMBS.items():
        heard = prey.provoke("cursus", framed(packed) * 4)
        assert REPLIES["cursus"](heard) >= 1, name
        assert b"ERROR" in heard, name
    growth = prey.peak_rss() - before
    print(f"gzip bombs: peak {growth / MIB:.1f} MiB")
    assert growth < 64 * MIB + 16 * MIB
    assert_serves(prey, "cursus")


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize("name", DIALECTS)
def test_a_reset_at_any_point_of_a_pipeline_harms_nobody(prey: Prey, name: str) -> None:
    dice = random.Random(f"reset {name}")
    for _ in range(60):
        data = b"".join(dice.choices(corpus(name), k=200))
        made = prey.dial(name)
        with contextlib.suppress(OSError):
            made.sendall(data[: dice.randrange(len(data))])
            if dice.random() < 0.5:
                made.recv(dice.randrange(1, 4000))
        reset(made)
    assert_serves(prey, name)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_owed_comes_after_a_half_close(prey: Prey, name: str) -> None:
    topic = f"half-{name}"
    with connect(name, port=prey.ports[name]) as client:
        if name != "v1":
            client.create_topic(topic, partitions=1)
        client.produce(topic, [b"x"])
    speaker = dialect(name).speaker()
    asked = b"".join(
        [b"".join(map(bytes, speaker.ask(calls.Fetch(topic, 0, 0)))) for _ in range(1000)]
    )
    told = speaker.receive(prey.provoke(name, asked))
    assert len(told) == 1000
    assert all(isinstance(reply, calls.Fetched) for reply, _ in told)


def test_who_opens_and_vanishes_leaves_nothing(prey: Prey) -> None:
    dice = random.Random("vanish")
    prey.provoke("cursus", framed("CREATE vanish 1"))
    prey.wait_for("the ends of other tests", lambda: is_at_rest(prey))
    before = prey.sockets()
    for index in range(200):
        name = DIALECTS[index % 4]
        made = prey.dial(name)
        frame = dice.choice(corpus(name))
        asked = (b"", frame, frame[: len(frame) // 2], frame * 50)[dice.randrange(4)]
        if name == "cursus" and dice.random() < 0.5:
            asked = framed("STREAM topic=vanish partition=0 offset=0") + framed(
                "CONSUME topic=vanish partition=0 offset=0 wait_ms=1500"
            )
        made.sendall(asked)
        if index % 3:
            reset(made)
        else:
            made.close()
    prey.wait_for("the last close", lambda: prey.sockets() <= before and is_at_rest(prey))


def test_who_vanishes_while_a_thread_reads_its_request_leaves_nothing(prey: Prey) -> None:
    dice = random.Random("threads")
    prey.provoke("cursus", framed("CREATE large 1"))
    values = b",".join([b"[" + b",".join([b"120"] * 100) + b"]"] * 2000)
    large = {
        "rustlog": framed(b'{"Produce":{"topic":"large","partition":0,"records":[%b]}}' % values),
        "cursus": framed(gzip.compress(batch([message(payload=bytes(700_000))], topic=b"large"))),
        "v1": b"V1|1|PRODUCE|large k:" + b"x" * 700_000 + b"\n",
        "iggy": iggy_frame(101, bytes(700_000)),
    }
    prey.wait_for("the ends of other tests", lambda: is_at_rest(prey))
    before = prey.sockets()
    for index in range(40):
        name = DIALECTS[index % 4]
        made = prey.dial(name)
        made.sendall(large[name] * dice.choice((1, 2)) + large[name][: dice.randrange(5000)])
        if dice.random() < 0.5:
            reset(made)
        else:
            made.close()
    prey.wait_for("the last close", lambda: prey.sockets() <= before and is_at_rest(prey))


def is_at_rest(prey: Prey) -> bool:
    """Whether the server has no client but who asks this, and nobody waits for anything."""
    figures = statistics(prey)
    owed = figures["waiting"] + figures["followers"] + figures["long_polls"]
    return (figures["clients"], owed) == (1, 0)


def statistics(prey: Prey) -> dict[str, float]:
    """The server's figures, as RustLog clients can ask for them."""
    heard = prey.provoke("rustlog", framed(b"\x09"))[9:].decode()
    return {
        name: float(value) for name, value in re.findall(r"^dragoman_(\w+) (\S+)$", heard, re.M)
    }


# ---------------------------------------------------------------- slow readers


@pytest.fixture(scope="module")
def bulk(prey: Prey) -> str:
    """A topic with 24 MiB, read once in every dialect so that what is kept is there already."""
    with connect("cursus", port=prey.ports["cursus"]) as client:
        client.create_topic("bulk", partitions=1)
        for _ in range(24):
            client.produce(
                "bulk", [bytes([65 + number % 26]) * 8192 for number in range(128)], partition=0
            )
    for name in DIALECTS:
        with connect(name, port=prey.ports[name]) as client:
            at = 0
            while read := client.fetch("bulk", 0, at):
                at = read[-1].offset + 1
    return "bulk"


@pytest.mark.parametrize("name", [*DIALECTS, "stream"])
def test_a_reader_that_takes_nothing_holds_up_nobody_and_nothing(
    prey: Prey, bulk: str, name: str
) -> None:
    spoken = "cursus" if name == "stream" else name
    speaker = dialect(spoken).speaker()
    if name == "stream":
        asked = b"".join(map(bytes, speaker.ask(calls.Follow(bulk, 0, 0))))
    else:
        one = b"".join(map(bytes, speaker.ask(calls.Fetch(bulk, 0, 0, bytes_max=4 * MIB))))
        asked = one * 500
    before = prey.rss()
    slowest = 0.0
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            made = stack.enter_context(prey.dial(spoken, receive_bytes=4096))
            made.sendall(asked)
        with connect("iggy", port=prey.ports["iggy"]) as other:
            for _ in range(200):
                began = time.monotonic()
                other.ask(calls.Ping())
                slowest = max(slowest, time.monotonic() - began)
        growth = prey.rss() - before
    print(f"8 {name} readers that take nothing: {growth / MIB:.1f} MiB, {slowest * 1000:.1f} ms")
    assert growth < GROWTH_BYTES_MAX
    assert_serves(prey, spoken)


def test_a_follower_that_reads_gets_everything_beside_one_that_does_not(
    prey: Prey, bulk: str
) -> None:
    asked = b"".join(map(bytes, dialect("cursus").speaker().ask(calls.Follow(bulk, 0, 0))))
    with prey.dial("cursus", receive_bytes=4096) as lazy:
        lazy.sendall(asked)
        with connect("cursus", port=prey.ports["cursus"]) as client:
            count = 0
            for pushed in client.follow(bulk, 0, 0):
                count += sum(piece.last - piece.first for piece in pushed.slices)
                if count >= 24 * 128:
                    break
        assert count == 24 * 128


# ---------------------------------------------------------------- floods

FLOODS = {
    "cursus": framed("LIST"),
    "v1": b"V1|1|OFFSET|g t 0\n",
    "iggy": iggy_frame(1),
    "rustlog": framed('"Ping"'),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_who_asks_without_end_does_not_hold_up_the_others(prey: Prey, name: str) -> None:
    data = FLOODS[name] * 20_000
    stop = threading.Event()

    def flood(made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not stop.is_set():
                made.sendall(data)

    def swallow(made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while made.recv(1 << 20):
                pass

    waits = []
    with prey.dial(name) as made:
        threads = [threading.Thread(target=each, args=(made,)) for each in (flood, swallow)]
        for thread in threads:
            thread.start()
        with connect("iggy", port=prey.ports["iggy"]) as other:
            for _ in range(40):
                began = time.monotonic()
                other.ask(calls.Ping())
                waits.append(time.monotonic() - began)
        stop.set()
        made.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
    print(f"others beside a flood of {name}: at most {max(waits) * 1000:.1f} ms")


# ---------------------------------------------------------------- mutated requests


@pytest.mark.parametrize("name", DIALECTS)
def test_mutated_requests_leave_the_server_serving(prey: Prey, name: str) -> None:
    dice = random.Random(f"live {name}")
    for _ in range(INPUTS // 5):
        data = b"".join([mutated(name, dice)[0] for _ in range(dice.choice((1, 1, 3, 15)))])
        with prey.dial(name) as made:
            with contextlib.suppress(OSError):
                made.sendall(data)
            if dice.random() < 0.3:
                made.shutdown(socket.SHUT_WR)
                made.settimeout(0.05)
                with contextlib.suppress(OSError):
                    made.recv(1 << 16)
    assert_serves(prey, name)


# ---------------------------------------------------------------- another server, with limits


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Prey]:
    """A server with few connections, a TLS listener, and a short drain."""
    settings = {
        "listeners.v1.connections_max": "20",
        "listeners.rustlog.tls_cert": str(TLS / "localhost.cert.pem"),
        "listeners.rustlog.tls_key": str(TLS / "localhost.key.pem"),
        "drain_timeout": "1s",
    }
    flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
    with Prey(tmp_path / "data", *flags) as server:
        yield server


def test_at_the_limit_accepting_pauses_and_goes_on(limited: Prey) -> None:
    asked = b"V1|1|OFFSET|g t 0\n"
    answer = b"V1|1|OK|offset=0\n"
    with many(limited, "v1", 20) as inside:
        for made in inside:
            made.sendall(asked)
            assert made.recv(100) == answer
        with many(limited, "v1", 5) as outside:
            for made in outside:
                made.sendall(asked)
            limited.wait_for("the pause", lambda: "accepting pauses" in limited.tail())
            outside[0].settimeout(0.1)
            with pytest.raises(TimeoutError):
                outside[0].recv(100)
            assert_serves(limited, "cursus")
            for made in inside:
                made.close()
            for made in outside:
                made.settimeout(WAIT_S)
                assert made.recv(100) == answer
    assert "accepting again" in limited.log.read_text()
    assert limited.stop() == 0
    limited.assert_unharmed()


def test_a_tls_port_survives_what_is_not_tls(limited: Prey) -> None:
    before = limited.sockets()
    hello = client_hello()
    context = ssl.create_default_context(cafile=str(TLS / "localhost.cert.pem"))
    dice = random.Random("tls")
    for index in range(60):
        made = limited.dial("rustlog")
        match index % 5:
            case 0:
                made.sendall(dice.randbytes(500))
            case 1:
                made.sendall(hello[: dice.randrange(len(hello))])
            case 2:
                made.sendall(framed(b"\xff"))
            case 3:
                made.sendall(hello)
                made.recv(100)
            case _:
                made = context.wrap_socket(made, server_hostname="localhost")
                made.sendall(header("rustlog", FRAME_BYTES_MAX["rustlog"]) + bytes(100))
        reset(made)
    limited.wait_for("the last close", lambda: limited.sockets() <= before)
    plain = limited.dial("rustlog")
    with context.wrap_socket(plain, server_hostname="localhost") as made:
        made.sendall(framed(b"\xff") * 1000)
        heard = b""
        while len(heard) < 5000:
            heard += made.recv(1 << 16)
    assert heard == framed(b"\xff") * 1000
    assert limited.stop() == 0
    limited.assert_unharmed()


def test_a_stop_waits_neither_for_followers_nor_for_who_takes_nothing(limited: Prey) -> None:
    with connect("cursus", port=limited.ports["cursus"]) as client:
        client.create_topic("t", partitions=1)
        for _ in range(8):
            client.produce("t", [bytes(8192)] * 128, partition=0)
    stream = framed("STREAM topic=t partition=0 offset=0")
    poll = framed("CONSUME topic=t partition=0 offset=1024 wait_ms=60000")
    with contextlib.ExitStack() as stack:
        lazy = stack.enter_context(limited.dial("cursus", receive_bytes=4096))
        lazy.sendall(framed("CONSUME topic=t partition=0 offset=0") * 50)
        following = stack.enter_context(limited.dial("cursus"))
        following.sendall(stream)
        assert following.recv(100)
        polling = stack.enter_context(limited.dial("cursus"))
        polling.sendall(poll + framed("LIST"))
        half = stack.enter_context(limited.dial("cursus"))
        half.sendall(stream[:9])
        began = time.monotonic()
        assert limited.stop() == 0, limited.tail()
        took = time.monotonic() - began
    print(f"a stop with 4 stuck clients took {took:.1f} s")
    limited.assert_unharmed()


# ---------------------------------------------------------------- what peers would write in the log

FORGERIES = (
    "\n2024-01-01T00:00:00Z [error    ] forged",
    "\r\x1b[2K\x1b[31mforged\x1b[0m",
    "\x00\x07\x08\x7f\x9b31m",
    "\u2028forged\u2029forged\u0085forged",
    "\u202eforged\u2066forged\u200fforged",
    "\ud800forged",
    '", "level": "error", "event": "forged',
)


@pytest.mark.parametrize("form", ["console", "json", "logfmt"])
def test_no_peer_writes_into_the_log(tmp_path: Path, form: str) -> None:
    with Prey(tmp_path / "data", "--log-format", form) as server:
        for text in FORGERIES:
            forged = text.encode("utf-8", "surrogatepass")
            for data in cursus_forgeries(forged):
                server.provoke("cursus", framed(data))
            for data in (
                b"V1|%b|LIST|\n",
                b"%b|1|PRODUCE|t k:v\n",
                b"V1|1|%b|t k:v\n",
                b"V1|1|PRODUCE|%b k:v\n",
            ):
                server.provoke("v1", data % forged)
            name = forged[:200]
            server.provoke(
                "iggy",
                header("iggy", 9 + len(name))
                + header("iggy", 202)
                + bytes((1, 0, 0, 0, len(name)))
                + name,
            )
            server.provoke(
                "rustlog", framed(b"\x05" + len(name).to_bytes(2, "big") + name + bytes(4))
            )
            for data in (
                b'{"%b":{}}',
                b'"%b"',
                b'{"Produce":{"%b":1}}',
                b'{"CreateTopic":{"topic":"%b","partition_count":1}}',
            ):
                server.provoke("rustlog", framed(data % forged))
                server.provoke(
                    "rustlog", framed(data % repr(text)[1:-1].replace("\\x", "\\u00").encode())
                )
        assert server.stop() == 0
        server.assert_unharmed()
        lines = server.log.read_text().splitlines()
    begins = {"console": r"20\d\d-", "json": r"\{", "logfmt": r"timestamp=20"}[form]
    assert lines
    for line in lines:
        assert re.match(begins, line), line
        assert not re.match(r"2024-01-01", line), line


def cursus_forgeries(forged: bytes) -> list[bytes]:
    return [
        b"CREATE topic=%b partitions=1" % forged,
        b"CREATE %b 1" % forged,
        b"PUBLISH topic=t acks=%b producerId=p message=x" % forged,
        b"CONSUME topic=t partition=0 autoOffsetReset=%b" % forged,
        b"JOIN_GROUP topic=t group=%b member=%b" % (forged, forged),
        b"%b" % forged,
        batch([message()], topic=forged),
        batch([message(producer_id=forged)], acks=forged[:200]),
        b"\x1f\x8b\x08" + forged * 10,
    ]
