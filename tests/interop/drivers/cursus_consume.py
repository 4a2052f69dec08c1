"""Reads a topic with the published Cursus client; prints one line of JSON a step.

Run by an environment that holds one version of that client. The only argument is a JSON object:
port, topic, group, mode, face, count (go on until so many different records came), patience_s (but
no longer than that), linger_s (then wait so long for records that should not come), pause_s (that
handling a record takes), known (values that count as seen).

Version 0.1.1 raises out of reading where a commit fails; as an application would, the driver then
says so and reads on with the same consumer.
"""

import asyncio
import json
import sys
import threading
import time
from contextlib import suppress

from cursus import AsyncConsumer, Consumer, ConsumerConfig, ConsumerMode

asked = json.loads(sys.argv[1])
config = ConsumerConfig(
    topic=asked["topic"],
    brokers=[f"127.0.0.1:{asked['port']}"],
    group_id=asked["group"],
    mode=ConsumerMode(asked["mode"]),
    heartbeat_interval_ms=asked.get("heartbeat_ms", 3000),
    auto_commit_interval_s=asked.get("commit_s", 5.0),
)
seen = set(asked.get("known", []))


def tell(step, **facts):
    # One write, because two threads tell.
    sys.stdout.write(json.dumps({"step": step, **facts}) + "\n")
    sys.stdout.flush()


def heard(message, enough):
    tell("record", offset=message.offset, key=message.key, value=message.payload)
    seen.add(message.payload)
    time.sleep(asked.get("pause_s", 0))
    if len(seen) >= asked["count"]:
        enough.set()


def watch(consumer):
    """Tells of each new assignment; the client itself has no way to ask."""
    last = None
    while True:
        now = (consumer._generation, sorted(consumer._assignments))
        if now != last and now[1]:
            tell("member", generation=now[0], partitions=now[1])
            last = now
        time.sleep(0.02)


def consume():
    consumer = Consumer(config)
    threading.Thread(target=watch, args=[consumer], daemon=True).start()
    enough = threading.Event()

    def run():
        while not enough.wait(0.2):
            try:
                consumer.start(lambda message: heard(message, enough))
            except Exception as error:
                tell("again", why=repr(error))

    threading.Thread(target=run, daemon=True).start()
    enough.wait(asked["patience_s"])
    time.sleep(asked["linger_s"])
    enough.set()
    consumer.close()


async def consume_async():
    consumer = AsyncConsumer(config)
    await consumer.start()
    threading.Thread(target=watch, args=[consumer], daemon=True).start()
    enough = asyncio.Event()

    async def run():
        while not enough.is_set():
            try:
                async for message in consumer:
                    heard(message, enough)
            except Exception as error:
                tell("again", why=repr(error))
                await asyncio.sleep(0.2)

    reading = asyncio.create_task(run())
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(enough.wait(), asked["patience_s"])
    await asyncio.sleep(asked["linger_s"])
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await consumer.close()


tell("started")
if asked["face"] == "sync":
    consume()
else:
    asyncio.run(consume_async())
tell("closed")
