"""The Cursus protocol as the gateway and the clients find it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dragoman.codecs.base import Dialect, Limits
from dragoman.codecs.compression import NONE, chosen
from dragoman.codecs.cursus.argument import RECORDS_MAX
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.speaker import CursusSpeaker
from dragoman.codecs.cursus.translate import ERRORS
from dragoman.codecs.cursus.wire import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: Final[Mapping[str, Any]] = {
    "legacy_replies": False,
    "consume_style": "frames",
    "auto_create": 0,
    "compression": NONE,
    "subscribe": "push",
    "push_records": RECORDS_MAX,
}
"""What a listener of this dialect does where nothing else is said."""


def options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validates the options of a listener.

    * `legacy_replies`: FETCH_OFFSET answers a bare number, as clients before July 2026 expect.
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
