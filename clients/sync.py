"""The synchronous face of the client: the same as `clients.connection`, over a blocking socket.

::

    with connect("v1") as client:
        client.produce("orders", [b"one"], keys=[b"k"])
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from dragoman.clients import group as grouping
from dragoman.clients import stream as streams
from dragoman.clients import task as tasks
from dragoman.clients.appending import produce
from dragoman.clients.connection import (
    CONNECT_TIMEOUT_S,
    POLL_MAX_S,
    POLL_MIN_S,
    READ_TIMEOUT_S,
    RECEIVE_BYTES,
)
from dragoman.clients.error import ConnectionLost, NoAnswer, PartlySent, RequestRefused, Unreachable
from dragoman.clients.tls import ending, refusal
from dragoman.codecs.base import ProtocolError, Unsayable
from dragoman.codecs.registry import dialect as dialect_of
from dragoman.core import calls
from dragoman.core.error import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class SyncClient:
    """One connection, made by `connect`; not to be shared between threads.

    Args:
        connected: A socket to a server of the speaker's dialect.
        speaker: The client's half of the wire.
        address: For messages.
    """

    def __init__(
        self,
        connected: socket.socket,
        speaker: Speaker,
        *,
        address: str = "the server",
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.address = address
        self.read_timeout_s = read_timeout_s
        self._socket = connected
        self._speaker = speaker
        self._heard: deque[Told] = deque()
        self._produced = count()
        connected.settimeout(read_timeout_s)

    def ask(self, request: Request) -> Reply:
        """Sends a request and waits for its reply.

        Raises:
            Unsayable: The dialect has no words for it; nothing was sent.
            RequestRefused: The server refused it.
            ConnectionLost, NoAnswer: The connection is of no more use.
        """
        (reply,) = self.ask_many([request])
        if isinstance(reply, Failure):
            raise RequestRefused(reply)
        return reply

    def ask_many(self, requests: Sequence[Request]) -> list[Reply | Failure]:
        """Sends requests together and waits for all their replies, in order.

        Raises:
            Unsayable: The dialect has no words for the first; nothing was sent.
            PartlySent: It has none for a later one; those before it were served.
        """
        data, owed, unsayable = tasks.rendered(self._speaker, requests)
        replies: list[Reply | Failure] = []
        if owed:
            self._send(data)
            while len(replies) < owed:
                told = self._hear()
                if not told.push:
                    replies.append(told.reply)
        if unsayable is not None:
            raise PartlySent(unsayable, replies) if owed else unsayable
        return replies

    def run(self, task: Task[Result]) -> Result:
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
                replies = self.ask_many(requests)
                for reply in replies:
                    if isinstance(reply, Failure):
                        raise RequestRefused(reply)
            except (Unsayable, RequestRefused) as error:
                send, argument = task.throw, error
            else:
                send, argument = task.send, replies

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except TimeoutError:
            self.close()
            raise NoAnswer(f"{self.address} took no data for {self.read_timeout_s} s") from None
        except OSError as error:
            raise ConnectionLost(f"{self.address} {ending(error)}") from error

    def _hear(self) -> Told:
        """The next thing that the server says."""
        while not self._heard:
            try:
                data = self._socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                self.close()
                waited = f"within {self.read_timeout_s} s"
                raise NoAnswer(f"{self.address} did not answer {waited}") from None
            except OSError as error:
                raise ConnectionLost(f"{self.address} {ending(error)}") from error
            if not data:
                raise ConnectionLost(f"{self.address} closed the connection")
            try:
                self._heard += self._speaker.receive(data)
            except ProtocolError as error:
                self.close()
                raise ConnectionLost(f"{self.address} broke the protocol: {error}") from error
        return self._heard.popleft()

    def follow(
        self, topic: str, partition: int = 0, offset: Offset = tasks.LATEST
    ) -> Iterator[Followed]:
        """Yields the partition's records as they become visible, for ever.

        A dialect that pushes has the whole connection until it is closed: open one a follow. One
        that does not is asked again and again.
        """
        request = tasks.follow_request(topic, partition, offset, idle_us=2_000_000)
        try:
            rendered = self._speaker.ask(request)
        except Unsayable:
            yield from self._follow_by_asking(topic, partition, offset)
        else:
            self._send(b"".join(map(bytes, rendered)))
            self._socket.settimeout(None)
            while True:
                reply = self._hear().reply
                if isinstance(reply, Failure):
                    raise RequestRefused(reply)
                if isinstance(reply, calls.Followed | calls.Fetched) and reply.slices:
                    yield tasks.as_followed(reply)

    def _follow_by_asking(self, topic: str, partition: int, offset: Offset) -> Iterator[Followed]:
        at = self.run(tasks.find_start(topic, partition, offset))
        pause_s = POLL_MIN_S
        while True:
            fetched = self.run(tasks.fetch(topic, partition, at))
            if fetched.slices:
                at = fetched.next_offset
                pause_s = POLL_MIN_S
                yield tasks.as_followed(fetched)
            else:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, POLL_MAX_S)

    def produce(
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
        return self.run(produce(topic, values, keys, partition, acks=acks, turn=turn))

    def fetch(
        self,
        topic: str,
        partition: int = 0,
        offset: Offset = tasks.EARLIEST,
        *,
        records_max: int = tasks.RECORDS_MAX,
    ) -> list[Record]:
        """The records from an offset on, as many as one answer holds."""
        task = tasks.fetch(topic, partition, offset, records_max=records_max)
        return tasks.records_of(self.run(task))

    def create_topic(
        self, topic: str, partitions: int, config: TopicConfig | None = None
    ) -> TopicDescription:
        """Makes a topic, with settings where the dialect has words for them."""
        return self.run(tasks.create_topic(topic, partitions, config))

    def delete_topic(self, topic: str) -> None:
        """Deletes a topic."""
        self.run(tasks.delete_topic(topic))

    def delete_records(self, topic: str, partition: int, before: int = -1) -> int:
        """Deletes a partition's records below an offset, -1 for all; returns the new log start."""
        return self.run(tasks.delete_records(topic, partition, before))

    def topics(self) -> list[TopicDescription]:
        """All topics, as far as the dialect tells."""
        return self.run(tasks.list_topics())

    def describe(self, topic: str) -> TopicDescription:
        """One topic, as far as the dialect tells."""
        return self.run(tasks.describe_topic(topic))

    def commit(
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
        self.run(task)

    def committed(self, topic: str, group: str, partition: int) -> int | None:
        """The next offset that the group is to read, or None."""
        return self.run(tasks.committed(topic, group, partition))

    def join(self, topic: str, group: str, member: str) -> GroupJoined:
        """Becomes a member of a group, made where it has to be."""
        return self.run(tasks.join(topic, group, member))

    def heartbeat(self, topic: str, group: str, member: str, generation: int) -> None:
        """Keeps a member alive; in Iggy the connection does."""
        self.run(tasks.heartbeat(topic, group, member, generation))

    def leave(self, topic: str, group: str, member: str, generation: int | None = None) -> None:
        """Gives up membership."""
        self.run(tasks.leave(topic, group, member, generation))

    def poll(self, topic: str, group: str, *, records_max: int = tasks.RECORDS_MAX) -> Fetched:
        """Reads on in the next of the member's partitions, and commits what it read (Iggy)."""
        return self.run(tasks.poll(topic, group, records_max=records_max))

    def groups(self, topic: str | None = None) -> list[GroupDescription]:
        """The groups of a topic, or of all, as far as the dialect tells."""
        return self.run(grouping.list_groups(topic))

    def describe_group(self, topic: str, group: str) -> GroupDescription:
        """One group, as far as the dialect tells."""
        return self.run(grouping.describe_group(topic, group))

    def group_progress(self, topic: str, group: GroupDescription) -> list[Progress]:
        """How far a group has come in each partition of its topic."""
        return self.run(grouping.progress(topic, group))

    def delete_group(self, topic: str, group: str) -> None:
        """Deletes a group with its members and committed offsets (Iggy)."""
        self.run(grouping.delete_group(topic, group))

    def append_event(
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
        return self.run(task)

    def read_events(self, topic: str, key: bytes, from_version: int = 0) -> Stream:
        """A stream's events from a version on; 0 begins behind its snapshot (Cursus)."""
        return self.run(streams.read_events(topic, key, from_version))

    def stream_version(self, topic: str, key: bytes) -> int:
        """The version of a stream's newest event; 0 where it has none (Cursus)."""
        return self.run(streams.stream_version(topic, key))

    def save_snapshot(self, topic: str, key: bytes, version: int, payload: bytes) -> None:
        """Keeps a state of a stream behind the event of this version (Cursus)."""
        self.run(streams.save_snapshot(topic, key, version, payload))

    def read_snapshot(self, topic: str, key: bytes) -> Snapshot | None:
        """The newest snapshot of a stream, or None (Cursus)."""
        return self.run(streams.read_snapshot(topic, key))

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


@contextmanager
def connect(
    dialect: str,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> Iterator[SyncClient]:
    """A client of this dialect, connected; `port` None is the dialect's customary one.

    Args:
        tls: As for `open_client`.
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
    try:
        connected = socket.create_connection((host, port), connect_timeout_s)
        if tls is not None:
            connected = _shake_hands(connected, tls, host)
    except TimeoutError:
        raise Unreachable(f"{address}: no connection within {connect_timeout_s} s") from None
    except ssl.SSLError as error:
        raise Unreachable(f"{address}: {refusal(error)}") from error
    except OSError as error:
        raise Unreachable(f"{address}: {error.strerror or error}") from error
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = SyncClient(connected, speaker, address=address, read_timeout_s=read_timeout_s)
    try:
        yield client
    finally:
        client.close()


def _shake_hands(plain: socket.socket, tls: ssl.SSLContext, host: str) -> socket.socket:
    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
