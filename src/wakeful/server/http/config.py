"""`/api/config`: the settings in effect, secrets masked, with their sources."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from wakeful.config import SettingsStatus, to_json
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import problems


def routes(settings: Callable[[], SettingsStatus]) -> APIRouter:
    """The routes for the current settings."""
    router = new_router(prefix="/api/config", tags=["daemon"])
    shape = {"application/json": {"schema": {"type": "object", "required": ["settings", "sources"]}}}

    @router.get(
        "",
        summary="The settings in effect",
        responses={200: {"description": "Secrets are masked.", "content": shape}, **problems()},
    )
    async def get_config() -> Response:
        """`refused` lists the errors of a changed file that is invalid; `restart` the settings that take effect after a
        restart; `failed` what could not be applied."""
        return JSONResponse(_shown(settings()))

    return router


def _shown(standing: SettingsStatus) -> dict[str, Any]:
    refused = () if standing.refused is None else standing.refused.errors
    return {
        **to_json(standing.loaded),
        "refused": [str(error) for error in refused],
        "restart": [
            {"name": setting.name, "now": setting.now, "written": setting.written} for setting in standing.held_back
        ],
        "failed": list(standing.failed),
    }
