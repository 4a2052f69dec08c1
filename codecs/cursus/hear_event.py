"""What a Cursus server says of streams and snapshots, in core's vocabulary; of either generation.

A stream is two frames: its head, and a batch. Refusals of it are JSON too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.fault import failure_of, refused
from dragoman.core import calls

if TYPE_CHECKING:
    from dragoman.core.error import Failure
    from dragoman.core.event import EventReply, EventRequest

_APPENDED: Final = re.compile(r"OK version=(\d{1,20}) offset=(\d{1,20}) partition=(\d{1,10})")
_SAVED: Final = re.compile(r"OK version=(\d{1,20}) partition=(\d{1,10})")
_VERSION: Final = re.compile(r"(?:OK version=)?(\d{1,20})")


def hear_event(request: EventRequest, text: str) -> EventReply:
    """The reply to a request; of a stream only its head, which the batch completes.

    Raises:
        ProtocolError: The text is none.
    """
    try:
        match request:
            case calls.AppendEvent() if (found := _APPENDED.fullmatch(text)) is not None:
                return calls.EventAppended(*map(int, found.groups()))
            case calls.ReadVersion() if (found := _VERSION.fullmatch(text)) is not None:
                return calls.VersionRead(int(found[1]))
            case calls.SaveSnapshot() if (found := _SAVED.fullmatch(text)) is not None:
                return calls.SnapshotSaved(*map(int, found.groups()))
            case calls.ReadSnapshot():
                told = text.removeprefix("OK snapshot=")
                return calls.SnapshotRead(_snapshot(None if told == "NULL" else json.loads(told)))
            case calls.ReadEvents():
                head = json.loads(text)
                snapshot = _snapshot(head.get("snapshot"))
                return calls.EventsRead(int(head["partition"]), [], snapshot)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as fault:
        raise _unheard(request, text, fault) from None
    raise _unheard(request, text, None)


def hear_head(request: calls.ReadEvents, body: bytes) -> calls.EventsRead | Failure:
    """The head of a stream, or why there is none.

    Raises:
        ProtocolError: The body is neither.
    """
    text = body.decode(errors="replace")
    if (failure := refused(body)) is not None:
        return failure
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise _unheard(request, text, fault) from None
    if isinstance(told, dict) and isinstance(told.get("error"), str):
        return failure_of(told["error"])
    answer = hear_event(request, text)
    assert isinstance(answer, calls.EventsRead)
    return answer


def _snapshot(told: Any) -> calls.Snapshot | None:
    if told is None:
        return None
    payload: str = told["payload"]
    return calls.Snapshot(int(told["version"]), payload.encode(errors="surrogateescape"))


def _unheard(request: EventRequest, text: str, fault: Exception | None) -> ProtocolError:
    why = "" if fault is None else f" ({fault!r})"
    return ProtocolError(f"not a reply to {type(request).__name__}: {text[:64]!r}{why}")
