"""The configuration as it counts: every key with its value and who said so."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.gateway.config import Config, ListenerConfig

_DERIVED = ("listeners", "layers", "ephemeral", "dialect", "options", "connections_chosen")
"""Fields that no key sets by itself."""
_BOUND = ("host", "port")
"""What `--ephemeral` chooses."""
HIDDEN = "(hidden)"
"""Shown in the place of a secret that is set."""


class Effective(NamedTuple):
    """One key.

    Attributes:
        key: With dots, as a flag writes it.
        value: As JSON has it.
        source: `default`, `profile`, `file`, `environment` or `flag`.
    """

    key: str
    value: int | float | str | bool | None
    source: str


def effective(config: Config) -> Iterator[Effective]:
    """Every key, in the order in which the guide has them."""
    source_of = config.layers.source_of
    for name, value in _values(config):
        if not is_dataclass(value):
            yield Effective(name, _plain(name, value), source_of(name))
    for listener in config.listeners:
        yield from _of_listener(config, listener)
    for section, options in _values(config):
        if is_dataclass(options):
            for name, value in _values(options):
                source = source_of(section, name)
                if config.ephemeral and section == "admin" and name in _BOUND:
                    source = "flag"
                yield Effective(f"{section}.{name}", _plain(name, value), source)


def _of_listener(config: Config, listener: ListenerConfig) -> Iterator[Effective]:
    place = "listeners", listener.dialect
    for name, value in [*_values(listener), *listener.options.items()]:
        source = config.layers.source_of(*place, name)
        if config.ephemeral and name in _BOUND:
            source = "flag"
        yield Effective(".".join((*place, name)), _plain(name, value), source)


def _values(options: Any) -> list[tuple[str, Any]]:
    return [(f.name, getattr(options, f.name)) for f in fields(options) if f.name not in _DERIVED]


def _plain(name: str, value: Any) -> int | float | str | bool | None:
    if name.endswith("password") and value:
        return HIDDEN
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, (int, float, str, bool)):
        return value
    return str(value) if isinstance(value, Path) else repr(value)
