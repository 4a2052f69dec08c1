"""A group consumer against servers that play a script, and two against a real one."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
import trio

from dragoman.clients import consumer
from dragoman.clients.consumer import connect_consumer, open_consumer
from dragoman.clients.error import RequestRefused
from dragoman.clients.plan import Retry
from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable
from dragoman.core.error import ErrorCode
from support.cursus import batch, message
from support.scripted import Expect, Scripted
from support.wired import WiredServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman.clients.membership import Delivered

AT_ONCE = Retry(attempts=4, first_s=0, longest_s=0)
FACES = pytest.mark.parametrize("face", ["trio", "sync"])


class Steps:
    """What a test does with a consumer, the same for both faces."""

    def __init__(self, poll: Callable[..., Any], commit: Callable[..., Any], consumer: Any) -> None:
        self.poll = poll
        self.commit = commit
        self.consumer = consumer


def play(
    face: str, port: int, action: Callable[[Steps], Any], *, group: str = "g", **given: Any
) -> Any:
    """Runs an action with a consumer `m` of a group on topic `t`."""
    options = {"port": port, "member": "m", "retry": AT_ONCE, "heartbeat_s": 60} | given
    if face == "sync":
        with connect_consumer("t", group, **options) as member:
            return action(Steps(member.poll, member.commit, member))

    async def run() -> Any:
        async with open_consumer("t", group, **options) as member:

            def here(call: Callable[..., Any]) -> Callable[..., Any]:
                return lambda *args, **named: trio.from_thread.run(lambda: call(*args, **named))

            steps = Steps(here(member.poll), here(member.commit), member)
            return await trio.to_thread.run_sync(action, steps)

    return trio.run(run)


def join(generation: int = 1, partitions: str = "0", member: str = "m-1") -> Expect:
    told = f"OK generation={generation} member={member} assignments=[{partitions}]"
    return Expect(b"JOIN_GROUP topic=t group=g member=", told)


def offsets(*pairs: tuple[int, int]) -> list[Expect]:
    return [
        Expect(b"FETCH_OFFSET topic=t partition=%d group=g" % partition, f"OK offset={offset}")
        for partition, offset in pairs
    ]


METADATA = Expect(b"METADATA topic=t", "OK topic=t partitions=2 leaders=,  epochs=0,0")
LEAVE = Expect(b"LEAVE_GROUP topic=t group=g member=", "OK group=g member=m left=true")


def records(partition: int, first: int, *payloads: bytes) -> bytes:
    messages = [message(offset=first + n, payload=each) for n, each in enumerate(payloads)]
    return batch(messages, partition=partition)


def consume(partition: int, offset: int, reply: bytes | str, generation: int = 1) -> Expect:
    needle = b"CONSUME topic=t partition=%d offset=%d group=g member=m-1 generation=%d"
    return Expect(needle % (partition, offset, generation), reply)


def shown(delivered: list[Delivered]) -> list[tuple[int, list[int]]]:
    return [(each.partition, [record.offset for record in each.records]) for each in delivered]


@FACES
def test_it_joins_reads_from_the_committed_offset_commits_and_leaves(face: str) -> None:
    script = [
        join(),
        *offsets((0, 5)),
        METADATA,
        consume(0, 5, records(0, 5, b"a", b"b")),
        Expect(b"COMMIT_OFFSET topic=t partition=0 group=g offset=7 generation=1 member=m-1", "OK"),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert play(face, server.port, lambda c: (shown(c.poll()), c.commit())) == (
            [(0, [5, 6])],
            True,
        )


@FACES
def test_without_partitions_it_asks_once_more_for_its_share(face: str) -> None:
    sync = Expect(b"SYNC_GROUP topic=t group=g member=m-1 generation=1", "OK assignments=[1]")
    script = [join(partitions=""), sync, *offsets((1, 0)), METADATA]
    with Scripted(*script, consume(1, 0, records(1, 0, b"a")), LEAVE) as server:
        assert shown(play(face, server.port, lambda c: c.poll())) == [(1, [0])]


MOVED = [
    "REBALANCE_REQUIRED generation=3",
    "ERROR: REBALANCE_REQUIRED",
    "ERROR: GEN_MISMATCH current=3 requested=1 group=g member=m-1",
    "ERROR: NOT_OWNER partition=0 member=m-1 group=g generation=3",
    "ERROR: not partition owner or generation mismatch",
]


@FACES
@pytest.mark.parametrize("told", MOVED)
def test_told_that_the_group_moved_on_it_stops_and_joins_again(face: str, told: str) -> None:
    script = [
        join(partitions="0 1"),
        *offsets((0, 0), (1, 0)),
        METADATA,
        consume(0, 0, records(0, 0, b"thrown away")),
        consume(1, 0, told),
        Expect(b"member=m-1", "OK generation=3 member=m-1 assignments=[1]"),
        *offsets((1, 4)),
        consume(1, 4, records(1, 4, b"e"), generation=3),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert shown(play(face, server.port, lambda c: c.poll())) == [(1, [4])]


@FACES
@pytest.mark.parametrize(
    "told", ["ERROR: member_not_found member=m-1 group=g", "ERROR: group_not_found group=g"]
)
def test_a_forgotten_member_joins_under_its_first_name(face: str, told: str) -> None:
    script = [
        join(),
        *offsets((0, 0)),
        METADATA,
        consume(0, 0, told),
        Expect(b"JOIN_GROUP topic=t group=g member=m", "OK generation=1 member=m-1 assignments=0"),
        *offsets((0, 0)),
        consume(0, 0, records(0, 0, b"a")),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert shown(play(face, server.port, lambda c: c.poll())) == [(0, [0])]
    assert server.bodies[4].endswith(b"member=m")


@FACES
def test_a_commit_that_comes_too_late_joins_and_says_what_became_of_it(face: str) -> None:
    script = [
        join(partitions="0 1"),
        *offsets((0, 0), (1, 0)),
        METADATA,
        consume(0, 0, records(0, 0, b"a")),
        consume(1, 0, records(1, 0, b"b")),
        Expect(
            b"BATCH_COMMIT topic=t group=g member=m-1 generation=1 P0:1,P1:1",
            "ERROR: GEN_MISMATCH current=2 requested=1 group=g member=m-1",
        ),
        join(2, "0"),
        *offsets((0, 0)),
        Expect(b"COMMIT_OFFSET topic=t partition=0 group=g offset=1 generation=2", "OK"),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert play(face, server.port, lambda c: (len(c.poll()), c.commit())) == (2, False)


@FACES
def test_a_partition_that_was_never_given_up_is_read_on_where_it_stood(face: str) -> None:
    script = [
        join(partitions="0 1"),
        *offsets((0, 0), (1, 0)),
        METADATA,
        consume(0, 0, records(0, 0, b"a", b"b")),
        consume(1, 0, batch([], partition=1)),
        consume(0, 2, "REBALANCE_REQUIRED generation=2"),
        consume(1, 0, "REBALANCE_REQUIRED generation=2"),
        join(2, "0"),
        *offsets((0, 0)),
        consume(0, 2, records(0, 2, b"c"), generation=2),
        LEAVE,
    ]
    with Scripted(*script) as server:
        polled = play(face, server.port, lambda c: (shown(c.poll()), shown(c.poll())))
    assert polled == ([(0, [0, 1])], [(0, [2])])


@FACES
def test_older_brokers_offsets_are_understood(face: str) -> None:
    script = [
        join(partitions="0 1"),
        Expect(b"FETCH_OFFSET topic=t partition=0", "22"),
        Expect(b"FETCH_OFFSET topic=t partition=1", "ERROR: no offset found"),
        METADATA,
        consume(0, 22, records(0, 22, b"a")),
        consume(1, 0, batch([], partition=1)),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert shown(play(face, server.port, lambda c: c.poll())) == [(0, [22])]


@FACES
def test_reading_goes_to_the_leader_that_a_refusal_names(face: str) -> None:
    with Scripted(consume(0, 0, records(0, 0, b"a"))) as leader:
        script = [
            join(),
            *offsets((0, 0)),
            METADATA,
            consume(0, 0, f"ERROR: NOT_LEADER LEADER_IS {leader.address}"),
            LEAVE,
        ]
        with Scripted(*script) as server:
            assert shown(play(face, server.port, lambda c: c.poll())) == [(0, [0])]


@FACES
def test_the_group_is_asked_where_its_coordinator_is(face: str) -> None:
    with Scripted(join(), *offsets((0, 0)), LEAVE) as coordinator:
        told = f"ERROR: NOT_COORDINATOR host=127.0.0.1 port={coordinator.port}"
        script = [
            Expect(b"JOIN_GROUP", told),
            METADATA,
            consume(0, 0, records(0, 0, b"a")),
        ]
        with Scripted(*script) as server:
            assert shown(play(face, server.port, lambda c: c.poll())) == [(0, [0])]


@FACES
def test_records_that_are_gone_are_passed_over(face: str) -> None:
    script = [
        join(),
        *offsets((0, 2)),
        METADATA,
        consume(0, 2, "ERROR: OFFSET_OUT_OF_RANGE requested=2 earliest=10 latest=11"),
        consume(0, 10, records(0, 10, b"a")),
        LEAVE,
    ]
    with Scripted(*script) as server:
        assert shown(play(face, server.port, lambda c: c.poll())) == [(0, [10])]


@FACES
def test_a_hard_refusal_is_raised(face: str) -> None:
    refusal = "ERROR: topic_not_assigned_to_group expected=a actual=t"
    with (
        Scripted(Expect(b"JOIN_GROUP", refusal)) as server,
        pytest.raises(RequestRefused) as refused,
    ):
        play(face, server.port, lambda c: c.poll())
    assert refused.value.code is ErrorCode.GROUP_TOPIC_MISMATCH


@FACES
def test_a_group_that_never_comes_to_rest_is_given_up(face: str) -> None:
    script = [Expect(b"JOIN_GROUP", "REBALANCE_REQUIRED")] * 4
    with Scripted(*script) as server, pytest.raises(RequestRefused, match="stale generation"):
        play(face, server.port, lambda c: c.poll())


@FACES
def test_heartbeats_go_on_their_own_connection_and_a_stale_one_makes_it_join(face: str) -> None:
    beaten = threading.Event()

    def beat(body: bytes) -> str:
        if body.endswith(b"generation=3"):
            return "OK member=m-1 generation=3"
        beaten.set()
        return "ERROR: GEN_MISMATCH current=3 requested=1 group=g member=m-1 REBALANCE_REQUIRED"

    script = [
        join(),
        *offsets((0, 0)),
        METADATA,
        consume(0, 0, records(0, 0, b"a")),
        join(3),
        *offsets((0, 7)),
        consume(0, 7, records(0, 7, b"h"), generation=3),
        LEAVE,
    ]
    beats = Expect(b"HEARTBEAT topic=t group=g member=m-1 generation=", beat)

    def action(steps: Steps) -> Any:
        first = shown(steps.poll())
        assert beaten.wait(10)
        while not steps.consumer.is_stale:
            threading.Event().wait(0.001)
        return first, shown(steps.poll())

    with Scripted(*script, beside=(beats,)) as server:
        assert play(face, server.port, action, heartbeat_s=0.02) == ([(0, [0])], [(0, [7])])
    beating = {number for number, body in server.seen if b"HEARTBEAT" in body}
    others = {number for number, body in server.seen if b"HEARTBEAT" not in body}
    assert len(beating) == 1
    assert not beating & others


@FACES
def test_the_end_does_not_wait_for_a_silent_server(
    face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "LEAVE_TIMEOUT_S", 0.02)
    silent = Expect(b"LEAVE_GROUP topic=t group=g member=m-1")
    script = [join(), *offsets((0, 0)), METADATA, consume(0, 0, records(0, 0, b"a"))]
    with Scripted(*script, beside=(silent,)) as server:
        began_s = monotonic()
        play(face, server.port, lambda c: c.poll(), read_timeout_s=10)
        assert monotonic() - began_s < 5


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredServer]:
    with WiredServer("cursus", "v1", "iggy") as server:
        with connect("cursus", port=server.ports["cursus"]) as client:
            client.create_topic("t", 2)
            client.produce("t", [b"a", b"b"], partition=0)
            client.produce("t", [b"c"], partition=1)
        yield server


@FACES
@pytest.mark.parametrize("dialect", ["cursus", "v1"])
def test_a_group_is_read_to_its_end_and_not_again(
    wired: WiredServer, face: str, dialect: str
) -> None:
    group = f"{face}-{dialect}"

    def action(steps: Steps) -> Any:
        seen = sorted(shown(steps.poll(0.02)))
        return seen, steps.commit(), steps.poll(0.02)

    port = wired.ports[dialect]
    assert play(face, port, action, group=group, dialect=dialect) == (
        [(0, [0, 1]), (1, [0])],
        True,
        [],
    )
    again = play(face, port, action, group=group, dialect=dialect)
    assert again == ([], True, [])


@FACES
def test_only_what_comes_after_the_beginning_is_read_where_asked(
    wired: WiredServer, face: str
) -> None:
    def action(steps: Steps) -> Any:
        nothing = steps.poll(0)
        with connect("cursus", port=wired.ports["cursus"]) as client:
            (written,) = client.produce("t", [b"new"], partition=1)
        (delivered,) = steps.poll(5)
        return nothing, [record.offset for record in delivered.records] == [written.base_offset]

    assert play(face, wired.ports["cursus"], action, group=f"new-{face}", offset="latest") == (
        [],
        True,
    )


@FACES
def test_a_dialect_whose_members_are_connections_says_so(wired: WiredServer, face: str) -> None:
    with pytest.raises(Unsayable):
        play(face, wired.ports["iggy"], lambda c: c.poll(), dialect="iggy")


async def test_what_is_raised_inside_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with open_consumer("t", "g", port=1):
            raise KeyError
