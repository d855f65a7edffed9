"""`/api/today`: what needs attention, what runs, what comes next, and what happened, in one request."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.today import TodayView, happened_json
from wakeful.config import Settings, SettingsStatus
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import format_instant
from wakeful.integrations.agents.programs import lacking, place_of, program_of
from wakeful.server.http import today_shapes
from wakeful.server.http.requests import instant_of, new_router
from wakeful.server.http.shapes import answer, problems
from wakeful.server.http.upcoming import fire_json


def routes(app: Wakeful, settings: Callable[[], SettingsStatus] | None) -> APIRouter:
    """The routes for one app; without settings, all agents are Python functions."""
    router = new_router(prefix="/api/today", tags=["daemon"])

    @router.get(
        "",
        summary="What needs attention, runs now, comes next, and happened",
        responses={200: answer(today_shapes.Today, "At this moment."), **problems()},
    )
    async def get_today(
        since: Annotated[str | None, Query(description="your last visit, for `happened`; default: a day ago")] = None,
    ) -> Response:
        """The cost does not grow with the ledger: each list is bounded, and read through an index."""
        written = {} if settings is None else settings().loaded.settings.agents
        programs = {name: program_of(agent) for name, agent in written.items()}
        problems_of = {name: lacking(program) for name, program in programs.items() if program is not None}
        view = await app.today(
            since=None if since is None else instant_of(since, "since"),
            missing={name: problem for name, problem in problems_of.items() if problem is not None},
            places={} if settings is None else _places(settings().loaded.settings),
        )
        is_echo = bool(written) and all(agent.adapter == "echo" for agent in written.values())
        return JSONResponse(_json(view, is_echo=is_echo))

    return router


def _places(settings: Settings) -> dict[str, str]:
    """Where the program of each agent and the address of each channel are written."""
    keys = {"webhook": " url", "apprise": " url", "telegram": " token and chat"}
    return {f"agents.{name}": place_of(name, agent) for name, agent in settings.agents.items()} | {
        f"channels.{name}": f"wakeful.toml, [channels.{name}]{keys.get(channel.type, '')}"
        for name, channel in settings.channels.items()
    }


def _fire(instant: Upcoming, view: TodayView) -> dict[str, str | None]:
    """An upcoming start; if a budget will keep it from starting, when that budget frees."""
    used_up = view.used_up.get(instant.slug) if instant.kind == "schedule" else None
    frees_at = None if used_up is None or used_up.frees_at <= instant.due_at else format_instant(used_up.frees_at)
    return {**fire_json(instant), "budgetFreesAt": frees_at}


def _json(view: TodayView, *, is_echo: bool) -> dict[str, Any]:
    return {
        "now": format_instant(view.now),
        "attention": [item.to_json() for item in view.attention],
        "counts": view.counts(),
        "running": [run.to_json() for run in view.running],
        "upcoming": [_fire(instant, view) for instant in view.upcoming.instants],
        "happened": happened_json(view.happened, view.since),
        "cost": {name: view.cost[name] for name in ("cost", "tokens", "runs", "unknown")},
        "isEcho": is_echo,
    }
