"""What the admin port answers: health, readiness, metrics; everything else is a problem."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson
import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dragoman.gateway.asgi import PROBLEM, problem_of
from dragoman.gateway.metrics import CONTENT_TYPE, render

if TYPE_CHECKING:
    from starlette.requests import Request

    from dragoman.gateway.health import Health
    from dragoman.gateway.metrics import Metrics

_FRESH = {"cache-control": "no-store"}
"""No answer of this port is true for longer than a moment."""


def make_application(health: Health, metrics: Metrics) -> Starlette:
    """The application over the parts that it tells of."""

    async def tell_health(request: Request) -> Response:
        if why := health.unavailable():
            return PlainTextResponse(f"Broker not ready: {why}", 503, _FRESH)
        return PlainTextResponse("OK", 200, _FRESH)

    async def tell_live(request: Request) -> Response:
        return PlainTextResponse("OK", 200, _FRESH)

    async def tell_ready(request: Request) -> Response:
        checks = health.checks()
        is_ready = not any(checks.values())
        body = {
            "ready": is_ready,
            "checks": {name: {"ok": not why, "detail": why} for name, why in checks.items()},
        }
        return Response(
            orjson.dumps(body), 200 if is_ready else 503, _FRESH, media_type="application/json"
        )

    async def tell_metrics(request: Request) -> Response:
        # The figures are taken here, all of one moment; thousands of lines are made in a thread.
        families = metrics.collect()
        text = await trio.to_thread.run_sync(render, families)
        return Response(text, 200, {**_FRESH, "content-type": CONTENT_TYPE})

    application = Starlette(
        routes=[
            Route("/health", tell_health),
            Route("/live", tell_live),
            Route("/ready", tell_ready),
            Route("/metrics", tell_metrics),
        ],
        exception_handlers={HTTPException: _tell_problem},
    )
    # A slash too many is another path, and not sent on to whatever host its request names.
    application.router.redirect_slashes = False
    return application


async def _tell_problem(request: Request, error: Exception) -> Response:
    status, headers = 500, {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
    detail = _DETAILS.get(status, "")
    return Response(problem_of(status, detail), status, headers, media_type=PROBLEM)


_DETAILS: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "there are /health, /live, /ready and /metrics",
    HTTPStatus.METHOD_NOT_ALLOWED: "this port is read with GET and HEAD",
}
