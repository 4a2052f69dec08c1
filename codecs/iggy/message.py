"""The rules that messages of SEND_MESSAGES keep, and the ids of those that came without one.

How messages lie on the wire is declared in `wire.SEND_MESSAGES`, and code generated from it cuts
them into columns; no object is made a message. What is checked here is checked for whole columns.
"""

from __future__ import annotations

import struct
from hashlib import shake_128
from typing import TYPE_CHECKING, Final

from dragoman.codecs.iggy import error
from dragoman.codecs.iggy.command import FIELD_BYTES_MAX, HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.core.column import VarColumn

_LENGTH = struct.Struct("<I").unpack_from
NO_ID: Final = bytes(16)
"""The id by which a client asks the server to make one."""
KIND_MAX: Final = 15
_VERSION_4 = bytes([0x40 | octet & 0x0F for octet in range(256)])
_VARIANT = bytes([0x80 | octet & 0x3F for octet in range(256)])


class Bad(Exception):
    """What a peer sent cannot be accepted; never leaves the dialect.

    Args:
        number: The error number that answers it.
        detail: One sentence for logs.
    """

    def __init__(self, number: int, detail: str) -> None:
        super().__init__(detail)
        self.number = number
        self.detail = detail


class IdSource:
    """Makes the ids of messages that came without one.

    A codec rolls no dice: what is unpredictable here is the connection's token, and a counter keeps
    the ids of one connection apart. An id has the form of a random UUID, in its byte order.
    """

    __slots__ = ("_taken", "_token")

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._taken = 0

    def take(self, count: int) -> bytes:
        """`count` new ids, joined."""
        seed = self._token + self._taken.to_bytes(8, "little")
        self._taken += 1
        ids = bytearray(shake_128(seed).digest(16 * count))
        ids[6::16] = ids[6::16].translate(_VERSION_4)
        ids[8::16] = ids[8::16].translate(_VARIANT)
        return bytes(ids)

    def fill(self, ids: bytes) -> bytes:
        """The same ids with a new one in place of every zero one."""
        if ids.find(NO_ID) < 0:
            return ids
        if len(ids) == 16 or not ids.strip(b"\0"):
            return self.take(len(ids) // 16)
        each = [ids[at : at + 16] for at in range(0, len(ids), 16)]
        missing = [index for index, one in enumerate(each) if one == NO_ID]
        fresh = self.take(len(missing))
        for at, index in enumerate(missing):
            each[index] = fresh[16 * at : 16 * at + 16]
        return b"".join(each)


def check_payloads(values: VarColumn, count: int) -> None:
    """Refuses empty payloads, and more of them than one request may bring.

    Raises:
        Bad: 4024 or 4022.
    """
    if values.stride is None:
        offsets = values.offsets
        if len(set(offsets)) != count + 1:
            raise Bad(error.EMPTY_PAYLOAD, "a message has an empty payload")
    elif not values.stride:
        raise Bad(error.EMPTY_PAYLOAD, "a message has an empty payload")
    if len(values.blob) > PAYLOAD_BYTES_MAX:
        raise Bad(
            error.TOO_BIG_PAYLOAD,
            f"payloads of {len(values.blob)} bytes; {PAYLOAD_BYTES_MAX} are allowed",
        )


def check_headers(headers: Iterable[bytes]) -> None:
    """Refuses headers that are not what the dialect allows; equal ones are looked at once.

    Raises:
        Bad: 3, 4018, 4019 or 4017.
    """
    sizes: dict[bytes, int] = {}
    total = 0
    for raw in headers:
        size = sizes.get(raw)
        if size is None:
            size = sizes[raw] = _value_bytes(raw)
        total += size
    if total > HEADER_BYTES_MAX:
        raise Bad(
            error.TOO_BIG_HEADERS,
            f"header values of {total} bytes; {HEADER_BYTES_MAX} are allowed",
        )


def _value_bytes(raw: bytes) -> int:
    """The bytes of all header values of one message, which are checked on the way."""
    at, end, total = 0, len(raw), 0
    try:
        while at < end:
            (size,) = _LENGTH(raw, at)
            if not 0 < size <= FIELD_BYTES_MAX:
                raise Bad(error.INVALID_HEADER_KEY, f"a header key of {size} bytes")
            kind_at = at + 4 + size
            raw[at + 4 : kind_at].decode()
            kind = raw[kind_at]
            if not 0 < kind <= KIND_MAX:
                raise Bad(error.INVALID_COMMAND, f"a header of kind {kind}")
            (size,) = _LENGTH(raw, kind_at + 1)
            if not 0 < size <= FIELD_BYTES_MAX:
                raise Bad(error.INVALID_HEADER_VALUE, f"a header value of {size} bytes")
            at = kind_at + 5 + size
            total += size
    except UnicodeDecodeError:
        raise Bad(error.INVALID_HEADER_KEY, "a header key is not UTF-8") from None
    except (struct.error, IndexError):
        at = end + 1
    if at != end:
        raise Bad(error.INVALID_COMMAND, "a message's headers do not fill their length")
    return total
