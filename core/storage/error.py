"""The one exception of opening a data directory."""

from __future__ import annotations


class StorageError(Exception):
    """A data directory cannot be opened; the message is one sentence that says what to do."""
