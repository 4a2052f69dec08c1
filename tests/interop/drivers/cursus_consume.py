"""Reads a topic with the published Cursus client; prints one line of JSON a step.

Run by an environment that holds one version of that client. The only argument is a JSON object:
port, topic, group, mode, face, count (go on until so many different records came), patience_s (but
no longer than that), linger_s (then wait so long for records that should not come).
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
)
seen = set()


def tell(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def heard(message, enough):
    tell("record", offset=message.offset, key=message.key, value=message.payload)
    seen.add(message.payload)
    if len(seen) >= asked["count"]:
        enough.set()


def consume():
    consumer = Consumer(config)
    errors = []
    enough = threading.Event()

    def run():
        try:
            consumer.start(lambda message: heard(message, enough))
        except Exception as error:
            errors.append(repr(error))
            enough.set()

    threading.Thread(target=run, daemon=True).start()
    enough.wait(asked["patience_s"])
    time.sleep(asked["linger_s"])
    consumer.close()
    if errors:
        tell("failed", why=errors[0])


async def consume_async():
    consumer = AsyncConsumer(config)
    await consumer.start()
    enough = asyncio.Event()

    async def run():
        async for message in consumer:
            heard(message, enough)

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
