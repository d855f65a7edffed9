"""Error responses: `application/problem+json`, always the same shape, with one line for people.

`errors` names every invalid field; `error` is all of it on one line. Clients of the session scheduler parse that line,
so the message they depend on appears in it alone and verbatim.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from wakeful.app import Wakeful
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.ports.store import StoreUnavailable

log = logging.getLogger("wakeful.server.http")

MEDIA_TYPE: Final = "application/problem+json"
MINIMUM_INTERVAL: Final = "Minimum interval is "


class Refused(Exception):
    """Ends a request with this status; the text says why and what to do instead."""

    def __init__(self, status: int, text: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})

    def problem(self) -> "Problem":
        """The refusal as a response."""
        return Problem(self.status, self.text, headers=self.headers)


class Problem(JSONResponse):
    """A problem response."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        status: int,
        text: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        content = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": text,
            "errors": [{"field": error.field, "message": error.message} for error in errors],
            "error": _one_line(text, errors),
            **(more or {}),
        }
        super().__init__(content, status, dict(headers or {}))


def install(api: FastAPI, app: Wakeful) -> None:
    """Turn every exception raised by a route into a problem response."""

    @api.exception_handler(Invalid)
    async def invalid(_: Request, error: Invalid) -> Problem:
        return refusal_of(error.errors)

    @api.exception_handler(RequestValidationError)
    async def unreadable(_: Request, error: RequestValidationError) -> Problem:
        return refusal_of(_parameter_errors(error.errors()))

    @api.exception_handler(NotFound)
    async def missing(_: Request, error: NotFound) -> Problem:
        return Problem(404, str(error))

    @api.exception_handler(Conflict)
    async def conflict(_: Request, error: Conflict) -> Problem:
        return Problem(409, str(error))

    @api.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Problem:
        return error.problem()

    @api.exception_handler(StoreUnavailable)
    async def without_store(_: Request, error: StoreUnavailable) -> Problem:
        return unavailable(error)

    @api.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> Problem:
        return Problem(error.status_code, _unrouted(request, error.status_code), headers=error.headers)

    @api.exception_handler(RuntimeError)
    async def broken(_: Request, error: RuntimeError) -> Problem:
        if app.is_started:
            raise error
        return stopping()


def refusal_of(errors: Sequence[FieldError]) -> Problem:
    """The request is invalid: every error, and all of them on one line."""
    return Problem(400, "; ".join(map(str, errors)) or "the request is invalid", errors=errors)


def unavailable(error: StoreUnavailable) -> Problem:
    """The store is temporarily unavailable."""
    return Problem(503, f"the store cannot be used: {error}", headers={"Retry-After": "1"})


def stopping() -> Problem:
    """The daemon does not accept requests: it is starting or stopping."""
    return Problem(503, "the daemon is starting or stopping; try again in a moment", headers={"Retry-After": "1"})


def failed() -> Problem:
    """An internal error; the log has the details."""
    return Problem(500, "internal error; see the daemon's log")


def _one_line(text: str, errors: Sequence[FieldError]) -> str:
    known = next((error.message for error in errors if error.message.startswith(MINIMUM_INTERVAL)), None)
    return known or " ".join(text.split())


def _parameter_errors(errors: Iterable[Any]) -> list[FieldError]:
    """FastAPI's error about a parameter, in our shape."""
    listed = []
    for error in errors:
        name = str(error["loc"][-1])
        message = str(error["msg"]).removeprefix("Value error, ")
        given = "" if error["type"] == "missing" else f"{shown(error.get('input'))}: "
        listed.append(FieldError(name, f"{given}{message[:1].lower()}{message[1:]}"))
    return listed


def _unrouted(request: Request, status: int) -> str:
    match status:
        case 404:
            return f"there is nothing at {shown(request.url.path)}; see /api/openapi.json"
        case 405:
            return f"{request.method} is not allowed at {shown(request.url.path)}; see /api/openapi.json"
        case _:
            return HTTPStatus(status).phrase.lower()
