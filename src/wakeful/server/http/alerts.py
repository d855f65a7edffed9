"""`/api/alerts`: what people were told is wrong, and what is over."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http.requests import read_object
from wakeful.server.http.shapes import answer, problems

AlertPath = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["7"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes, over one app."""
    router = APIRouter(prefix="/api/alerts", tags=["people"])

    @router.get(
        "",
        summary="Incidents that are open, and recent ones",
        responses={200: answer(people_shapes.Alerts, "Open ones first."), **problems()},
    )
    async def list_alerts(
        limit: Annotated[int, Query(ge=1, le=1_000, description="how many that are over at most")] = 50,
        is_open: Annotated[bool, Query(alias="open", description="only those that are open")] = False,
    ) -> Response:
        found = await app.alerts(limit=limit, is_open=is_open)
        return JSONResponse({"alerts": [one.to_json() for one in found]})

    @router.post(
        "/{id}/acknowledge",
        summary="End an incident",
        responses={200: answer(people_shapes.Alerts, "Those that are still open."), **problems(404)},
    )
    async def acknowledge_alert(id: AlertPath, request: Request) -> Response:
        """It is over, and that is not reported. If its subject fails again, that is a new incident."""
        await read_object(request, known=())
        await app.acknowledge_alert(id)
        return JSONResponse({"alerts": [one.to_json() for one in await app.alerts(is_open=True)]})

    return router
