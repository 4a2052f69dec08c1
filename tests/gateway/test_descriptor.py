from __future__ import annotations

import resource
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from dragoman.core.storage.options import StorageOptions
from dragoman.gateway.config import AdminConfig, Config, ListenerConfig
from dragoman.gateway.descriptor import DESCRIPTORS_OWN, fit_connections, raise_descriptor_limit
from dragoman.gateway.table import ConfigError

FILES = 100


def config_of(*limits: int, chosen: bool = False) -> Config:
    return Config(
        admin=AdminConfig(enabled=False),
        storage=StorageOptions(open_files_max=FILES),
        listeners=tuple(
            ListenerConfig(
                dialect=f"d{index}",
                port=0,
                connections_max=limit,
                connections_chosen=chosen,
                idle_timeout_s=0,
                frame_bytes_max=1024,
            )
            for index, limit in enumerate(limits)
        ),
    )


def limits_of(config: Config) -> list[int]:
    return [listener.connections_max for listener in config.listeners]


def test_limits_that_fit_stay() -> None:
    with capture_logs() as log:
        assert limits_of(fit_connections(config_of(1000, 5000), 10_000)) == [1000, 5000]
    assert not log


def test_limits_that_nobody_chose_are_lowered_the_largest_first() -> None:
    with capture_logs() as log:
        fitted = fit_connections(config_of(5000, 100, 5000), DESCRIPTORS_OWN + FILES + 1100)
    assert limits_of(fitted) == [500, 100, 500]
    (said,) = log
    assert {name: said.get(name) for name in ("d0", "d1", "d2")} == {
        "d0": 500,
        "d1": None,
        "d2": 500,
    }


def test_the_admin_port_has_its_share() -> None:
    config = replace(config_of(5000), admin=AdminConfig(connections_max=30))
    with capture_logs():
        assert limits_of(fit_connections(config, DESCRIPTORS_OWN + FILES + 130)) == [100]


def test_chosen_limits_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"need 10164 descriptors and the system allows 1000"):
        fit_connections(config_of(5000, 5000, chosen=True), 1000)


def test_a_system_that_grants_next_to_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="the system allows 160"):
        fit_connections(config_of(5000), DESCRIPTORS_OWN + FILES - 4)


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        granted = raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == granted
        assert granted >= before[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
