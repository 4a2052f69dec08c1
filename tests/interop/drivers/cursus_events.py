"""Keeps streams of events with the published Cursus client; prints one line of JSON a step.

Run by an environment that holds one version of that client. The only argument is a JSON object:
port, topic, partitions, face, streams, events (in each stream), only_read (what another wrote).
Streams are written side by side where the face is async, one after another where it blocks.
"""

import asyncio
import inspect
import json
import sys

from cursus import AsyncEventStore, Event, EventStore

asked = json.loads(sys.argv[1])
address = f"127.0.0.1:{asked['port']}"
face = EventStore if asked["face"] == "sync" else AsyncEventStore
events = asked["events"]


def tell(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


async def come(result):
    """What a call of either face came to."""
    return await result if inspect.isawaitable(result) else result


async def refusal(call):
    """What a call that has to fail says."""
    try:
        await come(call())
    except Exception as error:
        return str(error)
    return ""


def event(key, version):
    return Event(
        type=f"Type{version % 3}",
        payload=f"{key} did {version} = é",
        schema_version=version % 5,
        metadata=json.dumps({"n": version}, separators=(",", ":")),
    )


async def write(key):
    store = face(address, asked["topic"], "keeper")
    first = await come(store.stream_version(key)), await come(store.read_snapshot(key))
    places = []
    for version in range(1, events + 1):
        done = await come(store.append(key, version, event(key, version)))
        assert done.version == version
        places.append((done.partition, done.offset))
        if version == events // 2:
            await come(store.save_snapshot(key, version, f"state of {key} = é"))
    tell("written", key=key, first=first, places=places)
    await come(store.close())


async def read(key):
    store = face(address, asked["topic"], "reader")
    snapshot = await come(store.read_snapshot(key))
    tell(
        "stream",
        key=key,
        version=await come(store.stream_version(key)),
        snapshot=vars(snapshot),
        conflict=await refusal(lambda: store.append(key, 1, event(key, 1))),
        too_new=await refusal(lambda: store.save_snapshot(key, events + 1, "none")),
    )
    for start in (0, 1, events):
        data = await come(store.read_stream(key, start))
        rows = [
            (e.version, e.offset, e.type, e.payload, e.schema_version, e.metadata)
            for e in data.events
        ]
        shown = data.snapshot and vars(data.snapshot)
        tell("read", key=key, start=start, snapshot=shown, events=rows)
    await come(store.close())


async def main():
    store = face(address, asked["topic"], "maker")
    await come(store.create_topic(asked["partitions"]))
    await come(store.close())
    keys = [f"stream-{number}" for number in range(asked["streams"])]
    if not asked.get("only_read"):
        await asyncio.gather(*(write(key) for key in keys))
    for key in keys:
        await read(key)


tell("started")
asyncio.run(main())
tell("closed")
