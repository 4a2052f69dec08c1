"""Certificates made for one test: an authority of its own, servers and clients that it signs."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """Signs certificates and writes them into a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.file = directory / "authority.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def write(self, name: str = "server", *identities: str, subject: str | None = None) -> Files:
        """A certificate for `localhost` unless told otherwise; the same name writes over it."""
        issued = self._ca.issue_cert(
            *(identities or ("localhost", "127.0.0.1")),
            common_name=subject,
            key_type=trustme.KeyType.ECDSA,
        )
        cert, key = self._directory / f"{name}.cert.pem", self._directory / f"{name}.key.pem"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
        return Files(cert, key)

    def trusting(self, shown: Files | None = None) -> ssl.SSLContext:
        """What a client that trusts this authority uses, with the certificate that it shows."""
        context = ssl.create_default_context(cafile=str(self.file))
        if shown is not None:
            context.load_cert_chain(shown.cert, shown.key)
        return context


class Files:
    """A certificate with its chain, and its key."""

    def __init__(self, cert: Path, key: Path) -> None:
        self.cert = cert
        self.key = key

    def settings(self) -> dict[str, Path]:
        """As a listener's configuration names them."""
        return {"tls_cert": self.cert, "tls_key": self.key}
