"""`/api/hooks`: wakes from outside, each with the token of its hook."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from wakeful.api.parameters import Param
from wakeful.api.turns import KEY, TEXT, undecided
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.features.heartbeat.commands import WOKEN, request_wake
from wakeful.features.schedules.views import encode
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.requests import read_json, text_of
from wakeful.server.http.serving import Api

CALL: Final[Mapping[str, Any]] = {
    "title": "HookCall",
    "description": "The body of an inbound hook; other fields are ignored.",
    "type": "object",
    "properties": {
        "text": {
            "anyOf": [{name: one for name, one in TEXT.items() if name != "description"}, {"type": "null"}],
            "default": None,
            "title": "Text",
        },
        "contextKey": {"anyOf": [KEY, {"type": "null"}], "default": None, "title": "Contextkey"},
    },
}


async def call_hook(
    api: Api, request: Request, *, name: Annotated[str, Param("a table under [hooks] in wakeful.toml", example="door")]
) -> Response:
    """Needs the hook's own token as a bearer token. Fields other than `text` and `contextKey` are ignored."""
    data, source = await _called_with(request), f"hook:{name}"
    text, key = text_of(data, "text"), text_of(data, "contextKey")
    if text is None and key is not None:
        refuse("contextKey", "needs text; give both, or leave it out")
    text = None if text is None else undecided(text, source)
    apply = api.app._open.apply
    woken = await api.app._command(
        lambda tx, now: request_wake(tx, "hook", now=now, apply=apply, text=text, context_key=key, source=source)
    )
    return JsonText(encode(WOKEN.write(woken)), 202)


async def _called_with(request: Request) -> Mapping[str, Any]:
    """The optional body of a hook."""
    if not await request.body():
        return {}
    data = await read_json(request)
    if not isinstance(data, Mapping):
        refuse("", f"{shown(data)} is not an object; write {{…}}")
    return data
