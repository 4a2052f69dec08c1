from __future__ import annotations

import json

import pytest

from dragoman.gateway.health import Phase
from support.admin import get, serving


async def test_health_says_ok_and_nothing_else() -> None:
    async with serving() as server:
        head, body = await get(server, "/health")
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert "content-type: text/plain" in head
        assert body == "OK"
        assert (await get(server, "/live"))[1] == "OK"


async def test_health_says_why_where_it_does_not_serve() -> None:
    async with serving() as server:
        server._health.phase = Phase.STARTING
        head, body = await get(server, "/health")
        assert head.startswith("HTTP/1.1 503 ")
        assert body == "Broker not ready: Main listener not active"


async def test_readiness_names_its_checks() -> None:
    async with serving() as server:
        head, body = await get(server, "/ready")
        assert head.startswith("HTTP/1.1 200 ")
        told = json.loads(body)
        assert told["ready"] is True
        assert sorted(told["checks"]) == ["disk", "flusher", "listeners", "log"]
        server._health.phase = Phase.DRAINING
        head, body = await get(server, "/ready")
        assert head.startswith("HTTP/1.1 503 ")
        assert json.loads(body)["checks"]["listeners"] == {"ok": False, "detail": "Shutting down"}


async def test_metrics_are_text_of_their_version() -> None:
    async with serving() as server:
        head, body = await get(server, "/metrics")
        assert "content-type: text/plain; version=0.0.4" in head
        assert "\nmessages_processed_total 0.0\n" in body


@pytest.mark.parametrize("path", ["/", "/health/"])
async def test_a_path_that_is_not_there_is_a_problem(path: str) -> None:
    async with serving() as server:
        head, body = await get(server, path)
        assert head.startswith("HTTP/1.1 404 ")
        assert "content-type: application/problem+json" in head
        assert json.loads(body)["status"] == 404


@pytest.mark.parametrize("method", ["POST", "DELETE", "BREW"])
async def test_a_method_that_changes_things_is_a_problem(method: str) -> None:
    async with serving() as server:
        head, body = await get(server, "/health", method=method)
        assert head.startswith("HTTP/1.1 405 ")
        assert "allow: " in head
        assert json.loads(body)["status"] == 405


async def test_head_is_answered_as_get_without_the_body() -> None:
    async with serving() as server:
        head, body = await get(server, "/health", method="HEAD")
        assert "content-length: 2\r\n" in head
        assert body == ""
