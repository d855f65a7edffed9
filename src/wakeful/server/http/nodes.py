"""`/api/nodes`: the nodes that tick on this store."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.time.instants import format_instant
from wakeful.server.http import health_shapes
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import answer, problems


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/nodes", tags=["daemon"])

    @router.get(
        "", summary="List nodes", responses={200: answer(health_shapes.Nodes, "With leases and lag."), **problems()}
    )
    async def get_nodes() -> Response:
        pulse = await app.pulse()
        now = app.moment().now
        return JSONResponse(
            {
                "nodes": [
                    {
                        "nodeId": str(node.node_id),
                        "name": node.name,
                        "host": node.host,
                        "pid": node.pid,
                        "startedAt": format_instant(node.started_at),
                        "leaseUntil": format_instant(node.lease_until),
                        "lastTick": format_instant(node.last_tick_at),
                        "lagMs": node.lag,
                        "running": node.running,
                        "capacity": node.capacity,
                        "labels": node.labels.split(),
                        "isAlive": node.lease_until > now,
                    }
                    for node in pulse.nodes
                ]
            }
        )

    return router
