"""The Trio face of the client: one connection to a server of any dialect.

::

    async with open_client("cursus", "127.0.0.1", 9000) as client:
        await client.produce("orders", [b"one", b"two"])
        for record in await client.fetch("orders", 0, 0):
            print(record.offset, record.value)

Requests and replies are core's; what a dialect has no words for raises `Unsayable` before anything
is sent. Several tasks may share a client: each `ask_many` is one turn on the connection.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from dragoman.clients import group as grouping
from dragoman.clients import stream as streams
from dragoman.clients import task as tasks
from dragoman.clients.appending import produce
from dragoman.clients.error import ConnectionLost, NoAnswer, PartlySent, RequestRefused, Unreachable
from dragoman.clients.tls import ending, refusal
from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.registry import dialect as dialect_of
from dragoman.core import calls
from dragoman.core.error import Failure

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from dragoman.clients.group import Progress
    from dragoman.clients.stream import Stream
    from dragoman.clients.task import Offset, Result, Task
    from dragoman.codecs.base import Speaker, Told
    from dragoman.core.batch import Record
    from dragoman.core.calls import (
        EventAppended,
        Fetched,
        Followed,
        GroupDescription,
        GroupJoined,
        Produced,
        Reply,
        Request,
        Snapshot,
        TopicConfig,
        TopicDescription,
    )

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
RECEIVE_BYTES = 1 << 18
POLL_MIN_S, POLL_MAX_S = 0.02, 0.5
"""How long a follow without push waits after an empty read: doubling between these."""


class Client:
    """One connection, made by `open_client`.

    Args:
        stream: Connected to a server of the speaker's dialect.
        speaker: The client's half of the wire.
        address: For messages.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        speaker: Speaker,
        *,
        address: str = "the server",
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.address = address
        self.read_timeout_s = read_timeout_s
        self._stream = stream
        self._speaker = speaker
        self._turn = trio.Lock()
        self._heard: deque[Told] = deque()
        self._produced = count()

    async def ask(self, request: Request) -> Reply:
        """Sends a request and waits for its reply.

        Raises:
            Unsayable: The dialect has no words for it; nothing was sent.
            RequestRefused: The server refused it.
            ConnectionLost, NoAnswer: The connection is of no more use.
        """
        (reply,) = await self.ask_many([request])
        if isinstance(reply, Failure):
            raise RequestRefused(reply)
        return reply

    async def ask_many(self, requests: Sequence[Request]) -> list[Reply | Failure]:
        """Sends requests together and waits for all their replies, in order.

        Raises:
            Unsayable: The dialect has no words for the first; nothing was sent.
            PartlySent: It has none for a later one; those before it were served.
        """
        async with self._turn:
            data, owed, unsayable = tasks.rendered(self._speaker, requests)
            replies = await self._exchange(data, owed) if owed else []
            if unsayable is not None:
                raise PartlySent(unsayable, replies) if owed else unsayable
            return replies

    async def _exchange(self, data: bytes, owed: int) -> list[Reply | Failure]:
        """Sends, and hears as many replies as are owed."""
        replies: list[Reply | Failure] = []
        try:
            await self._send(data)
            while len(replies) < owed:
                told = await self._hear(self.read_timeout_s)
                if not told.push:
                    replies.append(told.reply)
        except trio.Cancelled:
            # The next asker would take what is still owed for its own reply.
            await trio.aclose_forcefully(self._stream)
            raise
        return replies

    async def run(self, task: Task[Result]) -> Result:
        """Drives a task of `clients.task`."""
        send: Any = task.send
        argument: Any = None
        while True:
            try:
                requests = send(argument)
            except StopIteration as done:
                result: Result = done.value
                return result
            try:
                replies = await self.ask_many(requests)
                for reply in replies:
                    if isinstance(reply, Failure):
                        raise RequestRefused(reply)
            except (Unsayable, RequestRefused) as error:
                send, argument = task.throw, error
            else:
                send, argument = task.send, replies

    async def _send(self, data: bytes) -> None:
        try:
            with trio.fail_after(self.read_timeout_s):
                await self._stream.send_all(data)
        except trio.TooSlowError:
            await trio.aclose_forcefully(self._stream)
            raise NoAnswer(f"{self.address} took no data for {self.read_timeout_s} s") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ConnectionLost(f"{self.address} {ending(error)}") from error

    async def _hear(self, timeout_s: float) -> Told:
        """The next thing that the server says."""
        while not self._heard:
            try:
                with trio.fail_after(timeout_s):
                    data = await self._stream.receive_some(RECEIVE_BYTES)
            except trio.TooSlowError:
                await trio.aclose_forcefully(self._stream)
                raise NoAnswer(f"{self.address} did not answer within {timeout_s} s") from None
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ConnectionLost(f"{self.address} {ending(error)}") from error
            if not data:
                raise ConnectionLost(f"{self.address} closed the connection")
            try:
                self._heard += self._speaker.receive(data)
            except ProtocolError as error:
                await trio.aclose_forcefully(self._stream)
                raise ConnectionLost(f"{self.address} broke the protocol: {error}") from error
        return self._heard.popleft()

    async def follow(
        self, topic: str, partition: int = 0, offset: Offset = tasks.LATEST
    ) -> AsyncGenerator[Followed, None]:
        """Yields the partition's records as they become visible, for ever.

        A dialect that pushes has the whole connection until it is closed: open one a follow. One
        that does not is asked again and again.
        """
        request = tasks.follow_request(topic, partition, offset, idle_us=2_000_000)
        async with self._turn:
            try:
                rendered = self._speaker.ask(request)
            except Unsayable:
                pushes = False
            else:
                pushes = True
                await self._send(b"".join(map(bytes, rendered)))
        if pushes:
            async with self._turn:
                while True:
                    reply = (await self._hear(float("inf"))).reply
                    if isinstance(reply, Failure):
                        raise RequestRefused(reply)
                    if isinstance(reply, calls.Followed | calls.Fetched) and reply.slices:
                        yield tasks.as_followed(reply)
        at = await self.run(tasks.find_start(topic, partition, offset))
        pause_s = POLL_MIN_S
        while True:
            fetched = await self.run(tasks.fetch(topic, partition, at))
            if fetched.slices:
                at = fetched.next_offset
                pause_s = POLL_MIN_S
                yield tasks.as_followed(fetched)
            else:
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, POLL_MAX_S)

    async def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partition: int | None = None,
        *,
        acks: calls.Acks = calls.Acks.LEADER,
    ) -> list[Produced]:
        """Appends records; see `appending.produce`."""
        turn = next(self._produced)
        return await self.run(produce(topic, values, keys, partition, acks=acks, turn=turn))

    async def fetch(
        self,
        topic: str,
        partition: int = 0,
        offset: Offset = tasks.EARLIEST,
        *,
        records_max: int = tasks.RECORDS_MAX,
    ) -> list[Record]:
        """The records from an offset on, as many as one answer holds."""
        task = tasks.fetch(topic, partition, offset, records_max=records_max)
        return tasks.records_of(await self.run(task))

    async def create_topic(
        self, topic: str, partitions: int, config: TopicConfig | None = None
    ) -> TopicDescription:
        """Makes a topic, with settings where the dialect has words for them."""
        return await self.run(tasks.create_topic(topic, partitions, config))

    async def delete_topic(self, topic: str) -> None:
        """Deletes a topic."""
        await self.run(tasks.delete_topic(topic))

    async def delete_records(self, topic: str, partition: int, before: int = -1) -> int:
        """Deletes a partition's records below an offset, -1 for all; returns the new log start."""
        return await self.run(tasks.delete_records(topic, partition, before))

    async def topics(self) -> list[TopicDescription]:
        """All topics, as far as the dialect tells."""
        return await self.run(tasks.list_topics())

    async def describe(self, topic: str) -> TopicDescription:
        """One topic, as far as the dialect tells."""
        return await self.run(tasks.describe_topic(topic))

    async def commit(
        self,
        topic: str,
        group: str,
        partition: int,
        offset: int,
        *,
        member: str = "",
        generation: int | None = None,
    ) -> None:
        """Stores the next offset that the group is to read, as its member where one is named."""
        task = tasks.commit(topic, group, partition, offset, member=member, generation=generation)
        await self.run(task)

    async def committed(self, topic: str, group: str, partition: int) -> int | None:
        """The next offset that the group is to read, or None."""
        return await self.run(tasks.committed(topic, group, partition))

    async def join(self, topic: str, group: str, member: str) -> GroupJoined:
        """Becomes a member of a group, made where it has to be."""
        return await self.run(tasks.join(topic, group, member))

    async def heartbeat(self, topic: str, group: str, member: str, generation: int) -> None:
        """Keeps a member alive; in Iggy the connection does."""
        await self.run(tasks.heartbeat(topic, group, member, generation))

    async def leave(
        self, topic: str, group: str, member: str, generation: int | None = None
    ) -> None:
        """Gives up membership."""
        await self.run(tasks.leave(topic, group, member, generation))

    async def poll(
        self, topic: str, group: str, *, records_max: int = tasks.RECORDS_MAX
    ) -> Fetched:
        """Reads on in the next of the member's partitions, and commits what it read (Iggy)."""
        return await self.run(tasks.poll(topic, group, records_max=records_max))

    async def groups(self, topic: str | None = None) -> list[GroupDescription]:
        """The groups of a topic, or of all, as far as the dialect tells."""
        return await self.run(grouping.list_groups(topic))

    async def describe_group(self, topic: str, group: str) -> GroupDescription:
        """One group, as far as the dialect tells."""
        return await self.run(grouping.describe_group(topic, group))

    async def group_progress(self, topic: str, group: GroupDescription) -> list[Progress]:
        """How far a group has come in each partition of its topic."""
        return await self.run(grouping.progress(topic, group))

    async def delete_group(self, topic: str, group: str) -> None:
        """Deletes a group with its members and committed offsets (Iggy)."""
        await self.run(grouping.delete_group(topic, group))

    async def append_event(
        self,
        topic: str,
        key: bytes,
        version: int,
        value: bytes,
        *,
        event_type: str = "",
        schema_version: int = 0,
        metadata: str = "",
    ) -> EventAppended:
        """Appends an event to a stream if its version is the next (Cursus)."""
        task = streams.append_event(
            topic,
            key,
            version,
            value,
            event_type=event_type,
            schema_version=schema_version,
            metadata=metadata,
        )
        return await self.run(task)

    async def read_events(self, topic: str, key: bytes, from_version: int = 0) -> Stream:
        """A stream's events from a version on; 0 begins behind its snapshot (Cursus)."""
        return await self.run(streams.read_events(topic, key, from_version))

    async def stream_version(self, topic: str, key: bytes) -> int:
        """The version of a stream's newest event; 0 where it has none (Cursus)."""
        return await self.run(streams.stream_version(topic, key))

    async def save_snapshot(self, topic: str, key: bytes, version: int, payload: bytes) -> None:
        """Keeps a state of a stream behind the event of this version (Cursus)."""
        await self.run(streams.save_snapshot(topic, key, version, payload))

    async def read_snapshot(self, topic: str, key: bytes) -> Snapshot | None:
        """The newest snapshot of a stream, or None (Cursus)."""
        return await self.run(streams.read_snapshot(topic, key))

    async def aclose(self) -> None:
        """Closes the connection."""
        await trio.aclose_forcefully(self._stream)


