"""The log: lines of facts on stderr, one a line whatever a peer managed to put into a value."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from typing import TYPE_CHECKING, Any, cast

import structlog

from dragoman.gateway.config import LogFormat

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import TextIO

    from dragoman.gateway.config import LogConfig

_ESCAPES = {
    code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code != 0x0A
}
_ESCAPES[0x0A] = "\\n"
_INVISIBLE = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
"""Line and paragraph separators, and what turns the direction of the text behind it."""
_ESCAPES |= {code: f"\\u{code:04x}" for code in (*_INVISIBLE, *range(0xD800, 0xE000))}


def escape_control(text: str) -> str:
    """Writes control characters as escapes, so that no peer can forge a line, move a cursor or
    turn the direction of what follows."""
    return text.translate(_ESCAPES)


def _escape_values(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = escape_control(value)
    return event


def _write_traceback(out: TextIO, exc_info: Any) -> None:
    """A traceback in lines of its own, without the control characters of its message."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    out.write("\n".join(map(escape_control, text.getvalue().split("\n"))))


class _Lossy:
    """A stream that drops what cannot be written: a full disk, or a reader of the log that is gone,
    costs lines and not the server.

    Args:
        out: Where lines go as long as it takes them.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """Writes what can be written."""
        with contextlib.suppress(OSError):
            self._out.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes what can be flushed."""
        with contextlib.suppress(OSError):
            self._out.flush()


def set_up_logging(config: LogConfig, stream: TextIO | None = None) -> None:
    """Points all loggers of the process at one stream; stderr where none is given.

    Tracebacks come without the values of variables: these would be peers' payloads.
    """
    out = sys.stderr if stream is None else stream
    renderers: dict[LogFormat, list[Any]] = {
        LogFormat.CONSOLE: [
            structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=_write_traceback)
        ],
        LogFormat.JSON: [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        LogFormat.LOGFMT: [
            structlog.processors.format_exc_info,
            _escape_values,
            structlog.processors.LogfmtRenderer(
                key_order=["timestamp", "level", "event"], bool_as_flag=False
            ),
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
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Lossy(out))),
        cache_logger_on_first_use=False,
    )
