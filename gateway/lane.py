"""All connections of one listener, plain or under TLS, served by one Trio task.

The lane owns a selector; Trio waits for the selector's own descriptor, then every ready socket is
read, answered and written without a task switch: 2.7 us a request of the server's time, where a
task with a stream each costs 16. A round ends when every ready socket had one turn or after 5 ms,
and the next one goes on where it stopped.

A selector refuses an empty interest, so a connection that only waits is unregistered. A socket at
the end of its stream stays readable for ever, so its read interest goes for good.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import selectors
import socket
import termios
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING

import structlog
import trio

from dragoman.gateway.carrier import LINGER_US, SLOW_READER_US, Pulse, overdue
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.inflow import Inflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.clock import Now
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.session import Session

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
ROUND_NS_MAX = 5_000_000
"""A round's length; then every other task has its turn."""
TURN_NS_MAX = 2_500_000
"""A connection whose turn takes longer is read in smaller pieces."""
RECEIVE_BYTES_MIN = 16 * 1024
RECEIVE_BYTES_MAX = 1024 * 1024
BUFFERS_MAX = 1024
"""Buffers of one `sendmsg`: IOV_MAX of Linux and macOS."""
JOIN_BYTES_MAX = 4096
"""Up to so many bytes, joining buffers costs less than telling the kernel of each."""

_log = structlog.get_logger("dragoman.lane")


class Connection:
    """One socket with its session. Only its lane touches it."""

    __slots__ = (
        "charged",
        "closed",
        "ended",
        "interest",
        "lane",
        "lingers_us",
        "pulse",
        "receive_bytes",
        "session",
        "socket",
    )

    def __init__(self, lane: Lane, sock: socket.socket, session: Session, now: Now) -> None:
        self.lane = lane
        self.socket = sock
        self.session = session
        self.pulse = Pulse(now.mono_us)
        self.interest = 0
        self.receive_bytes = RECEIVE_BYTES_MIN
        self.charged = 0
        self.ended = False
        self.closed = False
        self.lingers_us = 0

    def flush(self, now: Now) -> None:
        """Its session has something to send, or changed what it waits for."""
        if not self.closed:
            self.lane.attend(self, now)

    def willing(self) -> bool:
        """Whether it would be read, were there memory for it."""
        return self.lane.would_read(self)

    def read_on(self, now: Now) -> None:
        """There is memory for the rest of its frame."""
        self.flush(now)

    def backlog(self) -> int:
        """Bytes that the kernel has received for it."""
        return unread(self.socket)

    def shed(self, reason: str, now: Now) -> None:
        """Closes it after what was said already."""
        self.lane.shed(self, reason, now)


