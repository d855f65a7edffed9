"""`/healthz` and `/readyz`: whether the clock is running, and whether the daemon accepts requests."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.time.instants import SECOND, Duration, format_duration
from wakeful.features.schedules.health import worst
from wakeful.ports.store import StoreUnavailable
from wakeful.server.http import health_shapes
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.problems import Problem, stopping
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import answer, problems

PATIENCE: Final[Duration] = 5 * SECOND
"""A store that has not responded within this time counts as unusable."""
FAILING: Final = "failing"
VITAL: Final = frozenset({"clock", "overdue", "store"})
"""Findings that make the daemon unhealthy."""


def routes(app: Wakeful, is_open: Callable[[], bool]) -> APIRouter:
    """The routes for one app."""
    router = new_router(tags=["daemon"])

    @router.get(
        "/healthz",
        summary="Liveness: is the clock running?",
        responses={200: answer(health_shapes.Health, "It is."), **problems()},
    )
    async def get_health(request: Request) -> Response:
        """Last tick, lag, stuck runs, and whether the store is writable."""
        facts = await _facts(app, is_open())
        caller = caller_of(request.scope)
        if caller is None or caller.role in ("agent", "run"):
            facts = {"status": facts["status"]}
        if facts["status"] != FAILING:
            return JSONResponse(facts)
        return Problem(503, "; ".join(facts.get("problems", [])) or "the clock is not running", more=facts_of(facts))

    @router.get(
        "/readyz",
        summary="Readiness: does the daemon accept requests?",
        responses={200: answer(health_shapes.Ready, "It is."), **problems()},
    )
    async def get_ready() -> Response:
        if not is_open():
            return stopping()
        await app.pulse()
        return JSONResponse({"status": "ready"})

    return router


def facts_of(facts: dict[str, Any]) -> dict[str, Any]:
    """In a problem response `status` is the HTTP status, so the health goes under another name."""
    return {"health" if name == "status" else name: value for name, value in facts.items()}


async def _facts(app: Wakeful, is_open: bool) -> dict[str, Any]:
    if not is_open:
        return {"status": FAILING, "problems": ["the daemon is starting or stopping"]}
    writable = await app.is_writable()
    try:
        async with asyncio.timeout(PATIENCE / SECOND):
            pulse, health = await app.pulse(), await app.health()
    except (StoreUnavailable, TimeoutError) as error:
        silent = f"no response within {format_duration(PATIENCE)}; another session may hold a lock on its tables"
        wrong = [f"the store cannot be read: {str(error) or silent}"]
        return {"status": FAILING, "problems": wrong, "isStoreWritable": writable.level != "bad"}
    findings = [*health.findings, writable]
    # A stuck run only blocks its own lane; the clock still runs.
    wrong = [finding.sentence for finding in findings if finding.level == "bad" and finding.name in VITAL]
    return {
        **health.to_json(),
        "level": worst(findings),
        "status": FAILING if wrong else "ok" if all(finding.level == "ok" for finding in findings) else "degraded",
        "problems": wrong,
        "findings": [finding.to_json() for finding in findings],
        "stuckRuns": [str(run_id) for run_id in pulse.stuck],
        "isStoreWritable": writable.level != "bad",
    }
