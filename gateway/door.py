"""An address that this process listens on: bound at once, or refused in one sentence."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket

from dragoman.gateway.table import ConfigError

BACKLOG = 1024


def open_door(host: str, port: int, where: str) -> socket.socket:
    """Binds an address and listens on it, without blocking.

    Args:
        port: 0 takes a free one.
        where: The section of the configuration that asks for it.

    Raises:
        ConfigError: It is no address, or cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"{where}.host: {host} is not an address: {error.strerror}") from None
    except UnicodeError:
        raise ConfigError(
            f"{where}.host: {host} is not an address: no name has that form"
        ) from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(address)
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"{where}: port {port} of {host} is taken already") from None
        raise ConfigError(f"{where}: cannot listen on {host}:{port}: {error.strerror}") from None
    return bound


def shown(address: tuple[str, int]) -> str:
    """An address for people and logs."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str, where: str) -> tuple[str, int]:
    """Reads `host:port`.

    Raises:
        ConfigError: It is something else.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{where}: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from its own machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
