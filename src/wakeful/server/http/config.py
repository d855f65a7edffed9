"""`/api/config`: the live settings, secrets masked, and where each came from."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from wakeful.config import SettingsStatus, to_json
from wakeful.server.http.shapes import problems


def routes(settings: Callable[[], SettingsStatus]) -> APIRouter:
    """The routes, over the settings as they are at the moment."""
    router = APIRouter(prefix="/api/config", tags=["daemon"])
    shape = {"application/json": {"schema": {"type": "object", "required": ["settings", "sources"]}}}

    @router.get(
        "",
        summary="The live settings",
        responses={200: {"description": "Secrets are masked.", "content": shape}, **problems()},
    )
    async def get_config() -> Response:
        """What holds now. `refused` lists what is wrong with the file, if it was changed and could not be accepted;
        `restart` what is written and holds only from the next start on; `failed` what could not be taken over."""
        return JSONResponse(_shown(settings()))

    return router


def _shown(standing: SettingsStatus) -> dict[str, Any]:
    refused = () if standing.refused is None else standing.refused.errors
    return {
        **to_json(standing.loaded),
        "refused": [str(error) for error in refused],
        "restart": [{"name": one.name, "now": one.now, "written": one.written} for one in standing.held_back],
        "failed": list(standing.failed),
    }
