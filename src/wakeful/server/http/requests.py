"""Parse bodies, slugs, times and cursors, with the same error messages everywhere."""

import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import Enum
from inspect import iscoroutinefunction, signature
from typing import Any, Final, TypeAlias

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.refusals import NotFound
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import Duration, Instant, format_instant, parse_duration, parse_instant

_RUN_ID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
# A + not written as %2B arrives as a space; in a time, it can only be the sign of the offset.
_LOST_PLUS: Final = re.compile(r" (\d\d:\d\d)$", re.ASCII)
SLUGS_MAX: Final = 100
OWNERS: Final = ("slot", "workflow")
OWNER_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,6}", re.ASCII)


Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


def new_router(*, prefix: str = "", tags: list[str | Enum]) -> APIRouter:
    """A router whose routes refuse unknown parameters."""
    return APIRouter(prefix=prefix, tags=tags, route_class=_Route)


class _Route(APIRoute):
    """Refuses unknown parameters: a misspelt `?dryrun=true` must not write."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.app = _direct(self.dependant, self._known, self.app) or self.app

    @property
    def _known(self) -> Sequence[str]:
        return [field.alias for field in self.dependant.query_params]

    def get_route_handler(self) -> Handler:
        known, handle = self._known, super().get_route_handler()

        async def checked(request: Request) -> Response:
            if request.scope["query_string"]:
                _refuse_unknown(request, known)
            return await handle(request)

        return checked


def _direct(dependant: Dependant, known: Sequence[str], through_fastapi: ASGIApp) -> ASGIApp | None:
    """Calls the function of a route that takes at most the request, strings of the path and optional parameters, and
    returns a response: FastAPI's way to the function takes a third of the time of a small request. A request with an
    invalid parameter goes through FastAPI, which writes the error. None for any other route."""
    function, request_name = dependant.call, dependant.request_param_name
    takes_more = (
        dependant.cookie_params,
        dependant.body_params,
        dependant.dependencies,
        dependant.http_connection_param_name,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
    )
    is_checked = any(
        field.field_info.annotation is not str or field.field_info.metadata or field.alias != field.name
        for field in dependant.path_params
    )
    optional = [*dependant.query_params, *dependant.header_params]
    is_plain = all(field.default is None or isinstance(field.default, str | int) for field in optional)
    if any(takes_more) or is_checked or not is_plain or not iscoroutinefunction(function):
        return None
    if signature(function).return_annotation is not Response:
        return None
    defaults = {field.name: field.default for field in optional}

    def arguments(request: Request) -> dict[str, Any] | None:
        """What the function is called with; None if a parameter is invalid."""
        values = {**defaults, **request.path_params}
        if request_name is not None:
            values[request_name] = request
        if request.scope["query_string"]:
            _refuse_unknown(request, known)
            given = [(field, request.query_params.get(field.alias)) for field in dependant.query_params]
        else:
            given = []
        given += [(field, request.headers.get(field.alias)) for field in dependant.header_params]
        for field, text in given:
            if text is not None:
                values[field.name], errors = field.validate(text)
                if errors:
                    return None
        return values

    async def direct(scope: Scope, receive: Receive, send: Send) -> None:
        values = arguments(Request(scope, receive, send))
        if values is None:
            await through_fastapi(scope, receive, send)
            return
        response: Response = await function(**values)
        await response(scope, receive, send)

    return direct


def _refuse_unknown(request: Request, known: Sequence[str]) -> None:
    fields = Fields(dict(request.query_params.items()))
    if known:
        fields.refuse_unknown(known)
    else:
        for name in list(request.query_params)[:10]:
            fields.fail(name[:80], "unknown parameter; this route has none")
    fields.finish()


async def read_json(request: Request) -> Any:
    """The body as JSON, whatever its content type; nesting and values are checked."""
    body = await request.body()
    if not body.strip():
        refuse("", "the body is empty; send JSON")
    try:
        data = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        refuse("", f"the body is not JSON ({_reason(error)}); send valid JSON")
    check_plain(data)
    return data


async def read_object(request: Request, *, known: tuple[str, ...]) -> Mapping[str, Any]:
    """An optional body with these fields and no others."""
    if not await request.body():
        return {}
    data = await read_json(request)
    if not isinstance(data, Mapping):
        refuse("", f"{shown(data)} is not an object; write {{…}}")
    fields = Fields(data)
    fields.refuse_unknown(known)
    fields.finish()
    return data


def known_slug(slug: str) -> str:
    """A valid slug; 404 for any other text."""
    if not SLUG_PATTERN.fullmatch(slug):
        raise NotFound(f"there is no schedule {shown(slug)}")
    return slug


def known_owner(name: str) -> str:
    """The owner of runs: a slug, `slot:NAME` or `workflow:ID`; 404 for any other text."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in OWNERS and OWNER_PATTERN.fullmatch(rest):
        return name
    return known_slug(name)


def run_id_of(text: str) -> int:
    """A run id; 404 for any other text."""
    if not _RUN_ID.fullmatch(text):
        raise NotFound(f"there is no run {shown(text)}")
    return int(text)


def slug_cursor(cursor: str | None) -> str | None:
    """The cursor of a list of schedules."""
    if cursor is not None and not SLUG_PATTERN.fullmatch(cursor):
        refuse("cursor", f"{shown(cursor)} is not a cursor; send `next` of the previous page, or leave it out")
    return cursor


def slugs_of(text: str | None) -> list[str] | None:
    """Slugs separated by commas."""
    if text is None:
        return None
    slugs = [slug for slug in (part.strip() for part in text.split(",")) if slug]
    if not slugs or len(slugs) > SLUGS_MAX:
        refuse("slugs", f"has {len(slugs)} slugs; write 1 to {SLUGS_MAX}, separated by commas, or leave it out for all")
    wrong = [slug for slug in slugs if not SLUG_PATTERN.fullmatch(slug)]
    if wrong:
        refuse("slugs", f"{shown(wrong[0])} is not a slug")
    return slugs


def run_cursor(cursor: str | None) -> int | None:
    """The cursor of a list of runs."""
    if cursor is not None and not _RUN_ID.fullmatch(cursor):
        refuse("cursor", f"{shown(cursor)} is not a cursor; send `next` of the previous page, or leave it out")
    return None if cursor is None else int(cursor)


def instant_of(text: str, field: str) -> Instant:
    """A time in the query."""
    return parse_instant(_LOST_PLUS.sub(r"+\1", text), field=field)


def duration_of(text: str, field: str, *, most: Duration, most_text: str) -> Duration:
    """A duration in the query, such as 30s, or a number of seconds."""
    length = parse_duration(f"{text}s" if _SECONDS.fullmatch(text) else text, field)
    if length > most:
        refuse(field, f"{shown(text)} is too long; give at most {most_text}")
    return length


def text_of(data: Mapping[str, Any], name: str) -> str | None:
    """A string in a body; None if null or absent."""
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(FieldError(name, f"{shown(value)} is not a string; put it in quotes"))
    return value


def until_of(data: Mapping[str, Any], now: Instant) -> str | None:
    """When a pause ends automatically; a time in the past is refused."""
    until = text_of(data, "until")
    if until is not None and instant_of(until, "until") <= now:
        refuse("until", f"is in the past (now is {format_instant(now)}); give a later time")
    return until


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {twice[:80]!r}")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
