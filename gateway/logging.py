"""The log: lines of facts on stderr, one a line whatever a peer managed to put into a value."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import structlog

from dragoman.gateway.config import LogFormat

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import TextIO

    from dragoman.gateway.config import LogConfig

_ESCAPES = {
    code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code != 0x0A
}
_ESCAPES |= {0x0A: "\\n", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def escape_control(text: str) -> str:
    """Writes control characters as escapes, so that no peer can forge a line or move a cursor."""
    return text.translate(_ESCAPES)


def _escape_values(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = escape_control(value)
    return event


def set_up_logging(config: LogConfig, stream: TextIO | None = None) -> None:
    """Points all loggers of the process at one stream; stderr where none is given.

    Tracebacks come without the values of variables: these would be peers' payloads.
    """
    out = sys.stderr if stream is None else stream
    renderers: dict[LogFormat, list[Any]] = {
        LogFormat.CONSOLE: [
            structlog.dev.ConsoleRenderer(
                colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ],
        LogFormat.JSON: [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        LogFormat.LOGFMT: [
            structlog.processors.format_exc_info,
            _escape_values,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
    }
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _escape_values,
            *renderers[config.format],
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            getattr(logging, config.level.value.upper())
        ),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
