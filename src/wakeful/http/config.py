"""`/api/config`: the live settings, secrets masked, and where each came from."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from wakeful.http.shapes import problems
from wakeful.settings import Loaded, SettingsRefused, to_json


def routes(settings: Callable[[], Loaded], refused: Callable[[], SettingsRefused | None]) -> APIRouter:
    """The routes, over the settings as they are at the moment."""
    router = APIRouter(prefix="/api/config", tags=["daemon"])
    shape = {"application/json": {"schema": {"type": "object", "required": ["settings", "sources"]}}}

    @router.get(
        "",
        summary="The live settings",
        responses={200: {"description": "Secrets are masked.", "content": shape}, **problems()},
    )
    async def get_config() -> Response:
        """What holds now; `refused` lists what is wrong with the file, if it was changed and could not be accepted."""
        wrong = refused()
        faults = [] if wrong is None else [str(error) for error in wrong.errors]
        return JSONResponse({**to_json(settings()), "refused": faults})

    return router
