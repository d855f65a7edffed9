"""REST from the tables: the function that responds to requests, for each operation and each other route."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from wakeful.api.actors import Refused as NotPermitted
from wakeful.api.nouns import NOUNS
from wakeful.api.operation import Noun, Operation, operations_of
from wakeful.api.parameters import Parameter
from wakeful.api.python import Wakeful
from wakeful.api.replies import Reply, plain
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields
from wakeful.features.schedules.views import encode
from wakeful.features.schedules.why_owned import without_figures
from wakeful.server.http.abandoned import while_connected
from wakeful.server.http.actors import actor_of
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.plain import PlainRoute
from wakeful.server.http.plain_routes import PLAIN
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import read_json, read_object
from wakeful.server.http.routing import Endpoint
from wakeful.server.http.serving import Api


def endpoints(app: Wakeful) -> dict[str, Endpoint]:
    """The function of each operation that responds to requests, by its route."""
    return {one.route: _endpoint(app, noun, one) for noun in NOUNS.values() for one in operations_of(noun)}


def plain_endpoints(api: Api) -> dict[str, Endpoint]:
    """The function of each other route that responds to requests, by its route."""
    return {one.route: _plain_endpoint(api, one) for one in PLAIN}


def _plain_endpoint(api: Api, route: PlainRoute) -> Endpoint:
    parameters = route.parameters
    known = [one.name for one in parameters if one.where == "query"]

    async def respond(request: Request) -> ASGIApp:
        if request.scope["query_string"]:
            refuse_unknown(request.query_params, known)
        return await route.respond(api, request, **values_of(parameters, request, {}))

    return respond


def _endpoint(app: Wakeful, noun: type[Noun], operation: Operation[..., Any]) -> Endpoint:
    parameters = operation.parameters
    known = [one.name for one in parameters if one.where == "query"]
    in_body = tuple(one.name for one in parameters if one.where == "body")
    document = next((one for one in parameters if one.where == "document"), None)
    has_body = operation.method not in ("GET", "DELETE")
    is_long = operation.about.get("is_long", False)
    reply: Callable[[Any], Reply] = operation.about.get("reply") or plain(operation.returns)

    async def respond(request: Request) -> Response:
        if request.scope["query_string"]:
            refuse_unknown(request.query_params, known)
        given: Mapping[str, Any] = {}
        if document is not None:
            given = {document.name: await read_json(request)}
        elif has_body:
            given = await read_object(request, known=in_body)
        values = values_of(parameters, request, given)
        actor = await actor_of(app, request.scope)
        finish = reply if actor.agent is None else lambda result: _without_figures(reply(result))
        try:
            work = operation.then(noun(app, actor), finish, **values)
            made: Reply | None = await (while_connected(request, work) if is_long else work)
        except NotPermitted as error:
            raise Refused(403, str(error)) from None
        if made is None:
            return Response()  # which is not read
        if made.status == 204:
            return Response(status_code=204)
        return JsonText(made.text, made.status, made.headers)

    return respond


def values_of(parameters: Iterable[Parameter], request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation; everything that is wrong with them is reported together."""
    values: dict[str, Any] = {}
    errors: list[FieldError] = []
    sources: Mapping[str, Mapping[str, Any]] = {
        "path": request.path_params, "query": request.query_params, "header": request.headers
    }  # fmt: skip
    for one in parameters:
        source = sources.get(one.where, body)
        given: Any = source.get(one.name)
        if given is None and not (one.name in body and _takes_null(one)):
            if one.is_required:
                errors.append(FieldError(one.name, one.if_left_out))
            continue
        try:
            values[one.attribute] = one.of_text(given) if one.where in sources else one.checked(given)
        except Invalid as invalid:
            errors += invalid.errors
    if errors:
        raise Invalid(*errors)
    return values


def _takes_null(one: Parameter) -> bool:
    """Whether null in a body is passed on; otherwise it counts as left out."""
    return one.where == "document" or (
        one.where == "body" and (one.is_optional or not one.is_required or one.about.unchecked)
    )


def refuse_unknown(query: Mapping[str, str], known: Sequence[str]) -> None:
    """A misspelt `?dryrun=true` must not write."""
    fields = Fields(dict(query.items()))
    if known:
        fields.refuse_unknown(known)
    else:
        for name in list(query)[:10]:
            fields.fail(name[:80], "unknown parameter; this route has none")
    fields.finish()


def _without_figures(reply: Reply) -> Reply:
    return reply if not reply.text else reply._replace(text=encode(without_figures(json.loads(reply.text))))
