"""What the commands that talk to a server share: their options, exit codes and ways to print.

Data goes to stdout, a line of JSON a thing; everything else to stderr. Exit codes: 0 done, 1 the
server refused or cannot be reached, 2 the dialect cannot say it or the command line is wrong.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from cyclopts import Parameter

from dragoman.clients.error import ClientError
from dragoman.clients.sync import SyncClient, connect
from dragoman.clients.tls import client_context
from dragoman.codecs.base import Unsayable
from dragoman.codecs.registry import dialect_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.batch import Record

DONE, REFUSED, UNSAYABLE = 0, 1, 2


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Which server to talk to, and how.

    Attributes:
        dialect: The wire language: cursus, v1, iggy or rustlog.
        host: The server's address.
        port: Its port; the dialect's customary one where it is missing.
        tls: Speak TLS, believing the system's authorities; the other three do so too.
        tls_ca: PEM file of the authorities to believe instead.
        tls_cert: PEM file of the certificate to show.
        tls_key: PEM file of its key, where that is not in the same file.
    """

    dialect: str = "cursus"
    host: str = "127.0.0.1"
    port: int | None = None
    tls: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def secured(self) -> dict[str, Any]:
        """What to give `connect` and its like, beside the address.

        Raises:
            ValueError: A file cannot be used.
        """
        files = (self.tls_ca, self.tls_cert, self.tls_key)
        if not self.tls and files == (None, None, None):
            return {}
        return {"tls": client_context(*files)}


At = Annotated[Where, Parameter(name="*")]
HERE = Where()


def talk(where: Where, action: Callable[[SyncClient], None]) -> int:
    """Runs an action on a connected client; returns the exit code and says what went wrong."""

    def connected() -> None:
        with connect(where.dialect, where.host, where.port, **where.secured) as client:
            action(client)

    return guarded(where, connected)


def reach(where: Where) -> None:
    """Raises `Unreachable` at once where nobody listens, instead of after many attempts."""
    with connect(where.dialect, where.host, where.port, **where.secured):
        pass


def guarded(where: Where, action: Callable[[], None]) -> int:
    """Runs an action; returns the exit code and says what went wrong."""
    if where.dialect not in dialect_names():
        names = ", ".join(dialect_names())
        return complain(f"no dialect {where.dialect!r}; there are {names}", UNSAYABLE)
    if where.port is not None and not 0 < where.port <= 65_535:
        return complain(f"{where.port} is not a port", UNSAYABLE)
    try:
        action()
        sys.stdout.flush()
    except Unsayable as error:
        return complain(f"{where.dialect} cannot say this: {error}", UNSAYABLE)
    except ClientError as error:
        return complain(str(error), REFUSED)
    except ValueError as error:
        return complain(str(error), UNSAYABLE)
    return DONE


def complain(sentence: str, code: int) -> int:
    """Says a sentence on stderr; returns the code."""
    print(f"dragoman: {sentence}", file=sys.stderr)
    return code


def told(error: Exception) -> str:
    """An error as a sentence; what the system says comes without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def show(row: dict[str, Any]) -> None:
    """Prints one line of JSON."""
    sys.stdout.buffer.write(orjson.dumps(row) + b"\n")


def record_row(partition: int, record: Record) -> dict[str, Any]:
    """A record as JSON: text where it is UTF-8, else base64 and a word that says so."""
    row: dict[str, Any] = {"partition": partition, "offset": record.offset}
    if record.timestamp_us:
        row["timestamp_us"] = record.timestamp_us
    _put_bytes(row, "key", record.key, "key_encoding")
    _put_bytes(row, "value", record.value, "encoding")
    return row


def _put_bytes(row: dict[str, Any], name: str, value: bytes | None, encoding: str) -> None:
    if value is None:
        row[name] = None
        return
    try:
        row[name] = value.decode()
    except UnicodeDecodeError:
        row[name] = b64encode(value).decode()
        row[encoding] = "base64"
