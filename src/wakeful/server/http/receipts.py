"""`/api/runs/{id}/receipt`: proof of how far an agent or a command got."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse

from wakeful.api.ledger import RunPath
from wakeful.api.parameters import Param
from wakeful.api.python import Wakeful
from wakeful.core.fields import Fields
from wakeful.core.returned import returned
from wakeful.server.http.requests import read_json
from wakeful.server.http.serving import Api


class Received(NamedTuple):
    """The result of a receipt: taken, late (the wait was over), or again (nothing new)."""

    status: Literal["taken", "late", "again"]


RECEIVED: Final = returned(Received)
RECEIPT: Final[dict[str, Any]] = {
    "title": "Receipt",
    "description": "A receipt: how far an agent or a command got.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "rung": {"type": "string", "enum": ["accepted", "started", "finished"], "title": "Rung"},
        "text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Text"},
        "usage": {
            "anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}],
            "default": None,
            "title": "Usage",
        },
        "error": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "default": None, "title": "Error"},
    },
    "required": ["rung"],
}


async def post_receipt(
    api: Api,
    request: Request,
    *,
    run_id: RunPath,
    token: Annotated[str | None, Param("token of the run; may also be sent as a bearer token", where="query")] = None,
) -> JSONResponse:
    """For the agent or command of the run, which gets this URL and the run's token."""
    data = await read_json(request)
    fields = Fields(data if isinstance(data, Mapping) else {"rung": data})
    fields.refuse_unknown(("rung", "text", "usage", "error"))
    given = token or request.headers.get("authorization", "").partition(" ")[2].strip()
    fields.finish()
    rung, text, usage, error = (fields.raw(name) for name in ("rung", "text", "usage", "error"))
    status = await api.app._post_receipt(run_id, given, rung, text, usage, error)
    return JSONResponse({"status": status})


def is_token_of(app: Wakeful, run_id: int, token: str) -> bool:
    """Whether this is the token that the target of the run was given."""
    return app._receipts is not None and app._receipts.is_genuine(run_id, token)
