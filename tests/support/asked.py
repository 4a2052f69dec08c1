"""What a Cursus codec makes of one text command."""

from __future__ import annotations

from typing import Any

from dragoman.codecs.base import Asked, Facts, Offload, Refused
from dragoman.codecs.cursus.codec import CursusCodec
from dragoman.codecs.cursus.dialect import DIALECT
from dragoman.codecs.rendering import RenderingCache
from support.cursus import framed


def codec(**options: Any) -> CursusCodec:
    facts = Facts(
        limits=DIALECT.limits,
        renderings=RenderingCache(),
        local=("127.0.0.1", 9000),
        options=DIALECT.options(options),
        token=b"token",
    )
    return CursusCodec(facts)


def asked(text: str | bytes, **options: Any) -> Asked:
    heard = codec(**options).receive(framed(text))[0]
    assert isinstance(heard, Asked), heard
    return heard


def refused(text: str | bytes) -> str:
    heard = codec().receive(framed(text))[0]
    if isinstance(heard, Offload):
        heard = heard.call()[0]
    assert isinstance(heard, Refused), heard
    wording: str = heard.tag.wording
    return wording
