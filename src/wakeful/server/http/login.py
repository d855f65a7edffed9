"""`/login`, `/logout`: the page's session; `/api/login-codes`: one-time codes for links."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.core.errors import refuse
from wakeful.core.time.instants import SECOND, format_instant
from wakeful.server.http.access import Access
from wakeful.server.http.authentication import cookie_of, is_https
from wakeful.server.http.login_shapes import Ended, Login, LoginCode
from wakeful.server.http.logins import COOKIE, SESSION_FOR, Logins
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import new_router, read_object, text_of
from wakeful.server.http.shapes import answer, body, problems


def routes(logins: Logins, access: Callable[[], Access], page_at: Callable[[], str]) -> APIRouter:
    """The routes; `page_at` is the page's URL on this machine."""
    router = new_router(tags=["access"])

    @router.post(
        "/login",
        summary="Log in to the page",
        status_code=204,
        openapi_extra=body(Login),
        responses={204: {"description": "The session cookie is set."}, **problems(401)},
    )
    async def log_in(request: Request) -> Response:
        """Exchange a token or a one-time code for a session cookie."""
        session = await _session(logins, request)
        if session is None:
            raise Refused(401, "this code or token is not valid; get a new link with `wakeful open`")
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE,
            session,
            max_age=SESSION_FOR // SECOND,
            httponly=True,
            samesite="strict",
            secure=is_https(request.scope, request.headers, access()),
        )
        return response

    @router.post("/logout", summary="Log out of the page", status_code=204)
    async def log_out(request: Request) -> Response:
        """End the cookie's session."""
        session = cookie_of(request.headers)
        if session is not None:
            await logins.end(session)
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    @router.post(
        "/api/login-codes",
        summary="Create a one-time code for a link to the page",
        status_code=201,
        responses={201: answer(LoginCode, "The code can be used once."), **problems()},
    )
    async def make_code() -> Response:
        code, expires_at = await logins.make_code()
        url = (access().public_url or page_at()).rstrip("/")
        made = {"code": code, "url": url, "path": f"/#code={code}", "expiresAt": format_instant(expires_at)}
        return JSONResponse(made, 201)

    @router.delete(
        "/api/logins",
        summary="End every page session",
        responses={200: answer(Ended, "How many sessions and unused codes there were."), **problems()},
    )
    async def end_all() -> Response:
        """Everyone who is logged in to the page has to log in again; unused links are void."""
        return JSONResponse({"ended": await logins.end_all()})

    return router


async def _session(logins: Logins, request: Request) -> str | None:
    data = await read_object(request, known=("token", "code"))
    token, code = text_of(data, "token"), text_of(data, "code")
    if (token is None) == (code is None):
        refuse("", "send either token or code")
    return await logins.with_token(token) if token is not None else await logins.with_code(code or "")