@asynccontextmanager
async def open_client(
    dialect: str,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client of this dialect, connected; `port` None is the dialect's customary one.

    Args:
        tls: What to show and ask for, such as `client_context` of `clients.tls` makes; None is
            a plain connection.
        options: The dialect's own, such as `compression="zstd"` of Cursus.

    Raises:
        KeyError: There is no such dialect.
        ValueError: It has no such option for its clients.
        Unreachable: No connection within `connect_timeout_s`.
    """
    spoken = dialect_of(dialect)
    speaker = spoken.speak(options)
    port = spoken.port if port is None else port
    address = f"{dialect} server {host}:{port}"
    stream: trio.abc.Stream
    try:
        with trio.fail_after(connect_timeout_s):
            plain = await trio.open_tcp_stream(host, port)
            stream = plain if tls is None else await _shake_hands(plain, tls, host)
    except trio.TooSlowError:
        raise Unreachable(f"{address}: no connection within {connect_timeout_s} s") from None
    except OSError as error:
        raise Unreachable(f"{address}: {_reason(error)}") from error
    except trio.BrokenResourceError as error:
        raise Unreachable(f"{address}: {refusal(error)}") from error
    client = Client(stream, speaker, address=address, read_timeout_s=read_timeout_s)
    try:
        yield client
    finally:
        await client.aclose()


async def _shake_hands(plain: trio.SocketStream, tls: ssl.SSLContext, host: str) -> trio.abc.Stream:
    stream = trio.SSLStream(plain, tls, server_hostname=host, https_compatible=True)
    try:
        await stream.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(plain)
        raise
    return stream


def _reason(error: OSError) -> str:
    """What the system said of the last address tried; Trio says it in more words, or hides it."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    said = cause if isinstance(cause, OSError) else error
    if said.errno is not None and said.errno > 0:
        return os.strerror(said.errno)
    return said.strerror or str(said)
