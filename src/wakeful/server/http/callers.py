"""`/api/caller`: who the daemon takes the caller for."""

from dataclasses import dataclass
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from wakeful.core.returned import returned
from wakeful.features.schedules.views import encode
from wakeful.server.http.access import Role, caller_of
from wakeful.server.http.json_text import JsonText
from wakeful.server.http.serving import Api


@dataclass(frozen=True, slots=True)
class CallerView:
    """Who sent the request."""

    role: Role
    name: Annotated[str, "the token, the run, or `socket`"]
    agent: Annotated[str | None, "of an agent's token"]
    run_id: Annotated[str | None, "the run that the calling process belongs to"]


CALLER = returned(CallerView, name="Caller")


async def get_caller(_api: Api, request: Request) -> Response:
    """By its token, or on the Unix socket by the run that its process descends from."""
    caller = caller_of(request.scope)
    assert caller is not None  # noqa: S101 - the middleware lets no one else pass
    run_id = None if caller.run_id is None else str(caller.run_id)
    return JsonText(encode(CALLER.write(CallerView(caller.role, caller.name, caller.agent, run_id))))
