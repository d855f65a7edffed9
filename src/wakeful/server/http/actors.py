"""Which agent a request comes from."""

from starlette.types import Scope

from wakeful.api.python import Wakeful
from wakeful.app.calling import actor_of_agent, actor_of_run
from wakeful.core.refusals import NotFound
from wakeful.features.schedules.owned import Actor
from wakeful.server.http.access import Caller, caller_of


async def actor_of(app: Wakeful, scope: Scope) -> Actor | None:
    """The agent behind a request; None for everyone else."""
    caller: Caller | None = caller_of(scope)
    if caller is None or caller.role not in ("agent", "run"):
        return None
    if caller.run_id is not None:
        try:
            return await actor_of_run(app, caller.run_id)
        except NotFound:
            return None
    return None if caller.agent is None else await actor_of_agent(app, caller.agent)
