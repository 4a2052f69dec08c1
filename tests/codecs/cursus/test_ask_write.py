"""What publishes ask of core; their answers on the wire are vectors."""

from __future__ import annotations

import pytest

from dragoman.codecs.base import Asked, Offload
from dragoman.core import calls
from dragoman.core.dedupe import HASHED_HERE_MAX, digest_of
from support.asked import asked, codec, refused
from support.cursus import framed


def test_only_publishes_of_the_document_have_a_window_of_payloads() -> None:
    for text, dedupe in (
        ("PUBLISH t x", True),
        (b"\0\1tx", True),
        ("PUBLISH topic=t producerId=p message=x", False),
    ):
        request = asked(text).request
        assert isinstance(request, calls.Produce)
        assert (request.dedupe, request.digest) == (dedupe, b"")


@pytest.mark.parametrize("begins", [b"PUBLISH t ", b"\0\1t"])
def test_a_long_payload_is_hashed_in_a_thread(begins: bytes) -> None:
    payload = bytes(HASHED_HERE_MAX + 1)
    (heard,) = codec().receive(framed(begins + payload))
    assert isinstance(heard, Offload)
    (produce,) = heard.call()
    assert isinstance(produce, Asked)
    assert isinstance(produce.request, calls.Produce)
    assert produce.request.digest == digest_of(payload)


def test_a_publish_says_whether_it_is_idempotent() -> None:
    for tail, idempotent in (("", False), ("isIdempotent=true ", True)):
        request = asked(f"PUBLISH topic=t producerId=p {tail}message=x").request
        assert isinstance(request, calls.Produce)
        assert request.idempotent is idempotent


def test_a_publish_names_its_partition_or_its_key_or_neither() -> None:
    def route(tail: str) -> calls.Route:
        request = asked(f"PUBLISH topic=t producerId=p {tail}message=x").request
        assert isinstance(request, calls.Produce)
        return request.route

    assert route("") == calls.ROUND_ROBIN
    assert route("partition=3 key=a ") == 3
    assert route("key=a ") == calls.ByHash(12638187200555641996)


def test_a_key_that_would_take_long_to_hash_is_refused() -> None:
    text = f"PUBLISH topic=t producerId=p key={'k' * 4097} message=x"
    assert refused(text) == "invalid_key bytes=4097 limit=4096"
