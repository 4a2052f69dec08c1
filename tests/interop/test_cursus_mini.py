"""The Go and the Java client of Cursus, which no registry has, replayed against the real server.

What they send and how they read replies is in `mini/`. They need no network, so they are part of
every run, but for the test that waits until a dead member's session ends.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from interop.mini.cursus_go import GoConsumer, GoProducer
from interop.mini.cursus_java import JavaConsumer, JavaProducer, key_partition
from interop.mini.cursus_wire import Wire, envelope
from interop.topic_reading import OTHERS, PARTITIONS, check_whole, read_all, write
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Consumer = GoConsumer | JavaConsumer
    Joining = Callable[[Server, str], Consumer]

RECORDS = 10_000
BATCH = 100


def place(server: Server) -> tuple[str, int]:
    return "127.0.0.1", server.ports["cursus"]


JOINING: dict[str, Joining] = {
    "go-polling": lambda server, topic: GoConsumer(place(server), topic, "readers"),
    "go-streaming": lambda server, topic: GoConsumer(
        place(server), topic, "readers", streaming=True
    ),
    "java-0.1.0-polling": lambda server, topic: JavaConsumer(place(server), topic, "readers"),
    "java-0.1.0-streaming": lambda server, topic: JavaConsumer(
        place(server), topic, "readers", streaming=True
    ),
    "java-0.1.1-polling": lambda server, topic: JavaConsumer(
        place(server), topic, "readers", version="0.1.1"
    ),
    "java-0.1.1-streaming": lambda server, topic: JavaConsumer(
        place(server), topic, "readers", version="0.1.1", streaming=True
    ),
}
"""How each kind of consumer joins the one group of a topic."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cursus-mini") / "data") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="module")
def older_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One whose replies are those that clients from April to July 2026 read."""
    folder = tmp_path_factory.mktemp("cursus-mini-older") / "data"
    older = [f"--set=listeners.cursus.{key}" for key in ("legacy_replies=true", "reply_layout=l3")]
    with Server(folder, *older) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """One for each test, named after it."""
    name: str = request.node.name
    return "".join(c if c.isalnum() or c in "-._" else "." for c in name)[-120:]


def batches(size: int = BATCH) -> Iterator[tuple[int, list[bytes]]]:
    """The partitions in turn, each with the next values."""
    for turn, at in enumerate(range(0, RECORDS, size)):
        yield turn % PARTITIONS, [b"value-%d" % n for n in range(at, at + size)]


def wait_until_visible(server: Server, topic: str, size: int = BATCH) -> None:
    """Until the last of `batches` can be read in every partition, whoever heard of its ACK."""
    counts = [0] * PARTITIONS
    for partition, values in batches(size):
        counts[partition] += len(values)
    with Wire(place(server), 10) as wire:
        for partition, count in enumerate(counts):
            asked = f"CONSUME topic={topic} partition={partition} offset={count - 1} member=m"
            wire.send(envelope(f"{asked} wait_ms=9000 batch=1"))
            assert wire.receive()


def check_everywhere(server: Server, topic: str) -> None:
    """All values once, the same in every dialect."""
    found = read_all(server, "cursus", topic)
    check_whole(found, "value-", RECORDS)
    for dialect in OTHERS:
        assert read_all(server, dialect, topic) == found


def play(consumers: Sequence[Consumer], until: Callable[[], bool], patience_s: float = 15) -> None:
    """Lets each beat, read and commit in turn until it is so."""
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        for consumer in consumers:
            consumer.beat()
            consumer.poll()
            consumer.commit()
        if until():
            return
    states = [(c.joins, c.generation, [*c.positions], len(c.heard)) for c in consumers]
    raise AssertionError(f"still not so; joins, generation, partitions, heard: {states}")


def heard_by(consumers: Sequence[Consumer]) -> int:
    return sum(len(consumer.heard) for consumer in consumers)


def check_heard(consumers: Sequence[Consumer], prefixes: Sequence[str], count: int) -> None:
    """Each value of each prefix once, in its partition's order for whoever heard it."""
    values = [m.payload.decode() for consumer in consumers for _, m in consumer.heard]
    assert sorted(values) == sorted(f"{p}{n}" for p in prefixes for n in range(count))
    for consumer in consumers:
        for partition in range(PARTITIONS):
            offsets = [m.offset for where, m in consumer.heard if where == partition]
            assert offsets == sorted(offsets)


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_what_the_go_client_sends_is_kept_once_and_in_order(
    server: Server, topic: str, acks: str, idempotent: bool, older: bool
) -> None:
    asked = {"acks": acks, "idempotent": idempotent, "older": older}
    with GoProducer(place(server), topic, PARTITIONS, **asked) as producer:
        for partition, values in batches():
            producer.send(partition, values)
        wait_until_visible(server, topic)
    assert {ack["producer_epoch"] for ack in producer.acks_seen} <= {producer.epoch}
    assert len(producer.acks_seen) == (0 if acks == "0" else RECORDS // BATCH)
    check_everywhere(server, topic)


def test_a_go_client_that_takes_late_acks_for_the_next_batchs_loses_and_doubles_nothing(
    server: Server, topic: str
) -> None:
    with GoProducer(place(server), topic, PARTITIONS, idempotent=True) as producer:
        for turn, (partition, values) in enumerate(batches()):
            producer.send(partition, values, ack_timeout_s=0 if turn % 7 == 3 else 5)
        wait_until_visible(server, topic)
    assert producer.late
    check_everywhere(server, topic)


def test_a_go_client_that_never_reads_its_acks_is_not_held_up(server: Server, topic: str) -> None:
    with GoProducer(place(server), topic, PARTITIONS, acks="0") as producer:
        for partition, values in batches(size=1):
            producer.send(partition, values)
        wait_until_visible(server, topic, size=1)
    check_everywhere(server, topic)


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_what_the_java_client_sends_five_at_a_time_is_kept_once_and_in_order(
    server: Server, topic: str, acks: str
) -> None:
    with JavaProducer(place(server), topic, PARTITIONS, acks=acks) as producer:
        for partition, values in batches():
            producer.send(partition, [(b"", value) for value in values])
        producer.flush()
        wait_until_visible(server, topic)
    assert producer.dropped == 0
    if acks != "0":
        for offsets in producer.last_offsets:
            assert offsets == [*range(BATCH - 1, BATCH * len(offsets), BATCH)]
    check_everywhere(server, topic)


def test_the_java_clients_key_decides_the_partition(server: Server, topic: str) -> None:
    keys = [b"key-%d" % n for n in range(50)]
    with JavaProducer(place(server), topic, PARTITIONS) as producer:
        for key in keys:
            producer.send(key_partition(key, PARTITIONS), [(key, b"of-" + key)])
        producer.flush()
    found = {value: partition for partition, _, value in read_all(server, "iggy", topic)}
    assert found == {f"of-{k.decode()}": key_partition(k, PARTITIONS) for k in keys}


@pytest.mark.parametrize("writer", ["cursus", *OTHERS])
@pytest.mark.parametrize("kind", JOINING)
def test_the_consumer_reads_what_any_dialect_wrote_and_goes_on_where_it_committed(
    server: Server, topic: str, kind: str, writer: str
) -> None:
    JavaProducer(place(server), topic, PARTITIONS).__exit__()
    write(server, writer, topic, [b"value-%d" % n for n in range(RECORDS)])
    join = JOINING[kind]
    with join(server, topic) as first:
        play([first], lambda: len(first.heard) >= RECORDS)
    check_heard([first], ["value-"], RECORDS)
    write(server, writer, topic, [b"later-%d" % n for n in range(90)])
    with join(server, topic) as second:
        play([second], lambda: len(second.heard) >= 90)
    check_heard([second], ["later-"], 90)


def test_the_java_client_that_streams_again_on_its_connection_hears_nothing_twice(
    server: Server, topic: str
) -> None:
    JavaProducer(place(server), topic, PARTITIONS).__exit__()
    with JavaConsumer(place(server), topic, "readers", streaming=True) as consumer:
        write(server, "rustlog", topic, [b"before-%d" % n for n in range(RECORDS)])
        play([consumer], lambda: len(consumer.heard) >= RECORDS)
        for partition in consumer.positions:
            consumer.stream(partition)
        write(server, "v1", topic, [b"after-%d" % n for n in range(RECORDS)])
        play([consumer], lambda: len(consumer.heard) >= 2 * RECORDS)
    check_heard([consumer], ["before-", "after-"], RECORDS)


def test_clients_before_july_2026_read_bare_numbers(older_server: Server, topic: str) -> None:
    with GoProducer(place(older_server), topic, PARTITIONS, older=True) as producer:
        for partition, values in batches():
            producer.send(partition, values)
    with GoConsumer(place(older_server), topic, "readers", older=True) as first:
        play([first], lambda: len(first.heard) >= RECORDS)
    check_heard([first], ["value-"], RECORDS)
    with GoConsumer(place(older_server), topic, "readers", older=True) as second:
        assert sum(second.positions.values()) == RECORDS
        assert second.poll() == 0


@pytest.mark.parametrize("kind", JOINING)
def test_the_consumer_survives_a_second_member_that_joins_and_leaves(
    server: Server, topic: str, kind: str
) -> None:
    share = RECORDS // 4
    JavaProducer(place(server), topic, PARTITIONS).__exit__()
    first = JOINING[kind](server, topic)
    with first:
        write(server, "rustlog", topic, [b"alone-%d" % n for n in range(share)])
        play([first], lambda: len(first.heard) >= share)
        with JOINING[kind](server, topic) as second:
            both = [first, second]
            play(both, lambda: len(first.positions) + len(second.positions) == PARTITIONS)
            assert not first.positions.keys() & second.positions.keys()
            write(server, "v1", topic, [b"together-%d" % n for n in range(share)])
            play(both, lambda: heard_by(both) >= 2 * share)
        write(server, "iggy", topic, [b"again-%d" % n for n in range(share)])
        play([first], lambda: heard_by(both) >= 3 * share)
        assert len(first.positions) == PARTITIONS
    check_heard(both, ["alone-", "together-", "again-"], share)


@pytest.mark.interop
def test_every_kind_of_consumer_survives_a_member_that_dies(server: Server) -> None:
    with ExitStack() as stack:
        groups = []
        for kind, join in JOINING.items():
            topic = f"died-{kind}"
            JavaProducer(place(server), topic, PARTITIONS).__exit__()
            groups.append((topic, stack.enter_context(join(server, topic)), join(server, topic)))
        alive = [first for _, first, _ in groups]
        dying = [second for *_, second in groups]
        everybody = alive + dying
        play(
            everybody,
            lambda: all(len(a.positions) + len(b.positions) == PARTITIONS for _, a, b in groups),
        )
        for topic, *_ in groups:
            write(server, "rustlog", topic, [b"together-%d" % n for n in range(RECORDS)])
        play(everybody, lambda: heard_by(everybody) >= RECORDS * len(groups))
        for second in dying:
            second.die()
        for topic, *_ in groups:
            write(server, "iggy", topic, [b"alone-%d" % n for n in range(RECORDS)])
        total = 2 * RECORDS * len(groups)
        play(alive, lambda: heard_by(everybody) >= total, 40)
        for _, *members in groups:
            check_heard(members, ["together-", "alone-"], RECORDS)
