"""Prometheus metrics, gathered when somebody asks: nothing is counted twice, nothing pushed.

`collect` runs on the event loop and takes all figures of one moment; `render` makes text of them
and may run in a thread.
"""

from __future__ import annotations

import platform
from collections import deque
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import trio
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from dragoman.core.name import DEFAULT_NAMESPACE
from dragoman.gateway.clock import read_clocks
from dragoman.gateway.meter import BOUNDS_US
from dragoman.gateway.metric_table import (
    BROKER,
    COUNTER,
    DOCUMENT,
    HISTOGRAM,
    OWN,
    STATISTICS,
    WORDS,
    Metric,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prometheus_client.metrics_core import Metric as Family

    from dragoman.codecs.rendering import RenderingCache
    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.gateway.flusher import Flusher
    from dragoman.gateway.health import Health
    from dragoman.gateway.inflow import Inflow
    from dragoman.gateway.listener import Listener
    from dragoman.gateway.meter import Histogram

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
RATE_SECONDS = 10
"""Over how long `broker_messages_per_second` is taken."""
_ENDS = [f"{bound / 1_000_000:g}" for bound in BOUNDS_US] + ["+Inf"]

Samples = list[tuple[tuple[str, ...], float]]


class Metrics:
    """Reads a server's figures.

    Args:
        lag_series_max: How many series of lag there may be.
        admin_connections: Asked for the admin port's own.
    """

    def __init__(
        self,
        engine: LogEngine,
        *,
        flusher: Flusher,
        listeners: Sequence[Listener],
        renderings: RenderingCache,
        inflow: Inflow,
        health: Health,
        lag_series_max: int,
        admin_connections: Callable[[], int] = lambda: 0,
        clock: Callable[[], Now] = read_clocks,
    ) -> None:
        self._engine = engine
        self._flusher = flusher
        self._listeners = listeners
        self._renderings = renderings
        self._inflow = inflow
        self._health = health
        self._lag_series_max = lag_series_max
        self._admin_connections = admin_connections
        self._clock = clock
        self._seen: deque[tuple[int, int]] = deque(maxlen=RATE_SECONDS + 1)
        self._machine = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._machine)

    async def run(self) -> None:
        """Notes once a second how much was accepted, until cancelled."""
        while True:
            self.note()
            await trio.sleep(1)

    def note(self) -> None:
        """Notes how much was accepted until now."""
        records = int(self._engine.statistics().get("produced_records", 0))
        self._seen.append((self._clock().mono_us, records))

    def collect(self) -> list[Family]:
        """Everything as it stands now."""
        figures = self._engine.statistics()
        families = [
            *self._document(figures),
            *self._broker(figures),
            *self._listening(),
            *self._gateway(figures),
            *_statistics(figures),
        ]
        return [*families, *self._machine.collect()]

    def _document(self, figures: Mapping[str, int | float | str]) -> Iterable[Family]:
        latencies = [listener.meter.latency for listener in self._listeners]
        for names in (DOCUMENT, BROKER):
            yield _family(names["processed"], [((), _number(figures, "produced_records"))])
            yield _histogram(names["latency"], [((), latencies)])
            yield _family(names["cleanups"], [((), _number(figures, "cleanups"))])

    def _broker(self, figures: Mapping[str, int | float | str]) -> Iterable[Family]:
        yield _family(BROKER["rate"], [((), self._rate())])
        yield _family(BROKER["queue"], [((), _number(figures, "waiting"))])
        yield _family(BROKER["gaps"], [((), _number(figures, "sequence_gaps"))])
        yield _family(BROKER["duplicates"], [((), _number(figures, "duplicates"))])
        lags = self._engine.lags(self._lag_series_max)
        samples: Samples = []
        for namespace, topic, partition, group, records in lags.listed:
            name = topic if namespace == DEFAULT_NAMESPACE else f"{namespace}/{topic}"
            samples.append(((name, str(partition), group), records))
        yield _family(BROKER["lag"], samples)
        yield _family(OWN["lag_left_out"], [((), lags.left_out)])

    def _listening(self) -> Iterable[Family]:
        doors = [(listener, (listener.dialect.name,)) for listener in self._listeners]
        for name, read in _OF_LISTENERS.items():
            yield _family(OWN[name], [(labels, read(listener)) for listener, labels in doors])
        yield _family(
            OWN["refusals"],
            [
                ((*labels, code.name), count)
                for listener, labels in doors
                for code, count in listener.meter.refusals.items()
            ],
        )
        yield _histogram(
            OWN["produce_latency"],
            [(labels, [listener.meter.latency]) for listener, labels in doors],
        )

    def _gateway(self, figures: Mapping[str, int | float | str]) -> Iterable[Family]:
        build = (version("dragoman"), platform.python_version())
        store = (str(figures.get("store", "")), str(figures.get("store_durability", "")))
        yield _family(OWN["build"], [(build, 1)])
        yield _family(OWN["store"], [(store, 1)])
        checks = self._health.checks()
        yield _family(OWN["ready"], [((name,), float(not why)) for name, why in checks.items()])
        yield _histogram(OWN["flush_latency"], [((), [self._flusher.latency])])
        yield _family(OWN["overloaded"], [((), float(self._flusher.overloaded))])
        inexact = self._renderings.inexact.items()
        yield _family(OWN["inexact"], [((key,), count) for key, count in inexact])
        yield _family(OWN["rendering_bytes"], [((), self._renderings.bytes_held)])
        yield _family(OWN["inflow_bytes"], [((), self._inflow.bytes_held)])
        yield _family(OWN["sheds"], [((), self._inflow.sheds)])
        yield _family(OWN["admin_connections"], [((), self._admin_connections())])

    def _rate(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (first_us, first), (last_us, last) = self._seen[0], self._seen[-1]
        return 1_000_000 * (last - first) / max(last_us - first_us, 1)


_OF_LISTENERS: dict[str, Callable[[Listener], int]] = {
    "connections": lambda listener: listener.connections,
    "connections_max": lambda listener: listener.config.connections_max,
    "accepted": lambda listener: listener.accepted,
    "handshakes_refused": lambda listener: listener.handshakes_refused,
    "dialect_requests": lambda listener: listener.requests,
    "received": lambda listener: listener.meter.bytes_in,
    "sent": lambda listener: listener.meter.bytes_out,
}


class _Collected:
    """Families as the library's renderer wants them."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Sequence[Family]:
        """The families."""
        return self._families


def render(families: Sequence[Family]) -> bytes:
    """Prometheus text."""
    return generate_latest(cast("CollectorRegistry", _Collected(families)))


def _statistics(figures: Mapping[str, int | float | str]) -> Iterable[Family]:
    """Every statistic; words tell by 0 or 1 whether there is something to say. One that the table
    does not name, of another engine than ours, is a gauge."""
    for name, value in figures.items():
        if name in WORDS:
            continue
        metric = STATISTICS.get(name)
        if metric is None:
            metric = Metric(f"dragoman_{name}", "gauge", "A statistic of the engine.")
        yield _family(metric, [((), float(bool(value)) if isinstance(value, str) else value)])


def _number(figures: Mapping[str, int | float | str], name: str) -> float:
    return float(figures.get(name, 0))


def _family(metric: Metric, samples: Samples) -> Family:
    kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _histogram(
    metric: Metric, series: Sequence[tuple[tuple[str, ...], Sequence[Histogram]]]
) -> Family:
    assert metric.kind == HISTOGRAM, "the table says what is a histogram"
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, parts in series:
        counts = [sum(bucket) for bucket in zip(*(one.buckets() for one in parts), strict=True)]
        counts = counts or [0] * len(_ENDS)
        buckets = list(zip(_ENDS, map(float, accumulate(counts)), strict=True))
        family.add_metric(labels, buckets, sum_value=sum(one.sum_us for one in parts) / 1_000_000)
    return family
