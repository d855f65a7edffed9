"""`/healthz` and `/readyz`: whether the clock is running, and whether the daemon accepts requests."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from wakeful.api.health import health_of
from wakeful.core.returned import returned
from wakeful.features.schedules.health_view import FAILING, HEALTH, HealthView
from wakeful.features.schedules.views import encode
from wakeful.server.http.access import caller_of
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.problems import Problem, stopping
from wakeful.server.http.serving import Api

CLOSED: Final = HealthView(FAILING, ["the daemon is starting or stopping"])


@dataclass(frozen=True, slots=True)
class Ready:
    """The daemon accepts requests."""

    status: Literal["ready"]


READY: Final = returned(Ready)


async def get_health(api: Api, request: Request) -> Response:
    """Last tick, lag, stuck runs, and whether the store is writable."""
    view = await health_of(api.app) if api.is_open() else CLOSED
    caller = caller_of(request.scope)
    if caller is None or caller.role in ("agent", "run"):
        view = HealthView(view.status)
    facts = HEALTH.write(view, full=view.level is not None)
    if view.status != FAILING:
        return JsonText(encode(facts))
    return Problem(503, "; ".join(view.problems) or "the clock is not running", more=_beside_a_status(facts))


async def get_ready(api: Api, _request: Request) -> Response:
    if not api.is_open():
        return stopping()
    writable = await api.app._writable.look()
    if writable.level == "bad":
        return Problem(503, writable.sentence)
    await api.app._pulse()
    return JsonText(encode(READY.write(Ready("ready"))))


def _beside_a_status(facts: dict[str, Any]) -> dict[str, Any]:
    """In a problem response `status` is the HTTP status, so the health goes under another name."""
    return {"health" if name == "status" else name: value for name, value in facts.items()}
