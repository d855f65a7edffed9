"""`/api/simulate` and `/api/forecast`: what would happen, and what to expect."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.forecasting import DAYS, DAYS_MAX
from wakeful.core.simulation.request import KNOWN
from wakeful.server.http import simulation_shapes as shapes
from wakeful.server.http.abandoned import while_connected
from wakeful.server.http.requests import new_router, read_object
from wakeful.server.http.shapes import answer, body, problems


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api", tags=["plan"])

    @router.post(
        "/simulate",
        summary="Simulate the plan",
        openapi_extra=body(shapes.SimulationRequest, is_required=False),
        responses={200: answer(shapes.Simulation, "What would happen, and the difference."), **problems(409)},
    )
    async def simulate(
        request: Request, rows: Annotated[bool, Query(description="return every row, not only sums")] = False
    ) -> Response:
        """The real engine on a virtual clock, over a copy, in a separate process. Nothing is contacted or changed."""
        data = await read_object(request, known=KNOWN)

        async def simulated() -> Response:
            return Response(await app.simulate_json(data, rows=rows), media_type="application/json")

        return await while_connected(request, simulated())

    @router.get(
        "/forecast",
        summary="Forecast the coming days",
        responses={
            200: answer(shapes.Forecast, "What to expect, and how the last one compared."),
            204: {"description": "With `latest`: this node has made none since it started."},
            **problems(409),
        },
    )
    async def get_forecast(
        request: Request,
        days: Annotated[int, Query(description="how many days", ge=1, le=DAYS_MAX)] = DAYS,
        latest: Annotated[bool, Query(description="return the last one this node made, without simulating")] = False,
    ) -> Response:
        """Ranges are from the 5th to the 95th percentile."""
        if latest:
            last = app.latest_forecast(days)
            return Response(status_code=204) if last is None else JSONResponse(last)

        async def made() -> Response:
            return JSONResponse(await app.forecast(days))

        return await while_connected(request, made())

    return router
