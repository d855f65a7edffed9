"""The HTTP application: the routes of one app behind the middleware."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Route
from starlette.types import ASGIApp

from wakeful.app import Wakeful
from wakeful.app.definition_files import DefinitionFiles
from wakeful.app.importing import Importer
from wakeful.config import SettingsStatus
from wakeful.config.one_slot import SLOT
from wakeful.core.description import Object
from wakeful.core.schedule.definition import SCHEDULE
from wakeful.core.schema_json import properties_of, schemas_of
from wakeful.core.workflow.definition import WORKFLOW
from wakeful.features.quota.feature import Quota
from wakeful.observe.metrics import Gauges
from wakeful.server.http import (
    agent_shapes,
    agents,
    alerts,
    approvals,
    backfills,
    calendar,
    channels,
    config,
    cost_shapes,
    costs,
    deliveries,
    forms,
    health,
    heartbeat,
    heartbeat_shapes,
    inbox,
    login,
    login_shapes,
    metrics,
    moving,
    moving_shapes,
    nodes,
    own_schedules,
    pausing,
    problems,
    runs,
    schedules,
    shapes,
    simulation_shapes,
    simulations,
    slots,
    stream,
    timeline,
    today,
    upcoming,
    workflow_shapes,
    workflows,
)
from wakeful.server.http import agent_tool_shapes as tool_shapes
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http import page as front
from wakeful.server.http.access import Access, Caller
from wakeful.server.http.authentication import Authentication
from wakeful.server.http.idempotency import Repeats
from wakeful.server.http.kept_responses import KeptAnswers
from wakeful.server.http.logins import Logins
from wakeful.server.http.mcp_endpoint import McpEndpoint
from wakeful.server.http.middleware import BODY_MAX, Middleware

_DESCRIPTION = (
    "The alarm clock for AI agents: schedules, and a ledger with the outcome of every planned instant. "
    "Instants are RFC 3339 in UTC with milliseconds; durations are strings such as 90s, 30m, 2h. "
    "A POST may carry an Idempotency-Key: a repeat within a day returns the first response and is not executed again."
)


# What users write, by the shape that it is returned in.
_DEFINITIONS: Final[Mapping[str, Object[Any]]] = {"Schedule": SCHEDULE, "Slot": SLOT, "Workflow": WORKFLOW}

# Other bodies that routes parse themselves, which FastAPI does not see.
_BODIES: Final[tuple[type[BaseModel], ...]] = (
    shapes.Problem,
    shapes.Pause,
    shapes.Receipt,
    tool_shapes.ToolArguments,
    tool_shapes.Decision,
    heartbeat_shapes.Wake,
    heartbeat_shapes.HookCall,
    workflow_shapes.NewMessage,
    workflow_shapes.Resolve,
    people_shapes.NewDelivery,
    people_shapes.Touch,
    people_shapes.PersonsMessage,
    people_shapes.Read,
    agent_shapes.AgentTest,
    login_shapes.Login,
    cost_shapes.NewBudget,
    moving_shapes.Files,
    moving_shapes.ImportSource,
    simulation_shapes.SimulationRequest,
)


def make_app(
    app: Wakeful,
    *,
    access: Callable[[], Access] = Access,
    body_max: Callable[[], int] = lambda: BODY_MAX,
    is_open: Callable[[], bool] | None = None,
    settings: Callable[[], SettingsStatus] | None = None,
    watchers: stream.Watchers | None = None,
    figures: Callable[[Gauges], bytes] | None = None,
    log_of_run: runs.LogOfRun | None = None,
    quota: Callable[[], Quota] | None = None,
    page_at: Callable[[], str] = lambda: "",
    importer: Importer | None = None,
) -> ASGIApp:
    """The API of one app. Missing parts (settings, stream, metrics) have no routes.

    `is_open` returns whether requests are accepted. Access, limits and settings are read for each request, because
    they may change."""
    open_now = is_open or (lambda: app.is_started)
    logins = Logins(app, access)
    api = FastAPI(
        title="Wakeful",
        version=version("wakeful"),
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    problems.install(api, app)
    for router in (
        schedules.routes(app),
        forms.routes(),
        pausing.routes(app),
        backfills.routes(app),
        runs.routes(app, log_of_run),
        upcoming.routes(app),
        calendar.routes(app, lambda: (access().public_url or page_at()).rstrip("/")),
        simulations.routes(app),
        timeline.routes(app),
        today.routes(app, settings),
        nodes.routes(app),
        agents.routes(app, settings),
        heartbeat.routes(app, settings),
        workflows.routes(app),
        *([] if quota is None else [slots.routes(app, quota)]),
        moving.routes(DefinitionFiles(app, quota), importer or Importer(app)),
        deliveries.routes(app),
        channels.routes(app),
        inbox.routes(app),
        alerts.routes(app),
        approvals.routes(app),
        own_schedules.routes(app),
        costs.routes(app),
        *([] if settings is None else [config.routes(settings)]),
        *([] if watchers is None else [stream.routes(watchers)]),
        *([] if figures is None else [metrics.routes(app, figures)]),
        health.routes(app, open_now),
        login.routes(logins, access, page_at),
        front.routes(lambda: sorted({route.path for route in api.routes if isinstance(route, APIRoute)})),
    ):
        api.router.routes.extend(router.routes)  # include_router would build every route a second time
    api.router.routes.append(Route("/mcp", endpoint=McpEndpoint(app)))
    api.openapi = lambda: _openapi(api)  # type: ignore[method-assign]  # the way FastAPI documents
    inner = Repeats(api, KeptAnswers(app))
    authentication = Authentication(
        access,
        lambda: app.moment().monotonic,
        logins=logins,
        run_caller=partial(_run_caller, app),
        peer_caller=partial(_peer_caller, app),
        is_calendar_key=lambda key: app.is_calendar_key(key),  # noqa: PLW0108 - the app may not be complete yet
    )
    return Middleware(inner, access=access, authentication=authentication, body_max=body_max, is_open=open_now)


async def _run_caller(app: Wakeful, token: str) -> Caller | None:
    run_id = await app.run_of_token(token)
    return None if run_id is None else Caller("run", f"run {run_id}", run_id=run_id)


async def _peer_caller(app: Wakeful, session: int) -> Caller | None:
    run_id = await app.agent_run_of_session(session)
    return None if run_id is None else Caller("run", f"run {run_id}", run_id=run_id)


def _openapi(api: FastAPI) -> dict[str, Any]:
    """FastAPI's OpenAPI document, without the responses that it adds and we never send."""
    if api.openapi_schema is not None:
        return api.openapi_schema
    made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
    for methods in made["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("422", None)
    known = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        known.pop(name, None)
    known.update(schemas_of(*_DEFINITIONS.values()))
    for name, definition in _DEFINITIONS.items():  # what a definition has, it is also returned with
        if name in known:
            known[name]["properties"] = properties_of(definition) | known[name]["properties"]
    for shape in _BODIES:
        described = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        known.update(described.pop("$defs", {}))
        known[shape.__name__] = described
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{}, {"token": []}]  # the Unix socket needs no token
    api.openapi_schema = made
    return made
