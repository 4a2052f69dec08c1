"""`dragoman serve`: reads the configuration, opens the log, serves until told to stop."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import structlog
import trio
from cyclopts import Parameter

from dragoman.cli.asking import REFUSED, complain, told
from dragoman.cli.setting import read_pairs
from dragoman.codecs.registry import dialect_names
from dragoman.core.engine import Engine
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.error import StorageError
from dragoman.core.storage.options import Durability
from dragoman.core.storage.verify import verify as check
from dragoman.gateway.config import load_config
from dragoman.gateway.logging import set_up_logging
from dragoman.gateway.server import Server
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.core.storage.verify import Damage
    from dragoman.gateway.config import Config

PROGRESS_S = 1.0
"""How often a look at the whole log says how far it has come."""
Flag = Parameter(negative=(), show_default=False)


def serve(
    *,
    config: str | None = None,
    profile: str | None = None,
    data: str | None = None,
    durability: str | None = None,
    host: str | None = None,
    ephemeral: Annotated[bool, Flag] = False,
    print_ports: Annotated[bool, Flag] = False,
    insecure: Annotated[bool, Flag] = False,
    verify: Annotated[bool, Flag] = False,
    log_format: str | None = None,
    log_level: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=(), show_default=False)] = (),
) -> int:
    """Start the gateway.

    Flags win over DRAGOMAN_* variables, which win over the configuration file, which wins over a
    profile. `dragoman config show` tells what counts.

    Parameters
    ----------
    config
        Configuration file; dragoman.toml of the working directory where it is.
    profile
        A named set of keys: cursus-document has the figures of that document.
    data
        Directory of the log, made where it is missing.
    durability
        When an append is acknowledged: fsync, interval:MS (milliseconds) or os.
    host
        Address of every listener; the admin port keeps its own.
    ephemeral
        Bind every listener and the admin port to a free port of 127.0.0.1.
    print_ports
        Print one line of JSON, the ports by dialect and admin's, on stdout as soon as all accept.
    insecure
        Accept a public address although nothing authenticates its clients.
    verify
        Check every batch before serving; what is damaged is logged, and does not stop it.
    log_format
        console, json or logfmt.
    log_level
        debug, info, warning or error.
    set_
        One key of the configuration, as in listeners.v1.port=9192; may be repeated.
    """
    flags: dict[str, Any] = {
        "profile": profile,
        "data": data,
        "storage.durability": durability,
        "insecure": insecure or None,
        "log.format": log_format,
        "log.level": log_level,
    }
    flags |= {f"listeners.{name}.host": host for name in dialect_names()}
    try:
        flags |= read_pairs(set_)
        settings = load_config(
            Path(config) if config else None, os.environ, flags, ephemeral=ephemeral
        )
        server = _opened(settings, verify=verify)
    except (ConfigError, StorageError, OSError) as error:
        return _refuse(error)
    gc.collect()
    gc.freeze()
    trio.run(server.run_until_signalled, _print_ports if print_ports else _say_nothing)
    return 0


def _opened(settings: Config, *, verify: bool) -> Server:
    """A server of the log, with its ports bound.

    Raises:
        ConfigError, StorageError, OSError: It cannot be served.
    """
    set_up_logging(settings.log)
    store = DiskStore(settings.data, settings.storage, on_damage=_tell_damage)
    try:
        _tell(settings, store, verify=verify)
        return Server(settings, Engine(store, settings.engine))
    except (ConfigError, StorageError, OSError):
        store.close()
        raise


def _tell(settings: Config, store: DiskStore, *, verify: bool) -> None:
    """Says what an operator should know before the first client comes, after a look at all of the
    log where that is asked for."""
    log = structlog.get_logger("dragoman.serve")
    for sentence in store.damage:
        log.error("damage", what=sentence)
    storage = settings.storage
    mode = storage.durability
    said: dict[str, Any] = {"profile": settings.profile} if settings.profile else {}
    said["durability"] = mode.value
    if mode is Durability.INTERVAL:
        said["synced"] = f"every {storage.flush_records} records or {storage.flush_ms} ms"
    if mode is not Durability.FSYNC:
        log.warning("acknowledged records may be lost in a power cut", **said)
    elif settings.profile:
        log.info("acknowledged records survive a power cut", **said)
    replayed = {} if store.clean else {"replayed": store.statistics()["store_replayed_groups"]}
    log.info("log opened", directory=str(settings.data.absolute()), clean=store.clean, **replayed)
    if verify:
        _verify(settings.data)


def _verify(directory: Path) -> None:
    """Checks the whole data directory, which recovery has put in order before."""
    log = structlog.get_logger("dragoman.serve")
    last_s = monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last_s
        if monotonic() - last_s >= PROGRESS_S:
            last_s = monotonic()
            log.info("verifying", percent=100 * done // max(total, 1), bytes=done, of=total)

    report = check(directory, progress=progress)
    for damage in report.damage:
        _tell_damage(damage)
    for remark in report.remarks:
        log.info("remark", what=remark)
    log.info(
        "log verified",
        segments=report.segments,
        batches=report.batches,
        records=report.records,
        bytes=report.bytes,
        damaged=len(report.damage),
    )


def _tell_damage(damage: Damage) -> None:
    structlog.get_logger("dragoman.serve").error("damage", what=str(damage))


def _refuse(error: Exception) -> int:
    return complain(told(error), REFUSED)


def _print_ports(ports: Mapping[str, int]) -> None:
    try:
        os.write(sys.stdout.fileno(), orjson.dumps(dict(ports)) + b"\n")
    except OSError as error:
        structlog.get_logger("dragoman.serve").warning("cannot print the ports", why=told(error))


def _say_nothing(ports: Mapping[str, int]) -> None:
    """The log has the ports already."""
