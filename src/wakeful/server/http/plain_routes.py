"""The table of routes that are not operations: who may call them, and how OpenAPI describes them."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.api.operation import Returns
from wakeful.api.planned import CALENDAR
from wakeful.features.heartbeat.commands import WOKEN
from wakeful.server.http.calendar import get_calendar
from wakeful.server.http.callers import CALLER, get_caller
from wakeful.server.http.health import READY, get_health, get_ready
from wakeful.server.http.hooks import CALL, call_hook
from wakeful.server.http.login import LOGIN, log_in, log_out
from wakeful.server.http.mcp_endpoint import respond_to_mcp
from wakeful.server.http.metrics import get_metrics
from wakeful.server.http.page import ROUTES, get_document, get_file, get_page, get_routes
from wakeful.server.http.plain import PlainRoute
from wakeful.server.http.receipts import RECEIPT, RECEIVED, post_receipt
from wakeful.server.http.stream import get_stream
from wakeful.server.page import PREFIX


def _text(kind: str) -> Mapping[str, Any]:
    return {kind: {"schema": {"type": "string"}}}


PLAIN: Final = (
    PlainRoute("GET /", get_page, "open", "The page", {200: Returns(None, "The page.", content=_text("text/html"))}),
    PlainRoute(f"GET {PREFIX}{{path:path}}", get_file, "open"),
    PlainRoute("GET /healthz", get_health, "open"),  # described by the operation
    PlainRoute(
        "GET /readyz",
        get_ready,
        "open",
        "Readiness: does the daemon accept requests?",
        {200: Returns(READY, "It is.")},
    ),
    PlainRoute(
        "GET /metrics",
        get_metrics,
        "read",
        "Metrics for Prometheus",
        {200: Returns(None, "The metrics.", content=_text("text/plain"))},
    ),
    PlainRoute(
        "GET /api/stream",
        get_stream,
        "read",
        "Live events",
        {
            200: Returns(
                None,
                "Server-sent events; `data` is JSON with `stream`, `seq`, `at`, `what` and more.",
                content=_text("text/event-stream"),
            )
        },
        refuses=(409,),
    ),
    PlainRoute(
        f"GET {CALENDAR}",
        get_calendar,
        "read",
        "A calendar of what will run",
        {200: Returns(None, "The next four weeks (RFC 5545).", content=_text("text/calendar"))},
        tag="schedules",
    ),
    PlainRoute(
        "GET /api/caller",
        get_caller,
        "agent",
        "Show who the caller is",
        {200: Returns(CALLER, "The role, and where it comes from.")},
    ),
    PlainRoute(
        "GET /api/routes",
        get_routes,
        "read",
        "Which routes this daemon has",
        {200: Returns(ROUTES, "Their paths; OpenAPI describes them.")},
    ),
    PlainRoute("GET /api/openapi.json", get_document, "read"),
    PlainRoute(
        "POST /api/hooks/{name}",
        call_hook,
        "own",
        "Wake the agent by webhook",
        {202: Returns(WOKEN, "A turn follows.")},
        tag="heartbeat",
        refuses=(409,),
        body=CALL,
        is_body_required=False,
    ),
    PlainRoute(
        "POST /api/runs/{id}/receipt",
        post_receipt,
        "own",
        "Post a receipt for a run",
        {200: Returns(RECEIVED, "The receipt was accepted.")},
        tag="runs",
        refuses=(404,),
        body=RECEIPT,
    ),
    PlainRoute(
        "POST /login",
        log_in,
        "open",
        "Log in to the page",
        {204: Returns(None, "The session cookie is set.")},
        tag="access",
        body=LOGIN,
    ),
    PlainRoute(
        "POST /logout",
        log_out,
        "open",
        "Log out of the page",
        {204: Returns(None, "Successful Response")},
        tag="access",
        refuses=None,
    ),
    PlainRoute("GET /mcp", respond_to_mcp, "agent"),
    *(PlainRoute(f"{method} /mcp", respond_to_mcp, "own") for method in ("POST", "DELETE")),
)
