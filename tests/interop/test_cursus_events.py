"""The event stores of the published Python clients of Cursus against the real server.

Both versions, blocking and asynchronous, at the same time, each with a topic of its own; then the
other dialects must find every event as a record.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.clients.sync import connect
from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import IfExists, TopicConfig
from dragoman.core.column import VarColumn
from dragoman.core.events.field import Event, event_headers
from interop.topic_reading import OTHERS, PARTITIONS, read_all
from support.environment import Driver, drive
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

EVENTS = Path(__file__).parent / "drivers" / "cursus_events.py"
FACES = ("sync", "async")
STREAMS = 20
IN_STREAM = 500
HALF = IN_STREAM // 2

Steps = list[dict[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("cursus-events") / "data") as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="module")
def kept(server: Server, clients: dict[str, Path]) -> dict[str, Steps]:
    """By topic, the steps of each client at work on 10,000 events, all of them side by side."""
    with ExitStack() as stack:
        drivers = {
            f"events-{version}-{face}": stack.enter_context(
                Driver(
                    python,
                    EVENTS,
                    port=server.ports["cursus"],
                    topic=f"events-{version}-{face}",
                    partitions=PARTITIONS,
                    face=face,
                    streams=STREAMS,
                    events=IN_STREAM,
                    timeout_s=60,
                )
            )
            for version, python in clients.items()
            for face in FACES
        }
        return {topic: driver.until("closed") for topic, driver in drivers.items()}


@pytest.fixture(params=[f"events-{v}-{face}" for v in ("0.1.0", "0.1.1") for face in FACES])
def topic(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def payload(key: str, version: int) -> str:
    return f"{key} did {version} = é"


def test_every_event_is_kept_once_in_its_version_with_all_that_it_said(
    kept: dict[str, Steps], topic: str
) -> None:
    written = {step["key"]: step for step in kept[topic] if step["step"] == "written"}
    reads = {(s["key"], s["start"]): s for s in kept[topic] if s["step"] == "read"}
    assert written.keys() == {f"stream-{n}" for n in range(STREAMS)}
    for key, step in written.items():
        assert step["first"] == [0, None]
        events = [
            [v, offset, f"Type{v % 3}", payload(key, v), v % 5, f'{{"n":{v}}}']
            for v, (_, offset) in enumerate(step["places"], 1)
        ]
        assert len(events) == IN_STREAM
        assert reads[key, 1]["events"] == events
        assert reads[key, 0]["events"] == events[HALF:]
        assert reads[key, IN_STREAM]["events"] == events[-1:]


def test_snapshots_stand_for_what_came_before_and_versions_are_held_to(
    kept: dict[str, Steps], topic: str
) -> None:
    snapshots = {s["key"]: s["snapshot"] for s in kept[topic] if s["step"] == "read"}
    streams = [step for step in kept[topic] if step["step"] == "stream"]
    assert len(streams) == STREAMS
    for stream in streams:
        snapshot = {"version": HALF, "payload": f"state of {stream['key']} = é"}
        assert stream["version"] == IN_STREAM
        assert stream["snapshot"] == snapshot
        assert f"version_conflict current={IN_STREAM} expected=1" in stream["conflict"]
        assert "snapshot_version_exceeds_stream" in stream["too_new"]
        shown = [s for s in kept[topic] if s["step"] == "read" and s["key"] == stream["key"]]
        assert [s["snapshot"] for s in shown if s["start"] == 0] == [snapshot]
    assert snapshots.keys() == {stream["key"] for stream in streams}


def test_events_are_records_of_the_other_dialects(
    server: Server, kept: dict[str, Steps], topic: str
) -> None:
    expected = {
        (partition, offset): payload(step["key"], version)
        for step in kept[topic]
        if step["step"] == "written"
        for version, (partition, offset) in enumerate(step["places"], 1)
    }
    assert len(expected) == STREAMS * IN_STREAM
    for dialect in OTHERS:
        found = {(p, offset): value for p, offset, value in read_all(server, dialect, topic)}
        assert found == expected


@pytest.mark.parametrize("face", FACES)
def test_events_that_our_client_appends_are_events_of_the_published_one(
    server: Server, client: Path, face: str
) -> None:
    topic = f"ours-for-{client.parents[1].name}-{face}"
    key, fields = b"stream-0", event_headers(Event(b"Made", 7, metadata=b"{}"))
    assert fields is not None
    with connect("cursus", port=server.ports["cursus"]) as ours:
        config = TopicConfig(event_sourcing=True)
        ours.ask(calls.CreateTopic(topic, PARTITIONS, config=config, if_exists=IfExists.GROW))
        for version in range(1, 11):
            values = VarColumn.of([b"ours %d" % version])
            batch = RecordBatch(1, values, origin=Origin.NONE)
            batch.keys, batch.headers = VarColumn.of([key]), VarColumn.of([fields])
            done = ours.ask(calls.AppendEvent(topic, key, 0, version, batch))
            assert isinstance(done, calls.EventAppended)
            assert done.version == version
        ours.ask(calls.SaveSnapshot(topic, key, 0, 4, b"our state"))
    asked = {"partitions": PARTITIONS, "face": face, "streams": 1, "events": 10, "only_read": True}
    steps = drive(client, EVENTS, port=server.ports["cursus"], topic=topic, **asked)
    after, whole, last = (step for step in steps if step["step"] == "read")
    assert after["snapshot"] == {"version": 4, "payload": "our state"}
    assert [row[0] for row in after["events"]] == [*range(5, 11)]
    assert [row[2:] for row in whole["events"]] == [
        ["Made", f"ours {version}", 7, "{}"] for version in range(1, 11)
    ]
    assert last["events"] == whole["events"][-1:]
