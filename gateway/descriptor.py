"""Fits the limits of connections to the descriptors that the system grants this process.

Limits that an operator chose are kept or refused; the dialects' own are lowered to what is left, so
that a system with a small limit still starts with a warning instead of a refusal.
"""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from dragoman.gateway.config import Config

DESCRIPTORS_OWN = 64
"""Descriptors for journal, catalog, listeners, log and the interpreter itself."""
UNLIMITED = 1 << 20
"""What is asked of a system that names no limit."""
CONNECTIONS_MIN = 16
"""A listener that cannot have so many connections is not worth starting."""

_log = structlog.get_logger("dragoman.descriptor")


def fit_connections(config: Config, descriptors: int) -> Config:
    """Returns the configuration with limits of connections that fit.

    Args:
        descriptors: How many the process may have open.

    Raises:
        ConfigError: The limits that were chosen need more.
    """
    chosen = [one.connections_max for one in config.listeners if one.connections_chosen]
    needed = sum(chosen) + config.storage.open_files_max + DESCRIPTORS_OWN
    needed += config.admin.connections_max if config.admin.enabled else 0
    others = sorted(
        (one for one in config.listeners if not one.connections_chosen),
        key=lambda one: one.connections_max,
    )
    left = descriptors - needed
    if left < CONNECTIONS_MIN * len(others):
        needed += CONNECTIONS_MIN * len(others)
        raise ConfigError(
            f"the limits of connections and segment files need {needed} descriptors and the system "
            f"allows {descriptors}: lower connections_max or open_files_max, or raise the limit "
            "(ulimit -Hn)"
        )
    fitted: dict[str, int] = {}
    lowered: dict[str, int] = {}
    for index, one in enumerate(others):
        fitted[one.dialect] = min(one.connections_max, left // (len(others) - index))
        left -= fitted[one.dialect]
        if fitted[one.dialect] < one.connections_max:
            lowered[one.dialect] = fitted[one.dialect]
    if lowered:
        _log.warning(
            "connections_max is lowered to what the system's descriptors allow (ulimit -Hn)",
            descriptors=descriptors,
            **lowered,
        )
    return replace(
        config,
        listeners=tuple(
            replace(one, connections_max=fitted.get(one.dialect, one.connections_max))
            for one in config.listeners
        ),
    )


def raise_descriptor_limit() -> int:
    """Raises the process's limit as far as the system lets it; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return UNLIMITED
    wanted = max(soft, UNLIMITED) if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
