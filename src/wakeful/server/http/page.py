"""`/`: the page, and the files it is made of."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from wakeful.core.refusals import NotFound
from wakeful.server.http.requests import new_router
from wakeful.server.http.shapes import problems
from wakeful.server.page import HEADERS, PAGE, PREFIX, File, read_files


def routes() -> APIRouter:
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

    @router.get(f"{PREFIX}{{path:path}}", include_in_schema=False)
    async def get_file(path: str, request: Request) -> Response:
        file = read_files().get(path)
        if file is None:
            raise NotFound("the page has no such file")
        return _sent(file, request)

    return router


def _sent(file: File, request: Request) -> Response:
    headers = {**HEADERS, "ETag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
