"""Sends numbered records with the published Cursus client; prints one line of JSON a step.

Run by an environment that holds one version of that client. The only argument is a JSON object:
port, topic, partitions, acks, count, keys (how many different ones; 0 for none), face, prefix,
idempotent, compression.
"""

import asyncio
import json
import sys
import time

from cursus import Acks, AsyncProducer, Producer, ProducerConfig

asked = json.loads(sys.argv[1])
config = ProducerConfig(
    topic=asked["topic"],
    brokers=[f"127.0.0.1:{asked['port']}"],
    partitions=asked["partitions"],
    acks=Acks(asked["acks"]),
    idempotent=asked["idempotent"],
    compression_type=asked["compression"],
    linger_ms=5,
    batch_size=100,
)


def tell(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def rows():
    for number in range(asked["count"]):
        key = f"key-{number % asked['keys']}" if asked["keys"] else ""
        yield f"{asked['prefix']}{number}", key


def produce():
    with Producer(config) as producer:
        for value, key in rows():
            producer.send(value, key=key)
        tell("sent", count=asked["count"])
        producer.flush()
        tell("acknowledged", count=producer.unique_ack_count)


async def produce_async():
    producer = AsyncProducer(config)
    await producer.start()
    for value, key in rows():
        await producer.send(value, key=key)
    tell("sent", count=asked["count"])
    await producer.flush()
    # Version 0.1.0 takes a batch in flight for flushed, and would drop it by closing.
    deadline = time.monotonic() + 5
    while producer.unique_ack_count < asked["count"] and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    tell("acknowledged", count=producer.unique_ack_count)
    await producer.close()


if asked["face"] == "sync":
    produce()
else:
    asyncio.run(produce_async())
tell("closed")