class Lane:
    """Serves connections until cancelled.

    Args:
        idle_us: Close a connection that owes and is owed nothing after so long; 0 never.
        slow_reader_us: Close a reader that takes nothing of what it asked for after so long.
        inflow: The budget of what arrives, shared by all lanes.
        on_closed: Told of every connection that is gone.
    """

    def __init__(
        self,
        flusher: Flusher,
        *,
        idle_us: int = 0,
        slow_reader_us: int = SLOW_READER_US,
        inflow: Inflow | None = None,
        on_closed: Callable[[], None] = lambda: None,
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self._flusher = flusher
        self._idle_us = idle_us
        self._slow_reader_us = slow_reader_us
        self._inflow = Inflow() if inflow is None else inflow
        self._inflow.narrows(self._narrow)
        flusher.relieves(self.wake_resting)
        self._receive_bytes_max = RECEIVE_BYTES_MAX
        self._on_closed = on_closed
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._ready: deque[tuple[selectors.SelectorKey, int]] = deque()
        self._resting: set[Connection] = set()
        self.connections: set[Connection] = set()

    def add(self, sock: socket.socket, session: Session, now: Now) -> Connection:
        """Takes over a connected socket."""
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = Connection(self, sock, session, now)
        session.carrier = connection
        self.connections.add(connection)
        self._watch(connection)
        return connection

    async def run(self) -> None:
        """Serves rounds until cancelled; then every connection is closed."""
        wait_readable = trio.lowlevel.wait_readable
        descriptor = self._selector.fileno()
        try:
            while True:
                if self._ready:
                    await trio.lowlevel.checkpoint()
                else:
                    await wait_readable(descriptor)
                self.round()
        finally:
            self.close()

    def round(self) -> None:
        """Gives ready sockets their turn, then lets the flusher see what they asked."""
        now = self._clock()
        ready = self._ready
        if not ready:
            ready.extend(self._selector.select(0))
        at_ns = monotonic_ns()
        ends_ns = at_ns + ROUND_NS_MAX
        while ready:
            key, events = ready.popleft()
            connection = key.data
            events &= connection.interest
            if events & READ:
                self._read(connection, now)
            elif events:
                self.attend(connection, now)
            began_ns, at_ns = at_ns, monotonic_ns()
            if at_ns - began_ns > TURN_NS_MAX:
                shrunk = connection.receive_bytes >> 2
                connection.receive_bytes = max(shrunk, RECEIVE_BYTES_MIN)
            if at_ns > ends_ns:
                break
        self._flusher.poke(now)

    def sweep(self, now: Now) -> None:
        """Closes what is overdue, sends keep-alives, and looks after who is not watched."""
        for connection in list(self.connections):
            session = connection.session
            if connection.lingers_us:
                if now.mono_us >= connection.lingers_us:
                    self._close(connection, now)
            elif reason := overdue(
                session, connection.pulse, self._idle_us, self._slow_reader_us, now
            ):
                self._tell_closed(connection, reason)
                self._close(connection, now)
            elif connection.interest == 0 and self._vanished(connection):
                self._close(connection, now)
            elif session.follows:
                session.keep_alive(now)
                self.attend(connection, now)

    def wake_resting(self, now: Now) -> None:
        """Reads producers again once the engine is no longer overloaded."""
        if self._resting and not self._flusher.overloaded:
            resting, self._resting = self._resting, set()
            for connection in resting:
                if not connection.closed:
                    self.attend(connection, now)

    def drain(self, now: Now) -> None:
        """Hears no connection any more; each closes once it has what it asked.

        One that is owed nothing closes without lingering: there is no last word to protect.
        """
        for connection in list(self.connections):
            connection.session.drain(now)
            if connection.session.closing and not connection.session.outbox.size:
                self._close(connection, now)
            else:
                self.attend(connection, now)

    def would_read(self, connection: Connection) -> bool:
        """Whether a connection is to be read as far as its session and the engine go."""
        session = connection.session
        return (
            session.wants_read
            and not connection.ended
            and not (session.produces and self._flusher.overloaded)
        )

    def shed(self, connection: Connection, reason: str, now: Now) -> None:
        """Closes one connection after what was said to it already."""
        if connection.closed or connection.lingers_us:
            return
        self._tell_closed(connection, reason)
        connection.session.end()
        if connection.session.outbox.size:
            self._close(connection, now)
        else:
            self.attend(connection, now)

    def close(self) -> None:
        """Closes every connection and the selector."""
        now = self._clock()
        for connection in list(self.connections):
            self._close(connection, now)
        self._selector.close()

    def attend(self, connection: Connection, now: Now) -> None:
        """Sends what a session has, then watches for what it waits for."""
        if connection.lingers_us:
            return
        session = connection.session
        outbox = session.outbox
        if outbox.size and not self._write(connection, now):
            self._close(connection, now)
            return
        if (
            session.listening
            and not outbox.size
            and connection.interest == READ
            and not (self._flusher.overloaded and session.produces)
        ):
            return
        if session.held and not outbox.size:
            session.advance(now)
        if session.offload is not None:
            self._flusher.offload(session)
        if session.paused:
            self._flusher.later(session)
        if session.arrived != connection.charged:
            self._inflow.count(connection, now)
        if session.closing and not outbox.size:
            self._finish(connection, now)
        elif not connection.closed:
            self._watch(connection)

    def _read(self, connection: Connection, now: Now) -> None:
        session = connection.session
        size = connection.receive_bytes
        if connection.charged and not connection.lingers_us:
            if not self._inflow.may_read(connection):
                self._watch(connection)
                return
            if (wanted := session.wanted()) > size:
                size = min(wanted, RECEIVE_BYTES_MAX)
        try:
            data = connection.socket.recv(size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(connection, now)
            return
        if connection.lingers_us:
            if not data:
                self._close(connection, now)
            return
        got = len(data)
        if got >= connection.receive_bytes:
            connection.receive_bytes = min(2 * connection.receive_bytes, self._receive_bytes_max)
        elif got == 0:
            connection.ended = True
        elif got < connection.receive_bytes >> 2:
            connection.receive_bytes = max(connection.receive_bytes >> 1, RECEIVE_BYTES_MIN)
        connection.pulse.heard_us = now.mono_us
        session.received(data, now)
        if session.arrived != connection.charged:
            self._inflow.count(connection, now)
        self.attend(connection, now)

    def _write(self, connection: Connection, now: Now) -> bool:
        """Sends once, as much as the socket takes; False where the connection is broken."""
        outbox = connection.session.outbox
        buffers = outbox.buffers
        try:
            if len(buffers) == 1:
                count = connection.socket.send(buffers[0])
            elif outbox.size <= JOIN_BYTES_MAX:
                count = connection.socket.send(b"".join(buffers))
            elif len(buffers) <= BUFFERS_MAX:
                count = connection.socket.sendmsg(buffers)
            else:
                count = connection.socket.sendmsg(buffers[:BUFFERS_MAX])
        except (BlockingIOError, InterruptedError):
            if not connection.pulse.stalled_us:
                connection.pulse.stalled_us = now.mono_us
            return True
        except OSError:
            return False
        outbox.sent(count)
        connection.session.meter.bytes_out += count
        connection.pulse.heard_us = now.mono_us
        connection.pulse.stalled_us = now.mono_us if outbox.size else 0
        return True

    def _watch(self, connection: Connection) -> None:
        session = connection.session
        interest = 0
        if session.outbox.size:
            interest = WRITE
        if session.wants_read and not connection.ended:
            if session.produces and self._flusher.overloaded:
                self._resting.add(connection)
            elif not connection.charged or self._inflow.may_read(connection):
                interest |= READ
        if interest != connection.interest:
            self._set_interest(connection, interest)

    def _set_interest(self, connection: Connection, interest: int) -> None:
        if connection.interest == 0:
            self._selector.register(connection.socket, interest, connection)
        elif interest == 0:
            self._selector.unregister(connection.socket)
        else:
            self._selector.modify(connection.socket, interest, connection)
        connection.interest = interest

    def _finish(self, connection: Connection, now: Now) -> None:
        """Our last word is said: closes, but reads on for a moment where the peer may still talk,
        because closing a socket with unread bytes resets it and destroys that last word."""
        if connection.ended:
            self._close(connection, now)
            return
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection, now)
            return
        connection.lingers_us = now.mono_us + LINGER_US
        connection.session.gone(now)
        if connection.interest != READ:
            self._set_interest(connection, READ)

    def _close(self, connection: Connection, now: Now) -> None:
        if connection.closed:
            return
        connection.closed = True
        if connection.interest:
            self._set_interest(connection, 0)
        self.connections.discard(connection)
        self._resting.discard(connection)
        self._inflow.forget(connection, now)
        connection.session.gone(now)
        connection.socket.close()
        self._on_closed()

    def _vanished(self, connection: Connection) -> bool:
        """Whether the peer of an unwatched connection was reset meanwhile.

        After the end of its stream only the socket's error says so; a peek sees that end for ever.
        """
        try:
            if connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return True
            connection.socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True
        return False

    def _narrow(self, short: bool) -> None:
        """Reads everybody in small pieces while memory is short."""
        self._receive_bytes_max = RECEIVE_BYTES_MIN if short else RECEIVE_BYTES_MAX
        if short:
            for connection in self.connections:
                connection.receive_bytes = RECEIVE_BYTES_MIN

    def _tell_closed(self, connection: Connection, reason: str) -> None:
        client = connection.session.client
        _log.info(
            "closed", session=client.number, dialect=client.dialect, peer=client.peer, reason=reason
        )


def unread(sock: socket.socket) -> int:
    """Bytes that the kernel holds for a socket's reader; 0 where it is broken."""
    count = array.array("i", [0])
    try:
        fcntl.ioctl(sock, termios.FIONREAD, count)
    except (OSError, ValueError):
        return 0
    return count[0]
