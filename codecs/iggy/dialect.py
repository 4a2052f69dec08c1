"""Iggy's binary protocol over TCP as the gateway and the clients find it."""

from __future__ import annotations

from dragoman.codecs.base import Dialect, Limits, no_options
from dragoman.codecs.iggy.codec import IggyCodec
from dragoman.codecs.iggy.command import FRAME_BYTES_MAX
from dragoman.codecs.iggy.error import ERRORS
from dragoman.codecs.iggy.speaker import IggySpeaker

DIALECT = Dialect(
    name="iggy",
    port=8090,
    limits=Limits(frame_bytes_max=FRAME_BYTES_MAX, reply_bytes_max=16 * 1024 * 1024),
    codec=IggyCodec,
    speaker=IggySpeaker,
    errors=ERRORS,
    options=no_options,
)
