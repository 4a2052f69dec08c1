"""A producer against servers that play a script: what it sends again, to whom, and what it does
not."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from dragoman.clients.error import ConnectionLost, RequestRefused, Unreachable
from dragoman.clients.plan import Retry
from dragoman.clients.producer import connect_producer, open_producer
from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable
from dragoman.codecs.cursus import wire
from dragoman.core.calls import Produced
from dragoman.core.error import ErrorCode
from support.scripted import Expect, Scripted
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = b"\xba\x7c"
METADATA = b"METADATA topic=t"
AT_ONCE = Retry(attempts=4, first_s=0, longest_s=0)

pytestmark = pytest.mark.parametrize("face", ["trio", "sync"])


def write(
    face: str, port: int, *batches: list[bytes], dialect: str = "cursus", **given: Any
) -> list[list[Produced]]:
    """Produces batches one after the other over one producer, to partition 0 unless told."""
    partition = given.pop("partition", 0)
    options = {"retry": AT_ONCE, "name": "p", "epoch": 9} | given
    if face == "sync":
        with connect_producer(dialect, port=port, **options) as producer:
            return [producer.produce("t", batch, None, partition) for batch in batches]

    async def run() -> list[list[Produced]]:
        async with open_producer(dialect, port=port, **options) as producer:
            return [await producer.produce("t", batch, None, partition) for batch in batches]

    return trio.run(run)


def leaders(*addresses: str) -> str:
    count = len(addresses)
    return f"OK topic=t partitions={count} leaders={','.join(addresses)} epochs=0"


def sent(body: bytes) -> tuple[list[bytes], list[int], int]:
    """The payloads, sequences and the epoch of a batch."""
    messages = wire.LAYOUTS["l3"].parse(body)["messages"]
    return (
        [bytes(each["payload"]) for each in messages],
        [each["seq_num"] for each in messages],
        messages[0]["epoch"],
    )


def ack(body: bytes, *, upto: int | None = None, **more: Any) -> str:
    """The acknowledgement of a batch, or of its messages up to a sequence."""
    _, sequences, epoch = sent(body)
    answer = {
        "status": "OK" if upto is None else "PARTIAL",
        "last_offset": (sequences[-1] if upto is None else upto) - 1,
        "producer_epoch": epoch,
        "producer_id": "p",
        "seq_start": sequences[0],
        "seq_end": sequences[-1] if upto is None else upto,
        "leader": "",
        "error": "",
    }
    return json.dumps(answer | more)


def error_ack(error: str, leader: str = "") -> str:
    zeros = dict.fromkeys(("last_offset", "producer_epoch", "seq_start", "seq_end"), 0)
    return json.dumps({"status": "ERROR", "error": error, "leader": leader} | zeros)


def batches(server: Scripted) -> list[tuple[list[bytes], list[int], int]]:
    return [sent(body) for body in server.bodies if body.startswith(BATCH)]


def test_records_are_numbered_on_from_batch_to_batch(face: str) -> None:
    script = [Expect(BATCH, ack), Expect(BATCH, ack)]
    with Scripted(Expect(METADATA, leaders("")), *script) as server:
        written = write(face, server.port, [b"a", b"b"], [b"c"])
    assert batches(server) == [([b"a", b"b"], [1, 2], 9), ([b"c"], [3], 9)]
    assert written == [[Produced(0, 0, 2)], [Produced(0, 2, 1)]]


def test_a_refusal_that_names_the_leader_is_followed_there(face: str) -> None:
    with Scripted(Expect(BATCH, ack), Expect(BATCH, ack)) as leader:
        moved = f"ERROR: NOT_LEADER LEADER_IS {leader.address}"
        with Scripted(Expect(METADATA, leaders("")), Expect(BATCH, moved)) as follower:
            write(face, follower.port, [b"a"], [b"b"])
    assert batches(follower) == [([b"a"], [1], 9)]
    assert batches(leader) == [([b"a"], [1], 9), ([b"b"], [2], 9)]


@pytest.mark.parametrize("where", ["in the words", "beside them"])
def test_the_leader_is_read_from_an_object_too(face: str, where: str) -> None:
    with Scripted(Expect(BATCH, ack)) as leader:
        if where == "in the words":
            moved = error_ack(f"NOT_LEADER LEADER_IS {leader.address} partition=0")
        else:
            moved = error_ack("NOT_LEADER", leader.address)
        with Scripted(Expect(METADATA, leaders("")), Expect(BATCH, moved)) as follower:
            write(face, follower.port, [b"a"])
    assert batches(leader) == [([b"a"], [1], 9)]


def test_without_a_name_the_leaders_are_asked_for_again(face: str) -> None:
    with Scripted(Expect(BATCH, ack)) as leader:
        script = [
            Expect(METADATA, leaders("")),
            Expect(BATCH, "NOT_LEADER"),
            Expect(METADATA, leaders(leader.address)),
        ]
        with Scripted(*script) as follower:
            write(face, follower.port, [b"a"])
    assert batches(leader) == [([b"a"], [1], 9)]


def test_each_partition_is_written_to_its_own_leader(face: str) -> None:
    with Scripted(Expect(BATCH, ack)) as second, Scripted() as first:
        first.play(Expect(METADATA, leaders(first.address, second.address)))
        write(face, first.port, [b"a"], partition=1)
    assert batches(second) == [([b"a"], [1], 9)]


def test_a_leader_that_nobody_can_reach_is_sought_at_home(face: str) -> None:
    script = [Expect(METADATA, leaders("127.0.0.1:1"))] * 2 + [Expect(BATCH, ack)]
    with Scripted(*script) as home:
        write(face, home.port, [b"a"])
    assert batches(home) == [([b"a"], [1], 9)]


def test_an_acknowledgement_that_names_a_known_leader_moves_the_next_batch(face: str) -> None:
    with Scripted(Expect(BATCH, ack)) as other, Scripted() as home:
        home.play(
            Expect(METADATA, leaders("", other.address)),
            Expect(BATCH, lambda body: ack(body, leader=other.address)),
        )
        write(face, home.port, [b"a"], [b"b"])
    assert batches(other) == [([b"b"], [2], 9)]


def test_only_the_tail_of_a_partly_stored_batch_is_sent_again(face: str) -> None:
    script = [
        Expect(BATCH, lambda body: ack(body, upto=2)),
        Expect(BATCH, ack),
        Expect(BATCH, ack),
    ]
    with Scripted(Expect(METADATA, leaders("")), *script) as server:
        written = write(face, server.port, [b"a", b"b", b"c"], [b"d"])
    assert batches(server) == [
        ([b"a", b"b", b"c"], [1, 2, 3], 9),
        ([b"c"], [3], 9),
        ([b"d"], [4], 9),
    ]
    assert written == [[Produced(0, 0, 2), Produced(0, 2, 1)], [Produced(0, 3, 1)]]


def test_a_batch_of_which_nothing_was_stored_is_sent_again_whole(face: str) -> None:
    script = [Expect(BATCH, lambda body: ack(body, upto=0)), Expect(BATCH, ack)]
    with Scripted(Expect(METADATA, leaders("")), *script) as server:
        assert write(face, server.port, [b"a", b"b"]) == [[Produced(0, 0, 2)]]
    assert batches(server)[1] == ([b"a", b"b"], [1, 2], 9)


def test_a_lost_connection_is_made_anew_and_the_batch_sent_under_its_numbers(face: str) -> None:
    script = [
        Expect(METADATA, leaders("")),
        Expect(BATCH, closes=True),
        Expect(METADATA, leaders("")),
        Expect(BATCH, ack),
    ]
    with Scripted(*script) as server:
        write(face, server.port, [b"a"])
    assert batches(server) == [([b"a"], [1], 9)] * 2


def test_a_late_acknowledgement_is_not_taken_for_that_of_the_next_batch(face: str) -> None:
    late = json.dumps({"status": "OK", "last_offset": 77, "producer_id": "p", "producer_epoch": 9})
    script = [
        Expect(METADATA, leaders("")),
        Expect(BATCH, late=late),
        Expect(METADATA, leaders("")),
        Expect(BATCH, ack),
    ]
    with Scripted(*script) as server:
        written = write(face, server.port, [b"a"], read_timeout_s=0.3)
    assert written == [[Produced(0, 0, 1)]]
    connections = [number for number, body in server.seen if body.startswith(BATCH)]
    assert connections[0] != connections[1]


def test_an_acknowledgement_of_other_messages_ends_the_connection(face: str) -> None:
    script = [
        Expect(METADATA, leaders("")),
        Expect(BATCH, ack),
        Expect(BATCH, lambda body: ack(body, seq_start=1, seq_end=1)),
        Expect(METADATA, leaders("")),
        Expect(BATCH, ack),
    ]
    with Scripted(*script) as server:
        write(face, server.port, [b"a"], [b"b"])
    assert batches(server)[1:] == [([b"b"], [2], 9)] * 2


@pytest.mark.parametrize(
    "naive",
    [
        '{"status":"OK","last_offset":0}',
        '{"status":"OK","last_offset":0,"seq_start":0,"seq_end":0}',
    ],
)
def test_acknowledgements_that_tell_little_count(face: str, naive: str) -> None:
    with Scripted(Expect(METADATA, leaders("")), Expect(BATCH, naive)) as server:
        assert write(face, server.port, [b"a"]) == [[Produced(0, 0, 1)]]


def test_epochs_of_nineteen_digits_come_back_as_they_were(face: str) -> None:
    with Scripted(Expect(METADATA, leaders("")), Expect(BATCH, ack)) as server:
        write(face, server.port, [b"a"], epoch=9_223_372_036_854_775_807)
    assert batches(server)[0][2] == 9_223_372_036_854_775_807


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("ERROR: stale_producer_epoch current=10 requested=9", ErrorCode.STALE_PRODUCER_EPOCH),
        (error_ack("record_too_large size=5 limit=4"), ErrorCode.RECORD_TOO_LARGE),
        ("ERROR: something else", ErrorCode.INTERNAL),
    ],
)
def test_a_hard_refusal_is_raised_and_not_tried_again(
    face: str, answer: str, code: ErrorCode
) -> None:
    with (
        Scripted(Expect(METADATA, leaders("")), Expect(BATCH, answer)) as server,
        pytest.raises(RequestRefused) as refused,
    ):
        write(face, server.port, [b"a"])
    assert refused.value.code is code


def test_attempts_are_bounded(face: str) -> None:
    script = [Expect(METADATA, leaders("")), *[Expect(BATCH, "ERROR: NOT_LEADER LEADER_IS ?")]]
    with Scripted(*script * 4) as server, pytest.raises(RequestRefused, match="not leader"):
        write(face, server.port, [b"a"])


def test_what_was_given_up_leaves_its_numbers_to_nobody(face: str) -> None:
    script = [
        Expect(METADATA, leaders("")),
        Expect(BATCH, closes=True),
        Expect(METADATA, leaders("")),
        Expect(BATCH, ack),
    ]
    with Scripted(*script) as server:
        once = Retry(attempts=1)
        if face == "sync":
            with connect_producer(port=server.port, name="p", epoch=9, retry=once) as producer:
                with pytest.raises(ConnectionLost):
                    producer.produce("t", [b"a"], partition=0)
                producer.produce("t", [b"b"], partition=0)
        else:
            trio.run(functools.partial(give_up_and_go_on, server.port, once))
    assert batches(server) == [([b"a"], [1], 9), ([b"b"], [1], 10)]


async def give_up_and_go_on(port: int, once: Retry) -> None:
    async with open_producer(port=port, name="p", epoch=9, retry=once) as producer:
        with pytest.raises(ConnectionLost):
            await producer.produce("t", [b"a"], partition=0)
        await producer.produce("t", [b"b"], partition=0)


def test_a_server_that_is_nowhere_is_one_sentence(face: str) -> None:
    with pytest.raises(Unreachable, match=r"^cursus server 127\.0\.0\.1:1: "):
        write(face, 1, [b"a"])


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "v1", "rustlog") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            client.create_topic("t", 3)
        yield server


def test_records_of_one_key_go_to_one_partition(face: str, wired: WiredServer) -> None:
    port = wired.ports["cursus"]
    keys: list[bytes | None] = [b"k%d" % (number % 5) for number in range(40)]
    values: list[bytes | None] = [b"%d" % number for number in range(40)]
    if face == "sync":
        with connect_producer(port=port) as producer:
            written = producer.produce("t", values, keys)
    else:
        written = trio.run(functools.partial(write_keyed, port, values, keys))
    assert sum(produced.count for produced in written) == 40
    homes: dict[bytes | None, set[int]] = {}
    with connect("cursus", port=port) as client:
        for partition in range(3):
            for record in client.fetch("t", partition):
                homes.setdefault(record.key, set()).add(partition)
    assert {len(found) for found in homes.values()} == {1}


async def write_keyed(port: int, values: Any, keys: Any) -> list[Produced]:
    async with open_producer(port=port) as producer:
        return await producer.produce("t", values, keys)


@pytest.mark.parametrize(("dialect", "partition"), [("v1", None), ("rustlog", 1)])
def test_dialects_without_sequences_write_all_the_same(
    face: str, wired: WiredServer, dialect: str, partition: int | None
) -> None:
    port = wired.ports[dialect]
    written = write(face, port, [b"a", b"b"], dialect=dialect, partition=partition)
    assert [produced.count for produced in written[0]] == [2]


def test_what_no_words_exist_for_is_not_sent(face: str, wired: WiredServer) -> None:
    with pytest.raises(Unsayable):
        write(face, wired.ports["v1"], [b"a b"], dialect="v1", partition=None)
