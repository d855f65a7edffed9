"""`/api/inbox`: the inbox."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http.requests import new_router, read_object, run_cursor
from wakeful.server.http.shapes import answer, body, problems

ItemPath = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["42"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/inbox", tags=["people"])

    @router.get(
        "", summary="List inbox items", responses={200: answer(people_shapes.Inbox, "Newest first."), **problems()}
    )
    async def list_inbox(
        unread: Annotated[bool, Query(description="only unread items")] = False,
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum number of items")] = 100,
        cursor: Annotated[str | None, Query(description="`next` of the previous page")] = None,
    ) -> Response:
        items, count = await app.delivering.inbox(unread=unread, before=run_cursor(cursor), limit=limit + 1)
        following = items[limit - 1].id if len(items) > limit else None
        return JSONResponse({"items": [item.to_json() for item in items[:limit]], "next": following, "unread": count})

    @router.post("/read", status_code=204, summary="Mark all items as read", responses={**problems()})
    async def read_all(request: Request) -> Response:
        await read_object(request, known=())
        await app.delivering.mark_all_read()
        return Response(status_code=204)

    @router.post(
        "/{id}/read",
        status_code=204,
        summary="Mark an item as read or unread",
        openapi_extra=body(people_shapes.Read, is_required=False),
        responses={**problems(404)},
    )
    async def read_item(id: ItemPath, request: Request) -> Response:
        data = await read_object(request, known=("read",))
        is_read = data.get("read", True)
        if not isinstance(is_read, bool):
            refuse("read", f"{shown(is_read)} is not true or false")
        await app.delivering.mark_read(_number(id), is_read=is_read)
        return Response(status_code=204)

    @router.delete("/{id}", status_code=204, summary="Remove an item", responses={**problems(404)})
    async def remove_item(id: ItemPath) -> Response:
        await app.delivering.remove_item(_number(id))
        return Response(status_code=204)

    return router


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise NotFound(f"there is no inbox item {shown(text)}")
    return int(text)
