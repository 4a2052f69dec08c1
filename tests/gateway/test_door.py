from __future__ import annotations

import pytest

from dragoman.gateway.door import is_loopback, open_door, parse_address, shown
from dragoman.gateway.table import ConfigError


def test_a_taken_port_is_refused_by_name() -> None:
    with open_door("127.0.0.1", 0, "here") as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^here: port {port} of 127\.0\.0\.1 is taken"):
            open_door("127.0.0.1", port, "here")


@pytest.mark.parametrize("host", ["no such host", "300.0.0.1", "a" * 70, "a..b"])
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^here\.host: \S.* is not an address: [^\[]+$"):
        open_door(host, 0, "here")


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^here: cannot listen on 192"):
        open_door("192.0.2.1", 0, "here")


def test_addresses_are_shown_with_brackets_where_they_need_them() -> None:
    assert (shown(("::1", 1)), shown(("10.0.0.1", 2))) == ("[::1]:1", "10.0.0.1:2")


@pytest.mark.parametrize(
    ("text", "expected"), [("a:1", ("a", 1)), ("[::1]:65535", ("::1", 65_535))]
)
def test_addresses_are_read(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text, "x") == expected


@pytest.mark.parametrize("text", ["a", ":1", "a:", "a:b", "a:65536"])
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        parse_address(text, "x")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a", False)],
)
def test_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
