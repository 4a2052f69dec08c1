from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.core.engine import Engine
from dragoman.core.memory import MemoryStore
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.options import StorageOptions
from dragoman.gateway.metric_table import (
    BROKER,
    COUNTER,
    DOCUMENT,
    OWN,
    STATISTICS,
    WORDS,
    document,
)

if TYPE_CHECKING:
    from dragoman.core.store import Store

ALL = [*DOCUMENT.values(), *BROKER.values(), *OWN.values(), *STATISTICS.values()]
PAGE = Path(__file__).parent.parent.parent / "docs" / "METRICS.md"


@pytest.mark.parametrize("kept", ["disk", "memory"])
def test_every_statistic_of_the_engine_has_a_metric(kept: str, tmp_path: Path) -> None:
    store: Store = MemoryStore()
    if kept == "disk":
        store = DiskStore(tmp_path / "data", StorageOptions())
    engine = Engine(store)
    assert not set(engine.statistics()) - set(STATISTICS) - WORDS
    engine.close()


def test_every_metric_is_named_once() -> None:
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_a_name_and_a_help_are_in_order(metric: object) -> None:
    name, kind, help_, labels = metric  # type: ignore[misc]
    assert name.endswith("_total") == (kind == COUNTER)
    assert help_.endswith(".")
    assert all(label.isidentifier() for label in labels)


def test_the_page_of_metrics_is_what_the_table_makes() -> None:
    assert PAGE.read_text() == document()
