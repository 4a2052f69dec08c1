"""What the gateway and the clients need to know about RustLog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import Dialect, Limits
from dragoman.codecs.rustlog.codec import RustLogCodec
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.codecs.rustlog.translate import ERRORS
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOO_LARGE = ("error", "skip")


def options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validates the options of a RustLog listener and fills in the defaults.

    Options:
        too_large: What a fetch does at a record that no reply can hold: `error`, or `skip` it.

    Raises:
        ValueError: An option is unknown, or a value is not its own.
    """
    for name in given:
        if name != "too_large":
            raise ValueError(f"unknown option {name!r}; RustLog has too_large")
    chosen = given.get("too_large", _TOO_LARGE[0])
    if chosen not in _TOO_LARGE:
        raise ValueError(f"too_large is {' or '.join(_TOO_LARGE)}, not {chosen!r}")
    return {"too_large": chosen}


DIALECT = Dialect(
    name="rustlog",
    port=9093,
    limits=Limits(frame_bytes_max=FRAME_BYTES_MAX, reply_bytes_max=FRAME_BYTES_MAX),
    codec=RustLogCodec,
    speaker=RustLogSpeaker,
    errors=ERRORS,
    options=options,
)
