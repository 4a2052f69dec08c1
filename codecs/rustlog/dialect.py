"""What the gateway and the clients need to know about RustLog."""

from __future__ import annotations

from dragoman.codecs.base import Dialect, Limits, no_options
from dragoman.codecs.rustlog.codec import RustLogCodec
from dragoman.codecs.rustlog.speaker import RustLogSpeaker
from dragoman.codecs.rustlog.translate import ERRORS
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX

DIALECT = Dialect(
    name="rustlog",
    port=9093,
    limits=Limits(frame_bytes_max=FRAME_BYTES_MAX, reply_bytes_max=FRAME_BYTES_MAX),
    codec=RustLogCodec,
    speaker=RustLogSpeaker,
    errors=ERRORS,
    options=no_options,
)
