"""`/api/alerts`: open and recent incidents."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http.requests import new_router, read_object
from wakeful.server.http.shapes import answer, problems

AlertPath = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["7"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/alerts", tags=["people"])

    @router.get(
        "",
        summary="List open and recent incidents",
        responses={200: answer(people_shapes.Alerts, "Open incidents first."), **problems()},
    )
    async def list_alerts(
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum number of closed incidents")] = 50,
        is_open: Annotated[bool, Query(alias="open", description="only open incidents")] = False,
    ) -> Response:
        alerts = await app.alerts(limit=limit, is_open=is_open)
        return JSONResponse({"alerts": [alert.to_json() for alert in alerts]})

    @router.post(
        "/{id}/acknowledge",
        summary="Acknowledge an incident",
        responses={200: answer(people_shapes.Alerts, "The incidents that are still open."), **problems(404)},
    )
    async def acknowledge_alert(id: AlertPath, request: Request) -> Response:
        """Closes the incident without a recovery message. If its subject fails again, that is a new incident."""
        await read_object(request, known=())
        await app.acknowledge_alert(id)
        return JSONResponse({"alerts": [alert.to_json() for alert in await app.alerts(is_open=True)]})

    return router
