from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.error import ErrorCode
from dragoman.gateway.meter import BOUNDS_US, Histogram
from support.house import ask, open_house
from support.toy import TOY


@pytest.mark.parametrize(
    ("duration_us", "bucket"),
    [(0, 0), (5_000, 0), (5_001, 1), (10_000, 1), (10_000_000, 10), (10_000_001, 11)],
)
def test_a_duration_falls_into_the_first_bucket_that_holds_it(
    duration_us: int, bucket: int
) -> None:
    histogram = Histogram()
    histogram.observe(duration_us)
    assert histogram.buckets().index(1) == bucket
    assert sum(histogram.buckets()) == 1
    assert histogram.sum_us == duration_us
    assert len(histogram.buckets()) == len(BOUNDS_US) + 1


async def test_a_connection_counts_its_bytes_both_ways() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"e hello\n", b"hello\n")
        assert house.last is not None
        meter = house.last.session.meter
        assert (meter.bytes_in, meter.bytes_out) == (8, 6)


async def test_accepted_records_are_timed_and_refused_ones_are_counted_by_code() -> None:
    async with open_house() as house:
        peer = house.connect()
        await ask(peer, b"p a\n", b"ok 0\n")
        await ask(peer, b"p b\n", b"ok 1\n")
        assert house.last is not None
        session = house.last.session
        assert sum(session.meter.latency.buckets()) == 2
        await peer.send_all(b"nonsense\n")
        await peer.receive_some(100)
        assert sum(session.meter.latency.buckets()) == 2
        assert sum(session.meter.refusals.values()) == 1
        assert all(isinstance(code, ErrorCode) for code in session.meter.refusals)


async def test_requests_of_a_connection_that_is_gone_stay_counted() -> None:
    async with open_house() as house:
        session: Any = house.session(TOY)
        now = house.clock()
        session.received(b"e a\ne b\n", now)
        assert (session.requests, session.meter.requests) == (2, 0)
        session.gone(now)
        assert (session.requests, session.meter.requests) == (0, 2)
