"""`/api/agents`: list agents, test one with a real prompt."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.agents import AgentView
from wakeful.config import SettingsStatus
from wakeful.config.agents import Agent
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.features.schedules.views import RunView, as_text
from wakeful.integrations.agents.programs import Versions, find_program, missing, place_of, program_of
from wakeful.server.http import agent_shapes, shapes
from wakeful.server.http.requests import new_router, read_object, text_of
from wakeful.server.http.shapes import answer, body, problems

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
PROMPT_MAX: Final = 10_000
VERSION_WAIT: Final = 2.0
"""Seconds that a list waits for versions; a slower program is listed without a version until it has printed one."""

_NO_COST: Final = {"today": 0.0, "month": 0.0}

NamePath = Annotated[str, Path(json_schema_extra={"pattern": f"^{_NAME.pattern}$"}, examples=["default"])]


def routes(app: Wakeful, settings: Callable[[], SettingsStatus] | None) -> APIRouter:
    """The routes for the agents of one process; without settings, all agents are Python functions."""
    router = new_router(prefix="/api/agents", tags=["agents"])
    probes = _Probes(Versions())

    @router.get("", summary="List agents", responses={200: answer(agent_shapes.AgentList, "By name."), **problems()})
    async def list_agents() -> Response:
        """A program's version is determined once, and again when its file changes. The list does not wait for a slow
        program: its version is null until then."""
        written = {} if settings is None else settings().loaded.settings.agents
        costs = await app.cost_of_agents()
        views = [
            _agent_json(view, written.get(view.name), probes, costs.get(view.name, _NO_COST))
            for view in await app.agents()
        ]
        return JSONResponse({"agents": await asyncio.gather(*views)})

    @router.post(
        "/{name}/test",
        summary="Test an agent with a real prompt",
        status_code=202,
        openapi_extra=body(agent_shapes.AgentTest, is_required=False),
        responses={
            202: answer(shapes.Started, "The run was requested; read it at /api/runs/{id}."),
            **problems(404, 409),
        },
    )
    async def test_agent(name: NamePath, request: Request) -> Response:
        """One turn in a new session. Its temporary schedule is removed afterwards; the run stays in the ledger."""
        if not _NAME.fullmatch(name):
            raise NotFound(f"there is no agent {shown(name)}")
        prompt = text_of(await read_object(request, known=("prompt",)), "prompt")
        if prompt is not None and not 0 < len(prompt) <= PROMPT_MAX:
            refuse("prompt", f"has {len(prompt)} characters; write 1 to {PROMPT_MAX}, or leave it out")
        run = await app.test_agent(name, prompt)
        return JSONResponse({"runId": str(run.run_id)}, 202)

    return router


class _Probes:
    """Runs programs in threads to get their versions, one call at a time for each program."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._under_way: dict[str, asyncio.Task[str | None]] = {}

    async def version(self, path: str) -> str | None:
        """The version, if it is known within `VERSION_WAIT`; otherwise the lookup continues in the background."""
        task = self._under_way.get(path)
        if task is None:
            task = self._under_way[path] = asyncio.create_task(asyncio.to_thread(self._versions.of, path))
            task.add_done_callback(lambda _: self._under_way.pop(path, None))
        await asyncio.wait({task}, timeout=VERSION_WAIT)
        return task.result() if task.done() and not task.cancelled() else None


async def _agent_json(
    view: AgentView, written: Agent | None, probes: _Probes, cost: Mapping[str, float]
) -> dict[str, Any]:
    program = None if written is None else program_of(written)
    path = None if program is None else find_program(program)
    return {
        "name": view.name,
        "adapter": "call" if written is None else written.adapter,
        "program": path or program,
        "version": None if path is None else await probes.version(path),
        "found": program is None or path is not None,
        "problem": None if written is None or program is None else missing(program, place=place_of(view.name, written)),
        "proves": view.proves,
        "lastTurn": None if view.last_turn is None else _last_turn(view.last_turn),
        "turns": [_last_turn(turn) for turn in view.turns],
        "sessions": view.sessions,
        "cost": cost,
    }


def _last_turn(run: RunView) -> Mapping[str, Any]:
    return {
        "runId": str(run.run_id),
        "slug": run.slug,
        "at": as_text(run.started_at),
        "outcome": run.outcome,
        "error": run.error,
    }
