"""The Cursus protocol as the gateway and the clients find it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from dragoman.codecs.base import Dialect, Limits
from dragoman.codecs.compression import NONE, chosen
from dragoman.codecs.cursus.argument import RECORDS_MAX
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.setting import BadSetting, time_ms
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.codecs.cursus.translate import ERRORS
from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: Final[Mapping[str, Any]] = {
    "legacy_replies": False,
    "reply_layout": "auto",
    "empty_wait": "0ms",
    "consume_style": "frames",
    "auto_create": 0,
    "compression": NONE,
    "subscribe": "push",
    "push_records": RECORDS_MAX,
}
"""What a listener of this dialect does where nothing else is said."""

EMPTY_WAIT_MS_MAX: Final = 1000
"""Published clients give a poll 5 s, but their shutdown waits a second for it and no longer."""


def options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validates the options of a listener.

    * `legacy_replies`: answers are those that clients before July 2026 expect.
    * `reply_layout`: how batches are sent to the published clients: `l3`, `l1`, or `auto`, which is
      `l1` with `legacy_replies` and else `l3`.
    * `empty_wait`: so long a CONSUME that says no `wait_ms` waits for a message, as `500ms`; at
      most a second, since clients that leave wait for it.
    * `consume_style`: what the document's CONSUME answers: `frames` (a frame a record, then the
      connection closes) or `batch` (one batch, and it stays open).
    * `auto_create`: how many partitions a missing topic gets when it is written to; 0 refuses.
    * `compression`: how frames are opened that are nothing else and have no magic: the name of a
      registered compression without one, such as `snappy-block`. Those with one need no option.
    * `subscribe`: what the document's SUBSCRIBE does: `push` (the connection becomes a member and
      is sent new messages) or `register` (the group is made, and nothing else).
    * `push_records`: the most messages of one push of SUBSCRIBE and STREAM.

    Raises:
        ValueError: An option is unknown, or its value is not possible.
    """
    for name in given:
        if name not in DEFAULTS:
            raise ValueError(f"unknown option {name!r}; there are {', '.join(DEFAULTS)}")
    found = {**DEFAULTS, **given}
    if not isinstance(found["legacy_replies"], bool):
        raise ValueError("legacy_replies is true or false")
    if found["reply_layout"] not in ("auto", "l3", "l1"):
        raise ValueError(f"reply_layout is auto, l3 or l1, not {found['reply_layout']!r}")
    _check_wait(found["empty_wait"])
    if found["consume_style"] not in ("frames", "batch"):
        raise ValueError(f"consume_style is frames or batch, not {found['consume_style']!r}")
    count = found["auto_create"]
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 100_000:
        raise ValueError("auto_create is a number of partitions, 0 to 100000")
    chosen(found["compression"])
    if found["subscribe"] not in ("push", "register"):
        raise ValueError(f"subscribe is push or register, not {found['subscribe']!r}")
    count = found["push_records"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= RECORDS_MAX:
        raise ValueError(f"push_records is a number of messages, 1 to {RECORDS_MAX}")
    return found


def _check_wait(value: Any) -> None:
    wait_ms = -1
    if isinstance(value, str):
        with suppress(BadSetting):
            wait_ms = time_ms(value.encode(), "empty_wait")
    if not 0 <= wait_ms <= EMPTY_WAIT_MS_MAX:
        raise ValueError(f"empty_wait is a time of 0ms to 1s, not {value!r}")


def speaker_options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validates the options of a client.

    * `compression`: the name of a registered compression, for the batches that are written.

    Raises:
        ValueError: An option is unknown, or its value is not possible.
    """
    if unknown := given.keys() - {"compression"}:
        raise ValueError(f"unknown option {min(unknown)!r}; there is compression")
    chosen(given.get("compression", NONE))
    return given


DIALECT = Dialect(
    name="cursus",
    port=9000,
    limits=Limits(frame_bytes_max=FRAME_BYTES_MAX, reply_bytes_max=60 * 1024 * 1024),
    codec=CursusCodec,
    speaker=CursusSpeaker,
    errors=ERRORS,
    options=options,
    speaker_options=speaker_options,
    connections_max=1000,
    idle_timeout_s=300.0,
)
