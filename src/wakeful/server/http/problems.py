"""Error responses: `application/problem+json`, always the same shape, with one line for people.

`errors` names every invalid field; `error` is all of it on one line. Clients of the session scheduler parse that line,
so the message they depend on appears in it alone and verbatim.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from wakeful.api.channels import NoAgentForMessages
from wakeful.api.python import Wakeful
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound, Stale
from wakeful.features.schedules.checks import MINIMUM_INTERVAL, MINIMUM_INTERVAL_CURE
from wakeful.ports.store import StoreUnavailable

log = logging.getLogger("wakeful.server.http")

MEDIA_TYPE: Final = "application/problem+json"


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


def handlers_of(app: Wakeful) -> dict[Any, Any]:
    """Functions that turn every exception raised by a route into a problem response, by its class."""

    def stopped(_: Request, error: Exception) -> Problem:
        if app._is_started:
            raise error
        return stopping()

    responses: Mapping[Any, Callable[[Request, Any], Problem]] = {
        Invalid: lambda _, error: refusal_of(error.errors),
        NotFound: lambda _, error: Problem(404, str(error)),
        Conflict: lambda _, error: Problem(409, str(error)),
        Stale: lambda _, error: Problem(412, str(error), headers={} if error.tag is None else {"ETag": error.tag}),
        Refused: lambda _, error: error.problem(),
        NoAgentForMessages: lambda _, error: Problem(503, str(error)),
        StoreUnavailable: lambda _, error: unavailable(error),
        HTTPException: _unrouted,
        RuntimeError: stopped,
    }
    return {kind: _awaited(respond) for kind, respond in responses.items()}


def _awaited(respond: Callable[[Request, Any], "Problem"]) -> Callable[[Request, Any], Awaitable["Problem"]]:
    """A plain function would be called in another thread."""

    async def handle(request: Request, error: Any) -> Problem:
        return respond(request, error)

    return handle


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
    return " ".join(text.split()) if known is None else known.removesuffix(MINIMUM_INTERVAL_CURE)


def _unrouted(request: Request, error: Any) -> Problem:
    """No route has this path, or this method."""
    match error.status_code:
        case 404:
            text = f"there is nothing at {shown(request.url.path)}; see /api/openapi.json"
        case 405:
            text = f"{request.method} is not allowed at {shown(request.url.path)}; see /api/openapi.json"
        case _:
            text = HTTPStatus(error.status_code).phrase.lower()
    return Problem(error.status_code, text, headers=error.headers)
