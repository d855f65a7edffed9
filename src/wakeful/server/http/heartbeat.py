"""`/api/wake`, `/api/heartbeat`, `/api/system-events` and `/api/hooks`."""

import hmac
import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.heartbeat import heartbeat_json
from wakeful.config import SettingsStatus
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.self_scheduling.proposals import read_answer
from wakeful.features.heartbeat.commands import WakeResult
from wakeful.features.heartbeat.queries import event_json
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.server.http import heartbeat_shapes
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import new_router, read_json, read_object, run_id_of, text_of, until_of
from wakeful.server.http.shapes import Pause, answer, body, problems

log = logging.getLogger("wakeful.approvals")

HookPath = Annotated[str, Path(description="a table under [hooks] in wakeful.toml", examples=["door"])]


def routes(app: Wakeful, settings: Callable[[], SettingsStatus] | None) -> APIRouter:
    """The routes for one app; hooks come from the current settings."""
    router = new_router(prefix="/api", tags=["heartbeat"])

    @router.post(
        "/wake",
        summary="Request a turn",
        status_code=202,
        openapi_extra=body(heartbeat_shapes.Wake, is_required=False),
        responses={202: answer(heartbeat_shapes.Woken, "A turn follows."), **problems(409)},
    )
    async def wake(request: Request) -> Response:
        """Requests within 250 ms become one turn. `text` is passed to the agent as a system event. A turn that requests
        another one sends the id and token of its run: such turns are at least `spacing_min` apart."""
        data = await read_object(request, known=("reason", "text", "contextKey", "runId", "token"))
        reason = text_of(data, "reason")
        caller = caller_of(request.scope)
        woken = await app.wake(
            "manual" if reason is None else reason,
            *_about(data, "a wake"),
            run=_asking_run(data),
            by_run=caller is not None and caller.run_id is not None,
        )
        return JSONResponse(_woken_json(woken), status_code=202)

    @router.get(
        "/heartbeat",
        summary="State of the heartbeat",
        responses={200: answer(heartbeat_shapes.Heartbeat, "With its last turns, newest first."), **problems()},
    )
    async def get_heartbeat() -> Response:
        return JSONResponse(heartbeat_json(*await app.heartbeat()))

    @router.post(
        "/heartbeat/pause",
        summary="Pause the heartbeat",
        openapi_extra=body(Pause, is_required=False),
        responses={200: answer(heartbeat_shapes.Heartbeat, "The new state."), **problems(409)},
    )
    async def pause_heartbeat(request: Request) -> Response:
        """No beats and no retries until the heartbeat is resumed, or until `until`; a wake still starts a turn."""
        data = await read_object(request, known=("until",))
        await app.pause(HEARTBEAT, until_of(data, app.moment().now))
        return JSONResponse(heartbeat_json(*await app.heartbeat()))

    @router.post(
        "/heartbeat/resume",
        summary="Resume the heartbeat",
        responses={200: answer(heartbeat_shapes.Heartbeat, "The new state."), **problems(409)},
    )
    async def resume_heartbeat(request: Request) -> Response:
        """It beats again from now on; beats missed during the pause are not caught up."""
        await read_object(request, known=())
        await app.resume(HEARTBEAT)
        return JSONResponse(heartbeat_json(*await app.heartbeat()))

    @router.get(
        "/system-events",
        summary="System events queued for the next turn",
        responses={200: answer(heartbeat_shapes.SystemEvents, "Oldest first."), **problems()},
    )
    async def list_system_events() -> Response:
        return JSONResponse({"events": [event_json(event) for event in await app.system_events()]})

    @router.post(
        "/hooks/{name}",
        summary="Wake the agent by webhook",
        status_code=202,
        openapi_extra=body(heartbeat_shapes.HookCall, is_required=False),
        responses={202: answer(heartbeat_shapes.Woken, "A turn follows."), **problems(409)},
    )
    async def call_hook(
        name: HookPath, request: Request, authorization: Annotated[str | None, Header(include_in_schema=False)] = None
    ) -> Response:
        """Needs the hook's own token as a bearer token. Fields other than `text` and `contextKey` are ignored."""
        hooks = {} if settings is None else settings().loaded.settings.hooks
        expected = hooks[name].token.reveal() if name in hooks else None
        if not _is_same(authorization, expected):
            text = "there is no such hook, or the token is wrong; see [hooks] in wakeful.toml"
            raise Refused(401, text, headers={"WWW-Authenticate": "Bearer"})
        data = await _called_with(request)
        source = f"hook:{name}"
        woken = await app.wake("hook", *_about(data, source), source=source)
        return JSONResponse(_woken_json(woken), status_code=202)

    return router


def _woken_json(woken: WakeResult) -> dict[str, Any]:
    """Evicted events by id and source only; a hook must not read other events' text."""
    out: dict[str, Any] = {"coalesced": woken.is_coalesced}
    if woken.evicted:
        out["evicted"] = [{"id": str(event.event_id), "source": event.source} for event in woken.evicted]
    return out


def _about(data: Mapping[str, Any], source: str) -> tuple[str | None, str | None]:
    """The text for the agent, and its key."""
    text, key = text_of(data, "text"), text_of(data, "contextKey")
    if text is None and key is not None:
        refuse("contextKey", "needs text; give both, or leave it out")
    if text is not None and read_answer(text) is not None:
        log.warning("a decision on a proposal was sent as the text of %s; it was refused", source)
        refuse("text", "is a decision on a proposal, which is not accepted here; use wakeful approvals")
    return text, key


def _asking_run(data: Mapping[str, Any]) -> tuple[int, str] | None:
    """The turn that requests another one."""
    run_id, token = text_of(data, "runId"), text_of(data, "token")
    if run_id is None and token is None:
        return None
    if run_id is None or token is None:
        refuse("runId" if run_id is None else "token", "is missing; a turn sends both the id and the token of its run")
    return run_id_of(run_id), token


async def _called_with(request: Request) -> Mapping[str, Any]:
    """The optional body of a hook."""
    if not await request.body():
        return {}
    data = await read_json(request)
    if not isinstance(data, Mapping):
        refuse("", f"{shown(data)} is not an object; write {{…}}")
    return data


def _is_same(authorization: str | None, expected: str | None) -> bool:
    """Compare in constant time, even if the hook does not exist."""
    scheme, _, given = (authorization or "").partition(" ")
    is_same = hmac.compare_digest(given.strip().encode("latin-1", "replace"), (expected or "").encode())
    return is_same and expected is not None and scheme.lower() == "bearer"
