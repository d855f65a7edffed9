"""`/metrics`: metrics in Prometheus format."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from wakeful.app import Wakeful
from wakeful.core.time.instants import SECOND
from wakeful.observe.metrics import CONTENT_TYPE, Gauges
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import problems


def routes(app: Wakeful, render: Callable[[Gauges], bytes]) -> APIRouter:
    """The routes for the metrics."""
    router = new_router(prefix="/metrics", tags=["daemon"])

    @router.get(
        "",
        summary="Metrics for Prometheus",
        response_class=Response,
        responses={
            200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **problems(),
        },
    )
    async def get_metrics() -> Response:
        health = await app.health()
        channels = (await app.delivering.channels()).channels
        costs = (await app.cost_of_agents()).values()
        gauges = Gauges(
            nodes_live=len(health.nodes),
            running=health.running,
            waiting=health.waiting,
            stuck=health.stuck,
            overdue_seconds=health.overdue / SECOND,
            failing=health.failing,
            late=health.late,
            incidents_open=health.incidents,
            cost_today=sum(cost["today"] for cost in costs),
            cost_month=sum(cost["month"] for cost in costs),
            deliveries_pending=sum(channel.pending for channel in channels),
            deliveries_dead=sum(channel.dead for channel in channels),
        )
        return Response(render(gauges), media_type=CONTENT_TYPE)

    return router
