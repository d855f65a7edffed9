"""The OpenAPI description of operations and of other routes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, Final

from wakeful.api.nouns import NOUNS
from wakeful.api.operation import Operation, Returns, operations_of
from wakeful.api.parameters import Parameter
from wakeful.api.patches import MERGE_PATCH
from wakeful.config.one_slot import SLOT
from wakeful.core.description import COMPONENTS, Object
from wakeful.core.returned import returned, returned_schemas
from wakeful.core.schedule.definition import SCHEDULE
from wakeful.core.schema_json import properties_of, schemas_of
from wakeful.core.workflow.definition import WORKFLOW
from wakeful.features.schedules.views import encode
from wakeful.server.http.plain import PlainRoute
from wakeful.server.http.plain_routes import PLAIN

_MEANINGS: Final = {
    400: "The request is invalid; `errors` lists every invalid field.",
    401: "A token is missing or invalid.",
    403: "The `Host` or the `Origin` is not allowed, or the role does not permit the request.",
    404: "Not found.",
    409: "Not possible in the current state.",
    412: "It has changed since it was read: the `ETag` differs.",
    413: "The body is too large.",
    429: "Too many wrong tokens, or too many requests without one, from this address.",
    431: "The head of the request is too large, or has too many headers.",
    503: "The daemon is starting or stopping, or its store is unavailable.",
}
_DESCRIPTION: Final = (
    "The alarm clock for AI agents: schedules, and a ledger with the outcome of every planned instant. "
    "Instants are RFC 3339 in UTC with milliseconds; durations are strings such as 90s, 30m, 2h. "
    "A POST may carry an Idempotency-Key: a repeat within a day returns the first response and is not executed again."
)
_DEFINITIONS: Final[Mapping[str, Object[Any]]] = {"Schedule": SCHEDULE, "Slot": SLOT, "Workflow": WORKFLOW}
"""What users write, by the object that it is returned in."""
ALWAYS: Final = (400, 401, 403, 413, 429, 431, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, besides the common ones."""
    content = {"application/problem+json": {"schema": {"$ref": f"{COMPONENTS}Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in sorted({*ALWAYS, *statuses})}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One invalid field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """An error response."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem]
    error: Annotated[str, "a one-line summary"]


def paths() -> list[str]:
    """The paths of all routes."""
    routes = {one.route for noun in NOUNS.values() for one in operations_of(noun)} | {one.route for one in PLAIN}
    return sorted({route.partition(" ")[2] for route in routes})


@cache
def document() -> str:
    """The whole description, as JSON."""
    known = schemas_of(*_DEFINITIONS.values()) | returned_schemas(returned(Problem))
    del known["Problem"]["additionalProperties"]  # some have more members
    known[MERGE_PATCH] = {"type": "object", "description": "fields to change; null resets one (RFC 7396)"}
    made = {
        "openapi": "3.1.0",
        "info": {"title": "Wakeful", "description": _DESCRIPTION, "version": version("wakeful")},
        "paths": _paths(known),
        "components": {"schemas": known, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],  # the Unix socket needs no token
    }
    for name, definition in _DEFINITIONS.items():  # what a definition has, it is also returned with
        known[name]["properties"] = properties_of(definition) | known[name]["properties"]
    return encode(made)


def _paths(known: dict[str, Any]) -> dict[str, Any]:
    """All operations and other routes, by path. The objects that they take and return are added to the known ones."""
    paths: dict[str, Any] = {}
    for tag, noun in NOUNS.items():
        for one in operations_of(noun):
            paths.setdefault(one.path, {})[one.method.lower()] = _operation(tag, one)
            known.update(returned_schemas(*(a.object for a in one.returns.values() if a.object is not None)))
            known.update(returned_schemas(*(inner for given in one.parameters for inner in given.about.inner)))
            if name := one.about.get("body_name"):
                known[name] = _body_object(one)
    for route in PLAIN:
        if route.summary:
            method, _, path = route.route.partition(" ")
            paths.setdefault(path, {})[method.lower()] = _plain(route)
            known.update(returned_schemas(*(a.object for a in route.returns.values() if a.object is not None)))
            if route.body is not None:
                known[route.body["title"]] = dict(route.body)
    return paths


def _operation(tag: str, operation: Operation[..., Any]) -> dict[str, Any]:
    refuses = operation.about.get("refuses", ())
    return {
        **_words(
            operation.about.get("tag", tag), operation.summary, operation.says, operation.about["id"], operation.route
        ),
        **_parameters(operation.parameters),
        **_responses(operation.returns, refuses),
        **({} if (body := _body(operation)) is None else {"requestBody": body}),
    }


def _plain(route: PlainRoute) -> dict[str, Any]:
    body = None if route.body is None else _referred(route.body["title"], is_required=route.is_body_required)
    return {
        **_words(route.tag, route.summary, route.says, route.respond.__name__, route.route),
        **_parameters(route.parameters),
        **_responses(route.returns, route.refuses),
        **({} if body is None else {"requestBody": body}),
    }


def _words(tag: str, summary: str, says: str, name: str, route: str) -> dict[str, Any]:
    method, _, path = route.partition(" ")
    spelt = re.sub(r"\W", "_", name + path)
    return {
        "tags": [tag],
        "summary": summary,
        **({"description": says} if says else {}),
        "operationId": f"{spelt}_{method.lower()}",
    }


def _parameters(parameters: Sequence[Parameter]) -> dict[str, Any]:
    listed = [_parameter(one) for one in parameters if one.where in ("path", "query", "header")]
    return {"parameters": listed} if listed else {}


def _responses(returns: Mapping[int, Returns], refuses: Sequence[int] | None) -> dict[str, Any]:
    refusals = {} if refuses is None else problems(*refuses)
    return {
        "responses": {str(status): _response(one) for status, one in returns.items()}
        | {str(status): one for status, one in refusals.items()}
    }


def _referred(name: str, *, is_required: bool) -> dict[str, Any]:
    """A request body."""
    return {"required": is_required, "content": {"application/json": {"schema": {"$ref": COMPONENTS + name}}}}


def _parameter(one: Parameter) -> dict[str, Any]:
    says = {"description": one.about.says} if one.about.says else {}
    default = {} if one.is_required or one.default is None else {"default": one.default}
    example = {"examples": [one.about.example]} if one.about.example else {}
    schema = {**one.schema, **says, **example, **default, "title": one.name.title()}
    return {"name": one.name, "in": one.where, "required": one.is_required, "schema": schema, **says}


def _response(one: Returns) -> dict[str, Any]:
    headers = {name: {"description": said, "schema": {"type": "string"}} for name, said in one.headers.items()}
    content = one.content
    if one.object is not None:
        content = {"application/json": {"schema": {"$ref": COMPONENTS + one.object.name}}}
    return {
        "description": one.says,
        **({"content": content} if content else {}),
        **({"headers": headers} if headers else {}),
    }


def _body(operation: Operation[..., Any]) -> dict[str, Any] | None:
    about = operation.about
    if "body" in about:
        return {"required": True, "content": dict(about["body"])}
    document = next((one for one in operation.parameters if one.where == "document"), None)
    described = None if document is None else document.about.schema
    name = described.name if isinstance(described, Object) else about.get("body_name")
    if not name:
        return None
    has_required = any(one.is_required for one in operation.parameters if one.where == "body")
    is_required = document is not None or has_required or about.get("body_required", False)
    return _referred(name, is_required=is_required)


def _body_object(operation: Operation[..., Any]) -> dict[str, Any]:
    """The object that the parameters in the body make."""
    fields = [one for one in operation.parameters if one.where == "body"]
    needed = [one.name for one in fields if one.is_required]
    return {
        "title": operation.about["body_name"],
        "description": operation.about["body_says"],
        "type": "object",
        "additionalProperties": any(one.where == "document" for one in operation.parameters),
        "properties": {
            one.name: {
                **one.schema,
                "title": one.name.title(),
                **({"description": one.about.says} if one.about.says else {}),
                **({"examples": [one.about.example]} if one.about.example else {}),
                **({} if one.is_required else {"default": one.default}),
            }
            for one in fields
        },
        **({"required": needed} if needed else {}),
    }
