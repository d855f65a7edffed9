"""`/api/deliveries`: the outbox."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http.delivery_shapes import fields_of
from wakeful.server.http.requests import new_router, read_json, run_cursor
from wakeful.server.http.shapes import answer, body, problems

DeliveryPath = Annotated[str, Path(json_schema_extra={"pattern": "^([0-9a-f]{12}-)?[0-9]{1,18}$"}, examples=["42"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/deliveries", tags=["people"])

    @router.get(
        "",
        summary="List deliveries (the outbox)",
        responses={200: answer(people_shapes.Deliveries, "Newest first."), **problems()},
    )
    async def list_deliveries(
        status: Annotated[people_shapes.DeliveryStatus | None, Query(description="only this status")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum number of items")] = 100,
        cursor: Annotated[str | None, Query(description="`next` of the previous page")] = None,
    ) -> Response:
        deliveries = await app.delivering.page(status=status, before=run_cursor(cursor), limit=limit + 1)
        following = str(deliveries[limit - 1].number) if len(deliveries) > limit else None
        return JSONResponse({"deliveries": [delivery.to_json() for delivery in deliveries[:limit]], "next": following})

    @router.post(
        "",
        status_code=201,
        summary="Send a message to a person",
        openapi_extra=body(people_shapes.NewDelivery),
        responses={201: answer(people_shapes.Delivery, "It is queued."), **problems()},
    )
    async def post_delivery(request: Request) -> Response:
        """Without a channel it goes to the channel of the last interaction, else the first channel, else the inbox."""
        fields = fields_of(await read_json(request), ("text", "channel", "to"))
        text = fields.filled("text", "write the text to deliver")
        channel, to = fields.text_or_none("channel"), fields.text_or_none("to")
        fields.finish()
        made = await app.delivering.send(text, channel=channel, to=to)
        return JSONResponse(made.to_json(), 201)

    @router.get(
        "/{id}",
        summary="One delivery",
        responses={200: answer(people_shapes.Delivery, "The delivery."), **problems(404)},
    )
    async def get_delivery(id: DeliveryPath) -> Response:
        return JSONResponse((await app.delivering.get(id)).to_json())

    @router.post(
        "/{id}/retry",
        summary="Retry a delivery now",
        responses={200: answer(people_shapes.Delivery, "It is queued again."), **problems(404, 409)},
    )
    async def retry_delivery(id: DeliveryPath) -> Response:
        """A dead letter starts over, a waiting delivery is sent immediately; a delivered one is not sent again."""
        return JSONResponse((await app.delivering.retry(id)).to_json())

    @router.delete("/{id}", status_code=204, summary="Discard a delivery", responses={**problems(404)})
    async def discard_delivery(id: DeliveryPath) -> Response:
        await app.delivering.discard(id)
        return Response(status_code=204)

    return router
