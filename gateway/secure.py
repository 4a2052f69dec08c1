"""A connection under TLS that the lane serves as any other: OpenSSL on the socket itself.

The lane asks a socket for little: to give what is there, to take what it can, and to say that
either would block. `SecureSocket` answers so, and no task stands between. A record is the unit: it
is read whole, because what OpenSSL kept of it no selector would tell of, and a record that the
system did not take is offered again byte for byte, as OpenSSL demands.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.column import Buffer

RECORD_BYTES = 16 * 1024
"""The most that one record of TLS carries; who reads asks for no less."""
SEND_BYTES_MAX = 256 * 1024
"""What is encrypted at once, so that one reader does not hold up the others."""
RECEIVE_BYTES = 64 * 1024


class SecureSocket(ssl.SSLSocket):
    """A non-blocking socket under TLS, made by a context whose `sslsocket_class` it is."""

    _again = b""
    """The record that the system did not take: the first of what is to be sent."""
    _is_plain = True
    """TLS has not begun, or we have said our last word: what comes is read as it is."""

    def do_handshake(self, block: bool = False) -> None:
        """Goes on with the handshake; all that comes from now on is TLS."""
        self._is_plain = False
        super().do_handshake(block)

    def recv(self, buflen: int = RECORD_BYTES, flags: int = 0) -> bytes:
        """What has arrived, in whole records; b"" at the end.

        Args:
            buflen: At least a record, or what is left of one no selector tells of.
            flags: With any, the socket below is asked.

        Raises:
            BlockingIOError: Nothing has.
            OSError: The connection is broken, or what came is no TLS.
        """
        if flags or self._is_plain:
            return socket.socket.recv(self, buflen, flags)
        try:
            data = self.read(min(buflen, RECORD_BYTES))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        if len(data) < RECORD_BYTES:
            return data
        pieces = [data]
        left = buflen - RECORD_BYTES
        while left >= RECORD_BYTES and len(pieces[-1]) == RECORD_BYTES:
            try:
                pieces.append(self.read(RECORD_BYTES))
            except OSError:  # nothing more, or a fault that the next call meets again
                break
            left -= RECORD_BYTES
        return b"".join(pieces)

    def send(self, data: Any, flags: int = 0) -> int:
        """Sends what the system takes of it; returns how many bytes that are.

        Raises:
            BlockingIOError: It takes none.
            OSError: The connection is broken.
        """
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Iterable[Any], *rest: Any) -> int:  # type: ignore[override]
        """As `send`; what was not taken is the beginning of the next call's bytes."""
        view = memoryview(self._again or _beginning(buffers))
        size = len(view)
        sent = 0
        while sent < size:
            record = view[sent : sent + RECORD_BYTES]
            try:
                sent += super().send(record)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self._again = bytes(record)
                if not sent:
                    raise BlockingIOError from None
                return sent
        self._again = b""
        return sent

    def shutdown(self, how: int) -> None:
        """Says that nothing more comes, in TLS and below; what still arrives is read raw."""
        self._farewell()
        self._is_plain = True
        super().shutdown(how)

    def close(self) -> None:
        """Closes, and says so where it was not said yet."""
        self._farewell()
        super().close()

    def _farewell(self) -> None:
        # It waits for no answer; one that is broken, or was never secure, is not told.
        with contextlib.suppress(OSError, ValueError):
            self.unwrap()


def _beginning(buffers: Iterable[Buffer]) -> Buffer:
    """The first bytes of all buffers as one piece, as many as are sent at once."""
    taken: list[Buffer] = []
    room = SEND_BYTES_MAX
    for buffer in buffers:
        piece = buffer if len(buffer) <= room else memoryview(buffer)[:room]
        taken.append(piece)
        room -= len(piece)
        if not room:
            break
    return taken[0] if len(taken) == 1 else b"".join(taken)


class SecureStream(trio.abc.Stream):
    """The same as a Trio stream, for who has a task for it."""

    def __init__(self, secure: SecureSocket) -> None:
        self.socket = secure

    async def send_all(self, data: Buffer) -> None:
        """Sends everything."""
        await trio.lowlevel.checkpoint()
        view = memoryview(data)
        while view:
            try:
                view = view[self.socket.send(view) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.socket)
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def wait_send_all_might_not_block(self) -> None:
        """Returns once the system would take something."""
        await trio.lowlevel.wait_writable(self.socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Waits for bytes; b"" at the end."""
        await trio.lowlevel.checkpoint()
        while True:
            try:
                return self.socket.recv(RECEIVE_BYTES if max_bytes is None else max_bytes)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.socket)
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Closes it."""
        if self.socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()
        await trio.lowlevel.checkpoint()
