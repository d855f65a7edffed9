"""`/`: the page and its files; `/api/routes` and `/api/openapi.json`: what routes there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response

from wakeful.api.parameters import Param
from wakeful.core.refusals import NotFound
from wakeful.core.returned import returned
from wakeful.features.schedules.views import encode
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.serving import Api
from wakeful.server.page import HEADERS, PAGE, File, read_files


@dataclass(frozen=True, slots=True)
class RouteList:
    """The paths of all routes of the API."""

    paths: Sequence[str]


ROUTES: Final = returned(RouteList)


async def get_page(_api: Api, request: Request) -> Response:
    return _sent(read_files()[PAGE], request)


async def get_routes(api: Api, _request: Request) -> Response:
    return JsonText(encode(ROUTES.write(RouteList(api.paths()))))


async def get_document(api: Api, _request: Request) -> Response:
    return JsonText(api.document())


async def get_file(_api: Api, request: Request, *, path: Annotated[str, Param(where="path")]) -> Response:
    file = read_files().get(path)
    if file is None:
        raise NotFound("the page has no such file")
    return _sent(file, request)


def _sent(file: File, request: Request) -> Response:
    takes_gzip = file.packed is not None and "gzip" in request.headers.get("accept-encoding", "")
    headers = {**HEADERS, "ETag": f"W/{file.etag}" if takes_gzip else file.etag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match", "").removeprefix("W/") == file.etag:
        return Response(status_code=304, headers=headers)
    if file.packed is not None and takes_gzip:
        return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
