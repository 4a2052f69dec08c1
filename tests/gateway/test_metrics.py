from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from dragoman.codecs.rendering import Rendering
from dragoman.core.calls import CommitOffset, CreateNamespace, CreateTopic
from dragoman.core.lag import Lag, Lags
from dragoman.gateway.config import ListenerConfig
from dragoman.gateway.health import Health, Phase
from dragoman.gateway.listener import Listener
from dragoman.gateway.metric_table import BROKER, DOCUMENT, OWN, STATISTICS
from dragoman.gateway.metrics import Metrics, render
from support.house import House, ask, hear_end, open_house
from support.log import Log, batch
from support.toy import TOY

if TYPE_CHECKING:
    from dragoman.core.interface import LogEngine

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
LISTENER = ListenerConfig(
    dialect="toy", port=0, connections_max=3, idle_timeout_s=60.0, frame_bytes_max=1 << 20
)


def metrics_of(
    house: House, *listeners: Listener, lag_series_max: int = 100, engine: Any = None
) -> Metrics:
    health = Health(house.engine, house.flusher, listeners)
    health.phase = Phase.SERVING
    return Metrics(
        engine or house.engine,
        flusher=house.flusher,
        listeners=listeners,
        renderings=house.renderings,
        inflow=house.inflow,
        health=health,
        lag_series_max=lag_series_max,
        clock=house.clock,
    )


def listener_of(house: House) -> Listener:
    return Listener(
        replace(LISTENER),
        TOY,
        engine=house.engine,
        flusher=house.flusher,
        renderings=house.renderings,
        numbers=itertools.count(1),
        inflow=house.inflow,
        clock=house.clock,
    )


def read(metrics: Metrics) -> Samples:
    """Every sample as a reader of the text has it."""
    text = render(metrics.collect()).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


async def test_every_metric_is_there_under_its_name_with_its_help() -> None:
    async with open_house() as house:
        text = render(metrics_of(house).collect()).decode()
    known = [*DOCUMENT.values(), *BROKER.values(), *OWN.values()]
    known += [metric for name, metric in STATISTICS.items() if name in house.engine.statistics()]
    for metric in known:
        assert f"# HELP {metric.name} {metric.help}\n" in text
        assert f"# TYPE {metric.name} {metric.kind}\n" in text
    assert "process_resident_memory_bytes" in text


async def test_accepted_records_are_counted_under_both_names() -> None:
    async with open_house() as house:
        await ask(house.connect(), b"p a\n", b"ok 0\n")
        samples = read(metrics_of(house))
    for name in ("messages_processed_total", "broker_messages_processed_total"):
        assert value(samples, name) == 1


async def test_publishes_are_timed_into_buckets_that_add_up() -> None:
    async with open_house() as house:
        listener = listener_of(house)
        for duration_us in (100, 6_000, 20_000_000):
            listener.meter.latency.observe(duration_us)
        samples = read(metrics_of(house, listener))
        listener.close()
    for name in ("message_latency_seconds", "broker_message_latency_seconds"):
        ends = [value(samples, f"{name}_bucket", le=end) for end in ("0.005", "0.01", "10", "+Inf")]
        assert ends == [1, 2, 2, 3]
        assert value(samples, f"{name}_count") == 3
        assert value(samples, f"{name}_sum") == pytest.approx(20.0061)
    assert value(samples, "dragoman_produce_latency_seconds_count", dialect="toy") == 3


async def test_a_listener_tells_of_its_connections_bytes_and_refusals() -> None:
    async with open_house() as house:
        listener = listener_of(house)
        house.nursery.start_soon(listener.run)
        async with await trio.open_tcp_stream("127.0.0.1", listener.port) as peer:
            await ask(peer, b"e hello\n", b"hello\n")
            samples = read(metrics_of(house, listener))
            assert value(samples, "dragoman_connections", dialect="toy") == 1
            assert value(samples, "dragoman_received_bytes_total", dialect="toy") == 8
            assert value(samples, "dragoman_sent_bytes_total", dialect="toy") == 6
            assert value(samples, "dragoman_dialect_requests_total", dialect="toy") == 1
            await peer.send_all(b"nonsense\n")
            await peer.send_eof()
            await hear_end(peer)
        samples = read(metrics_of(house, listener))
    refused = [labels for name, labels in samples if name == "dragoman_refusals_total"]
    assert [dict(labels)["dialect"] for labels in refused] == ["toy"]
    assert value(samples, "dragoman_connections_total", dialect="toy") == 1


async def test_the_rate_is_that_of_the_last_seconds() -> None:
    async with open_house() as house:
        engine = _Standing(house.engine)
        metrics = metrics_of(house, engine=engine)
        assert value(read(metrics), "broker_messages_per_second") == 0
        for _ in range(30):
            metrics.note()
            house.ahead_us += 1_000_000
            engine.records += 50
        rate = value(read(metrics), "broker_messages_per_second")
    assert rate == pytest.approx(50, rel=0.05)


async def test_inexact_renderings_are_told_by_dialect() -> None:
    async with open_house() as house:
        house.renderings.put(batch(b"x"), "v1", Rendering(b"x", None, 1, inexact=1))
        samples = read(metrics_of(house))
    assert value(samples, "dragoman_inexact_records_total", rendering="v1") == 1


async def test_groups_lag_by_what_they_have_not_committed_up_to_a_bound() -> None:
    log = Log()
    log.ask(CreateTopic("t", 1))
    log.ask(CreateNamespace("n"))
    log.ask(CreateTopic("u", 1, namespace="n"))
    log.put("t", b"a", b"b", b"c")
    log.ask(CommitOffset("t", "g", ((0, 1),)))
    log.ask(CommitOffset("u", "h", ((0, 0),), namespace="n"))
    async with open_house() as house:
        samples = read(metrics_of(house, engine=log.engine))
        few = read(metrics_of(house, engine=log.engine, lag_series_max=1))
    lag = "broker_consumer_lag"
    assert value(samples, lag, topic="t", partition="0", group="g") == 2
    assert value(samples, lag, topic="n/u", partition="0", group="h") == 0
    assert value(samples, "dragoman_consumer_lag_left_out") == 0
    assert len([name for name, _ in few if name == lag]) == 1
    assert value(few, "dragoman_consumer_lag_left_out") == 1


async def test_labels_that_peers_chose_break_no_line() -> None:
    async with open_house() as house:
        engine = _Standing(house.engine)
        evil = 'g"} 1\nforged 1\n\\'
        engine.listed = [Lag("default", "t", 0, evil, 3)]
        samples = read(metrics_of(house, engine=engine))
    assert value(samples, "broker_consumer_lag", topic="t", partition="0", group=evil) == 3
    assert ("forged", ()) not in samples


class _Standing:
    """An engine whose figures a test sets."""

    def __init__(self, engine: LogEngine) -> None:
        self._engine = engine
        self.records = 0
        self.listed: list[Lag] = []

    def statistics(self) -> dict[str, int | float | str]:
        return {**self._engine.statistics(), "produced_records": self.records}

    def lags(self, count_max: int) -> Lags:
        return Lags(self.listed, 0)
