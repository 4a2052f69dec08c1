"""Where configuration comes from: a profile, a file, variables, flags, one upon the other.

The later one wins key by key, and it is remembered which one said what. A key may leave out the
unit of its time (`idle_timeout` is `idle_timeout_s`), in one layer and not in another.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_FILE = Path("dragoman.toml")
"""Read from the working directory where no other file is named and it is there."""
PREFIX = "DRAGOMAN_"
DEFAULT = "default"
"""What nobody said."""
_UNITS = ("_us", "_ms", "_s")


class Layers:
    """Nested tables of keys, and who said each.

    Attributes:
        tables: What all layers make together.
    """

    def __init__(self) -> None:
        self.tables: dict[str, Any] = {}
        self._sources: dict[tuple[str, ...], str] = {}

    def add(self, source: str, tables: Mapping[str, Any]) -> None:
        """Puts a layer on top."""
        self._merge(self.tables, _split_durability(tables), (), source)

    def source_of(self, *keys: str) -> str:
        """Which layer said the key that these name one within the other."""
        return self._sources.get((*keys[:-1], _stem(keys[-1])), DEFAULT)

    def _merge(
        self, table: dict[str, Any], given: Mapping[str, Any], place: tuple[str, ...], source: str
    ) -> None:
        for key, value in given.items():
            stem = _stem(key)
            for other in [known for known in table if known != key and _stem(known) == stem]:
                del table[other]
            if isinstance(value, dict):
                inner = table.get(key)
                if not isinstance(inner, dict):
                    inner = table[key] = {}
                self._merge(inner, value, (*place, key), source)
            else:
                table[key] = value
                self._sources[*place, stem] = source


def read_file(file: Path | None) -> dict[str, Any]:
    """The keys of a file; None reads `dragoman.toml` where it is.

    Raises:
        ConfigError: It is missing although it was named, or is no TOML.
    """
    path = CONFIG_FILE if file is None else file
    try:
        with path.open("rb") as opened:
            return tomllib.load(opened)
    except FileNotFoundError:
        if file is None:
            return {}
        raise ConfigError(f"there is no configuration file {file}") from None
    except OSError as error:
        raise ConfigError(f"the configuration file {path} cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {path} is not TOML: {error}") from None


def read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The keys of `DRAGOMAN_*` variables; others are left alone.

    Raises:
        ConfigError: One puts a key into another one's value.
    """
    tables: dict[str, Any] = {}
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX):
            _put(tables, name.removeprefix(PREFIX).lower().split("__"), text, name)
    return tables


def read_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of flags, which are written with dots; None values are left out.

    Raises:
        ConfigError: One puts a key into another one's value.
    """
    tables: dict[str, Any] = {}
    for name, value in flags.items():
        if value is not None:
            _put(tables, name.split("."), value, f"--{name}")
    return tables


def _put(tables: dict[str, Any], keys: list[str], value: Any, source: str) -> None:
    """Sets one key of nested tables."""
    table = tables
    for key in keys[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f'{source}: "{key}" is a value, not a section')
        table = inner
    table[keys[-1]] = value


def _split_durability(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reads `interval:<ms>` as the mode and its time."""
    storage = tables.get("storage")
    mode = storage.get("durability") if isinstance(storage, dict) else None
    if not isinstance(storage, dict) or not isinstance(mode, str) or ":" not in mode:
        return tables
    name, _, flush_ms = mode.partition(":")
    if name != "interval":
        return tables
    return {**tables, "storage": {**storage, "durability": name, "flush_ms": flush_ms}}


def _stem(key: str) -> str:
    """A key without the unit of its time."""
    for unit in _UNITS:
        if key.endswith(unit):
            return key.removesuffix(unit)
    return key
