"""TLS of one listener: its certificate, which may change while it runs, and the handshake.

A reload makes a new context and swaps it in whole, so that connections that run keep theirs, new
handshakes have the new chain, and files that are no certificate change nothing. A handshake that
fails says why in words for people; a peer that speaks no TLS is told from its first bytes, before
OpenSSL sees them.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

import trio

from dragoman.codecs.base import foreign_framing, foreign_protocol
from dragoman.gateway.secure import SecureSocket
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from dragoman.gateway.config import AdminConfig, ListenerConfig

ALERT_SECONDS_MAX = 1.0
"""How long a refused peer may take to hear why."""
_DROPPED_BYTES = 64 * 1024
_FIRST_BYTES = 8
_HANDSHAKE = 0x16
"""The type of the record that a TLS client begins with."""


class HandshakeRefused(Exception):
    """A peer that gets no further; for the log.

    Attributes:
        reason: In words for people.
        looks_like: What a peer without TLS seems to speak, or "".
    """

    def __init__(self, reason: str, looks_like: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.looks_like = looks_like


class Tls:
    """What one listener shows and asks for.

    Args:
        where: The section of the configuration that names its files.

    Attributes:
        context: For the next handshake.

    Raises:
        ConfigError: The files are not a certificate, its key and authorities.
    """

    def __init__(self, config: ListenerConfig | AdminConfig, where: str) -> None:
        self._config = config
        self._where = where
        self.context = self._load()

    def reload(self) -> None:
        """Reads the files again; what they hold is shown from the next handshake on.

        Raises:
            ConfigError: They cannot be used; everything stays as it is.
        """
        self.context = self._load()

    def _load(self) -> ssl.SSLContext:
        config = self._config
        assert config.tls_cert is not None, "TLS is set up for who has a certificate"
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Whoever ends its half below TLS alone is still owed what it asked.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_IGNORE_UNEXPECTED_EOF
        context.sslsocket_class = SecureSocket
        try:
            # Without a password OpenSSL asks for one on the terminal, and everybody waits.
            context.load_cert_chain(
                config.tls_cert, config.tls_key, password=config.tls_key_password or ""
            )
        except (OSError, ValueError) as error:  # of a password that is too long, too
            raise ConfigError(
                f"{self._where}: {config.tls_cert} and {config.tls_key} are not a "
                f"certificate and its key: {_said(error)}"
            ) from None
        if config.tls_client_ca is not None:
            try:
                context.load_verify_locations(config.tls_client_ca)
            except OSError as error:
                raise ConfigError(
                    f"{self._where}: {config.tls_client_ca} holds no certificates of "
                    f"authorities: {_said(error)}"
                ) from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _said(error: Exception) -> str:
    """What OpenSSL or the system says, without numbers and places in the source."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return (isinstance(error, OSError) and error.strerror) or str(error)


def tls_of(config: ListenerConfig | AdminConfig, where: str) -> Tls | None:
    """The TLS of a section of the configuration, or None where it is plain.

    Raises:
        ConfigError: Its files cannot be used.
    """
    return None if config.tls_cert is None else Tls(config, where)


async def shake_hands(accepted: socket.socket, tls: Tls, timeout_s: float) -> SecureSocket:
    """Puts an accepted socket under TLS; what was handed in is empty then.

    Raises:
        HandshakeRefused: The peer took too long, speaks no TLS, or none that is allowed here.
    """
    with trio.move_on_after(timeout_s):
        return await _shake(accepted, tls.context)
    raise HandshakeRefused(f"not done within {timeout_s:g} s")


def subject_of(secure: SecureSocket) -> str:
    """Whom the peer's certificate, which was verified, names; "" where none was asked for."""
    certificate = secure.getpeercert()
    if not certificate:
        return ""
    subject: Any = certificate.get("subject", ())
    names: Any = certificate.get("subjectAltName", ())
    pairs = [pair for part in subject for pair in part] or list(names)
    return ", ".join(f"{_SHORT.get(name, name)}={value}" for name, value in pairs)


_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
}


async def _shake(accepted: socket.socket, context: ssl.SSLContext) -> SecureSocket:
    await trio.lowlevel.wait_readable(accepted)
    try:
        first = accepted.recv(_FIRST_BYTES, socket.MSG_PEEK)
    except OSError as error:
        raise HandshakeRefused(error.strerror or str(error)) from None
    if not first:
        raise HandshakeRefused("the peer left")
    if first[0] != _HANDSHAKE:
        raise HandshakeRefused(
            "the peer does not speak TLS",
            foreign_protocol(first) or foreign_framing(first) or "neither TLS nor a known protocol",
        )
    secure: SecureSocket | None = None
    try:
        made = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        assert isinstance(made, SecureSocket), "the context was told so"
        secure = made
        while True:
            try:
                secure.do_handshake()
            except ssl.SSLWantReadError:
                await trio.lowlevel.wait_readable(secure)
            except ssl.SSLWantWriteError:
                await trio.lowlevel.wait_writable(secure)
            else:
                return secure
    except BaseException as error:
        if secure is not None:
            try:
                if isinstance(error, ssl.SSLError):
                    await _hear_out(secure)
            finally:
                secure.close()
        if isinstance(error, OSError):
            raise HandshakeRefused(_reason(error)) from error
        raise


async def _hear_out(refused: SecureSocket) -> None:
    """Reads on below TLS for a moment, so that a reset does not eat the alert that says why."""
    with trio.move_on_after(ALERT_SECONDS_MAX), contextlib.suppress(OSError):
        socket.socket.shutdown(refused, socket.SHUT_WR)
        await trio.lowlevel.wait_readable(refused)
        while socket.socket.recv(refused, _DROPPED_BYTES):
            await trio.lowlevel.wait_readable(refused)


def _reason(cause: BaseException | None) -> str:
    """Why a handshake ended."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the client's certificate was refused: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and cause.reason:
        return _PLAIN.get(cause.reason, _said(cause))
    return "the peer left during the handshake"


_PLAIN = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate",
    "UNSUPPORTED_PROTOCOL": "the client's TLS is older than 1.2",
    "VERSION_TOO_LOW": "the client's TLS is older than 1.2",
    "NO_SHARED_CIPHER": "the client and we have no cipher in common",
    "UNEXPECTED_EOF_WHILE_READING": "the peer left during the handshake",
}
