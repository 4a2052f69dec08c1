"""What an operator may choose: a profile, `dragoman.toml`, `DRAGOMAN_*` variables, flags.

A variable names its place with double underscores: `DRAGOMAN_LISTENERS__V1__PORT=9192` is the key
`port` of `[listeners.v1]`. Later sources win key by key. Everything is checked before anything is
opened; what is wrong is refused in one sentence.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.codecs.registry import dialect, dialect_names
from dragoman.core.options import EngineOptions
from dragoman.core.storage.options import StorageOptions
from dragoman.gateway.door import is_loopback, parse_address
from dragoman.gateway.layers import DEFAULT, Layers, read_environment, read_file, read_flags
from dragoman.gateway.profile import profile_tables
from dragoman.gateway.table import ConfigError, full_name, read_options, read_value, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

IN_FLIGHT_BYTES_MIN = 1024 * 1024
"""Below it, connections with frames of ordinary size would take turns all the time."""
_PLAIN = (("profile", str), ("data", Path), ("insecure", bool), ("drain_timeout_s", float))
_SECTIONS = (
    *(name for name, _ in _PLAIN),
    *("server", "listeners", "admin", "storage", "engine", "log"),
)


class LogFormat(Enum):
    """How log lines look on stderr."""

    CONSOLE = "console"
    JSON = "json"
    LOGFMT = "logfmt"


class LogLevel(Enum):
    """The least serious line that is shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The log on stderr."""

    format: LogFormat = LogFormat.CONSOLE
    level: LogLevel = LogLevel.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What all connections share.

    Attributes:
        in_flight_bytes_max: What may have arrived of all connections together and not be served.
        frame_stall_timeout_s: While that is short, half a frame that makes no progress for so long
            is closed.
        slow_reader_timeout_s: A reader that takes nothing of what it asked for is closed.
    """

    in_flight_bytes_max: int = 256 * 1024 * 1024
    frame_stall_timeout_s: float = 10.0
    slow_reader_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if self.in_flight_bytes_max < IN_FLIGHT_BYTES_MIN:
            raise ValueError(
                f"in_flight_bytes_max must be at least {IN_FLIGHT_BYTES_MIN}, not "
                f"{self.in_flight_bytes_max}"
            )
        for name in ("frame_stall_timeout_s", "slow_reader_timeout_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerConfig:
    """One dialect's door.

    Attributes:
        port: 0 takes a free one.
        connections_max: At this many, accepting pauses.
        connections_chosen: It was configured, so it is never lowered to what the system grants.
        idle_timeout_s: Close a connection that owes and is owed nothing after so long; 0 never.
        frame_bytes_max: Largest frame accepted.
        tls_cert, tls_key: PEM files; both or neither. Read again on SIGHUP.
        tls_key_password: Of a key that is kept encrypted.
        tls_client_ca: PEM file of authorities; a client shows a certificate of one of them.
        handshake_timeout_s: How long a client may take until TLS stands.
        advertised: `host:port` for dialects that tell clients where to connect.
        options: What the dialect itself offers, validated by it.
    """

    dialect: str
    port: int
    connections_max: int
    idle_timeout_s: float
    frame_bytes_max: int
    connections_chosen: bool = False
    host: str = "127.0.0.1"
    enabled: bool = True
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_key_password: str | None = field(default=None, repr=False)
    tls_client_ca: Path | None = None
    handshake_timeout_s: float = 10.0
    advertised: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig:
    """The port for operators and their machines: health, readiness, metrics.

    Attributes:
        port: 0 takes a free one.
        connections_max: At this many, accepting pauses until one ends; who rests gives way.
        tls_cert, tls_key, tls_key_password, tls_client_ca, handshake_timeout_s: As of a listener.
        lag_series_max: So many (topic, partition, group) have their lag in the metrics.
    """

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = 9080
    connections_max: int = 64
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_key_password: str | None = field(default=None, repr=False)
    tls_client_ca: Path | None = None
    handshake_timeout_s: float = 10.0
    lag_series_max: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that `dragoman serve` needs to know.

    Attributes:
        profile: The named set of keys below what the file says; empty for none.
        insecure: Public addresses are accepted although nothing authenticates their clients.
        drain_timeout_s: How long a stop waits for what was asked.
        ephemeral: Every listener on a free port of 127.0.0.1.
        layers: Who said what.
    """

    profile: str = ""
    data: Path = Path("data")
    insecure: bool = False
    drain_timeout_s: float = 10.0
    ephemeral: bool = False
    server: ServerConfig = field(default_factory=ServerConfig)
    listeners: tuple[ListenerConfig, ...] = ()
    admin: AdminConfig = field(default_factory=AdminConfig)
    storage: StorageOptions = field(default_factory=StorageOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
    log: LogConfig = field(default_factory=LogConfig)
    layers: Layers = field(default_factory=Layers, repr=False, compare=False)


def load_config(
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Any],
    *,
    ephemeral: bool = False,
) -> Config:
    """Reads and checks the configuration.

    Args:
        file: A file that must be there; None reads `dragoman.toml` where it is.
        environment: The process's variables; those with another prefix are left alone.
        flags: Keys with dots (`storage.durability`) and what the command line gave for them; None
            values are left out.

    Raises:
        ConfigError: With one sentence for people.
    """
    layers = _laid(
        file=read_file(file),
        environment=read_environment(environment),
        flag=read_flags(flags),
    )
    tables = {full_name(key, _SECTIONS): value for key, value in layers.tables.items()}
    refuse_unknown(tables, _SECTIONS, "the configuration")
    plain = {key: read_value(key, hint, tables[key], key) for key, hint in _PLAIN if key in tables}
    config = Config(
        **plain,
        ephemeral=ephemeral,
        server=read_options(ServerConfig, _table(tables, "server"), "server"),
        listeners=_read_listeners(_table(tables, "listeners"), layers, ephemeral=ephemeral),
        admin=_read_admin(_table(tables, "admin"), ephemeral=ephemeral),
        storage=read_options(StorageOptions, _table(tables, "storage"), "storage"),
        engine=read_options(EngineOptions, _table(tables, "engine"), "engine"),
        log=read_options(LogConfig, _table(tables, "log"), "log"),
        layers=layers,
    )
    for listener in config.listeners:
        where = f"listeners.{listener.dialect}"
        _check_door(listener, where, insecure=config.insecure)
        if listener.advertised is not None:
            parse_address(listener.advertised, f"{where}.advertised")
    if config.admin.enabled:
        _check_door(config.admin, "admin", insecure=config.insecure)
    _check_ports(config)
    return config


def _laid(**given: dict[str, Any]) -> Layers:
    """The layers by name, later ones on top, upon the profile that they name."""
    layers = Layers()
    for tables in given.values():
        layers.add("", {key: tables[key] for key in ("profile",) if key in tables})
    name = read_value("profile", str, layers.tables.get("profile", ""), "profile")
    layers = Layers()
    if name:
        layers.add("profile", profile_tables(name))
    for source, tables in given.items():
        layers.add(source, tables)
    return layers


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f'"{name}" is a section, not a value')
    return table


def _read_listeners(
    tables: dict[str, Any], layers: Layers, *, ephemeral: bool
) -> tuple[ListenerConfig, ...]:
    names = dialect_names()
    refuse_unknown(tables, names, "listeners")
    sections = {name: _table(tables, name) for name in names}
    enabled = [
        _read_listener(
            name,
            section,
            connections_chosen=layers.source_of("listeners", name, "connections_max")
            not in (DEFAULT, "profile"),
        )
        for name, section in sections.items()
        if read_value("enabled", bool, section.get("enabled", True), f"listeners.{name}.enabled")
    ]
    if not enabled:
        raise ConfigError("every listener is disabled; there is nothing to serve")
    if ephemeral:
        enabled = [replace(listener, host="127.0.0.1", port=0) for listener in enabled]
    return tuple(enabled)


_OWN_KEYS = tuple(
    name
    for name in ListenerConfig.__dataclass_fields__
    if name not in ("dialect", "options", "connections_chosen")
)


def _read_listener(name: str, table: dict[str, Any], *, connections_chosen: bool) -> ListenerConfig:
    where = f"listeners.{name}"
    spoken = dialect(name)
    named = {full_name(key, _OWN_KEYS): value for key, value in table.items()}
    own = {key: value for key, value in named.items() if key in _OWN_KEYS}
    others = {key: value for key, value in named.items() if key not in _OWN_KEYS}
    defaults = spoken.options({})
    others = {
        key: read_value(key, type(defaults[key]), value, f"{where}.{key}")
        if isinstance(value, str) and key in defaults
        else value
        for key, value in others.items()
    }
    try:
        options = dict(spoken.options(others))
    except ValueError as error:
        near = [key for other in others for key in difflib.get_close_matches(other, _OWN_KEYS, 1)]
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ConfigError(f"{where}: {error}{hint}") from None
    own_defaults: dict[str, Any] = {
        "port": spoken.port,
        "connections_max": spoken.connections_max,
        "idle_timeout_s": spoken.idle_timeout_s,
        "frame_bytes_max": spoken.limits.frame_bytes_max,
    }
    listener = read_options(ListenerConfig, {**own_defaults, **own, "dialect": name}, where)
    return replace(listener, options=options, connections_chosen=connections_chosen)


def _read_admin(table: dict[str, Any], *, ephemeral: bool) -> AdminConfig:
    admin = read_options(AdminConfig, table, "admin")
    return replace(admin, host="127.0.0.1", port=0) if ephemeral else admin


def _check_door(door: ListenerConfig | AdminConfig, where: str, *, insecure: bool) -> None:
    if not 0 <= door.port <= 65_535:
        raise ConfigError(f"{where}.port: {door.port} is not a port")
    if door.connections_max < 1:
        raise ConfigError(f"{where}.connections_max: at least one connection must be allowed")
    if (door.tls_cert is None) != (door.tls_key is None):
        raise ConfigError(f"{where}: tls_cert and tls_key belong together; only one is given")
    if door.tls_cert is None and door.tls_client_ca is not None:
        raise ConfigError(
            f"{where}.tls_client_ca: without tls_cert and tls_key nothing is verified"
        )
    if door.handshake_timeout_s <= 0:
        raise ConfigError(f"{where}.handshake_timeout_s must be above 0")
    if not insecure and not is_loopback(door.host) and door.tls_client_ca is None:
        raise ConfigError(
            f"{where}.host: {door.host or 'every address'} can be reached from other machines and "
            "nothing authenticates them; pass --insecure to accept that, or name a tls_client_ca"
        )


def _check_ports(config: Config) -> None:
    """Refuses two doors with one address; whoever binds second would blame another process."""
    doors: list[tuple[str, ListenerConfig | AdminConfig]] = [
        (f"listeners.{one.dialect}", one) for one in config.listeners
    ]
    if config.admin.enabled:
        doors.append(("admin", config.admin))
    known: dict[tuple[str, int], str] = {}
    for where, door in doors:
        other = known.setdefault((door.host, door.port), where)
        if door.port and other != where:
            raise ConfigError(f"{where}.port: {door.port} is that of {other} already")
