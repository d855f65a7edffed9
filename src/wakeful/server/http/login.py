"""`/login` and `/logout`: the page's session."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from wakeful.core.errors import refuse
from wakeful.core.time.instants import SECOND
from wakeful.server.http.authentication import cookie_of, is_https
from wakeful.server.http.logins import COOKIE, SESSION_FOR, Logins
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import read_object, text_of
from wakeful.server.http.serving import Api

_SECRET: Final[dict[str, Any]] = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "default": None}
LOGIN: Final[dict[str, Any]] = {
    "title": "Login",
    "description": "A token, or a link's one-time code.",
    "type": "object",
    "additionalProperties": False,
    "properties": {"token": {**_SECRET, "title": "Token"}, "code": {**_SECRET, "title": "Code"}},
}


async def log_in(api: Api, request: Request) -> Response:
    """Exchange a token or a one-time code for a session cookie."""
    authentication = api.authentication
    authentication.refuse_login(request.scope, request.headers)
    session = await _session(api.logins, request)
    if session is None:
        authentication.wrong_login(request.scope, request.headers)
        raise Refused(401, "this code or token is not valid; get a new link with `wakeful open`")
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE,
        session,
        max_age=SESSION_FOR // SECOND,
        httponly=True,
        samesite="strict",
        secure=is_https(request.scope, request.headers, api.serving.access()),
    )
    return response


async def log_out(api: Api, request: Request) -> Response:
    """End the cookie's session."""
    session = cookie_of(request.headers)
    if session is not None:
        await api.logins.end(session)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


async def _session(logins: Logins, request: Request) -> str | None:
    data = await read_object(request, known=("token", "code"))
    token, code = text_of(data, "token"), text_of(data, "code")
    if (token is None) == (code is None):
        refuse("", "send either token or code")
    return await logins.with_token(token) if token is not None else await logins.with_code(code or "")
