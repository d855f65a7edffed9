"""`/`: the page, its files, and the list of API routes."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from wakeful.core.refusals import NotFound
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import Shape, answer, problems
from wakeful.server.page import HEADERS, PAGE, PREFIX, File, read_files


class RouteList(Shape):
    """The paths of all routes of the API."""

    paths: list[str]


def routes(paths: Callable[[], list[str]]) -> APIRouter:
    """The page. Its files are not part of the API, so OpenAPI does not list them."""
    router = new_router(tags=["daemon"])

    @router.get(
        "/",
        summary="The page",
        response_class=HTMLResponse,
        responses={200: {"description": "The page.", "content": {"text/html": {}}}, **problems()},
    )
    async def get_page(request: Request) -> Response:
        return _sent(read_files()[PAGE], request)

    @router.get(
        "/api/routes",
        summary="Which routes this daemon has",
        responses={200: answer(RouteList, "Their paths; OpenAPI describes them."), **problems()},
    )
    async def get_routes() -> Response:
        return JSONResponse({"paths": paths()})

    @router.get(f"{PREFIX}{{path:path}}", include_in_schema=False)
    async def get_file(path: str, request: Request) -> Response:
        file = read_files().get(path)
        if file is None:
            raise NotFound("the page has no such file")
        return _sent(file, request)

    return router


def _sent(file: File, request: Request) -> Response:
    takes_gzip = file.packed is not None and "gzip" in request.headers.get("accept-encoding", "")
    headers = {**HEADERS, "ETag": f"W/{file.etag}" if takes_gzip else file.etag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match", "").removeprefix("W/") == file.etag:
        return Response(status_code=304, headers=headers)
    if file.packed is not None and takes_gzip:
        return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
