"""What a client shows and asks for where a server speaks TLS, and a handshake's end in words."""

from __future__ import annotations

import ssl


def client_context(
    ca: str | None = None, cert: str | None = None, key: str | None = None
) -> ssl.SSLContext:
    """A context for `open_client` and `connect`, which checks the server's certificate and name.

    Args:
        ca: PEM file of the authorities that are believed; the system's where it is None.
        cert: PEM file of the certificate that this client shows, or None.
        key: PEM file of its key, where that is not in the same file.

    Raises:
        ValueError: A file is missing or not what it should be; names the file.
    """
    if key is not None and cert is None:
        raise ValueError("a key belongs to a certificate: name that too")
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ValueError(f"{ca} holds no certificates of authorities: {_said(error)}") from None
    if cert is not None:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(cert, key, password="")
        except OSError as error:
            bare = f"{cert} is no certificate with"
            files = bare if key is None else f"{cert} and {key} are no certificate and"
            raise ValueError(f"{files} its key: {_said(error)}") from None
    return context


def refusal(error: BaseException) -> str:
    """Why there is no TLS with this server, for people."""
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and cause.reason:
        return f"no TLS: {cause.reason.lower().replace('_', ' ')}"
    return "no TLS: the server ended the handshake"


def ending(error: BaseException) -> str:
    """What became of a connection that broke, for people: in TLS the server may say why."""
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if isinstance(cause, ssl.SSLError) and "ALERT" in (cause.reason or ""):
        alert = cause.reason.lower().partition("alert_")[2].replace("_", " ")
        return f"closed the connection: {alert}"
    return "closed the connection"


def _said(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason.lower().replace("_", " ") if error.reason else "not PEM"
    return error.strerror or str(error)
