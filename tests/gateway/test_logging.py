from __future__ import annotations

import io
from typing import TYPE_CHECKING

import orjson
import pytest
import structlog

from dragoman.gateway.config import LogConfig, LogFormat, LogLevel
from dragoman.gateway.logging import escape_control, set_up_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="out")
def log_stream() -> Iterator[io.StringIO]:
    yield io.StringIO()
    structlog.reset_defaults()


@pytest.mark.parametrize("kind", list(LogFormat))
def test_a_peer_cannot_forge_a_line_or_move_the_cursor(out: io.StringIO, kind: LogFormat) -> None:
    set_up_logging(LogConfig(kind), out)
    structlog.get_logger().info("refused", detail="a\nforged line\x1b[2J\x9b\u2028\u202e\ud800end")
    text = out.getvalue()
    assert text.count("\n") == 1
    assert not set(text) & set("\x1b\x9b\u2028\u202e\ud800")


@pytest.mark.parametrize("kind", list(LogFormat))
def test_a_traceback_moves_no_cursor(out: io.StringIO, kind: LogFormat) -> None:
    set_up_logging(LogConfig(kind), out)
    try:
        raise RuntimeError("what a peer wrote: \x1b[2J\u202e")
    except RuntimeError as error:
        structlog.get_logger().error("fault", exc_info=error)
    assert "what a peer wrote" in out.getvalue()
    assert not set(out.getvalue()) & set("\x1b\u202e")


def test_json_lines_are_json(out: io.StringIO) -> None:
    set_up_logging(LogConfig(LogFormat.JSON), out)
    structlog.get_logger().info("serving", cursus=9000)
    line = orjson.loads(out.getvalue())
    assert (line["event"], line["cursus"], line["level"]) == ("serving", 9000, "info")


def test_every_fact_of_a_logfmt_line_has_a_value(out: io.StringIO) -> None:
    set_up_logging(LogConfig(LogFormat.LOGFMT), out)
    structlog.get_logger().info("log opened", clean=True)
    assert out.getvalue().endswith('level=info event="log opened" clean=true\n')


def test_lines_below_the_level_are_left_out(out: io.StringIO) -> None:
    set_up_logging(LogConfig(level=LogLevel.WARNING), out)
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert "quiet" not in out.getvalue()
    assert "loud" in out.getvalue()


@pytest.mark.parametrize("kind", list(LogFormat))
def test_a_traceback_does_not_show_what_variables_held(out: io.StringIO, kind: LogFormat) -> None:
    set_up_logging(LogConfig(kind), out)

    def fail(payload: bytes) -> None:
        raise RuntimeError(f"a bug with {len(payload)} bytes")

    secret = bytes(reversed(b"hsuh"))
    try:
        fail(secret)
    except RuntimeError as error:
        structlog.get_logger().error("fault", exc_info=error)
    assert "a bug with 4 bytes" in out.getvalue()
    assert "hush" not in out.getvalue()


def test_ordinary_text_is_left_alone() -> None:
    assert escape_control("Zürich, 東京") == "Zürich, 東京"
    assert escape_control("a\tb\x00") == "a\\x09b\\x00"


class Full(io.StringIO):
    """A stream on a disk without room."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("kind", list(LogFormat))
def test_a_log_that_cannot_be_written_loses_lines_and_raises_nothing(kind: LogFormat) -> None:
    set_up_logging(LogConfig(kind), Full())
    structlog.get_logger().info("serving")
    structlog.get_logger().error("fault", exc_info=RuntimeError("x"))
    structlog.reset_defaults()
