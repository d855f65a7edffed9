"""Who asks with a request."""

from starlette.types import Scope

from wakeful.api.actors import PROGRAM, Actor
from wakeful.api.python import Wakeful
from wakeful.app.calling import actor_of_agent, actor_of_run
from wakeful.core.refusals import NotFound
from wakeful.features.schedules.owned import Actor as Agent
from wakeful.server.http.access import Caller, caller_of


async def actor_of(app: Wakeful, scope: Scope) -> Actor:
    """Who asks. The middleware has authenticated the request."""
    caller = caller_of(scope)
    if caller is None:
        return PROGRAM
    role = caller.role
    if role in ("read", "operate", "admin"):
        return Actor(role, caller.name, run_id=caller.run_id)
    agent = await _agent_of(app, caller) if role in ("agent", "run") else None
    if agent is not None:
        return Actor("agent", caller.name, agent, caller.run_id)
    return Actor("read", caller.name, run_id=caller.run_id)


async def _agent_of(app: Wakeful, caller: Caller) -> Agent | None:
    """The agent that asks with its token, or in a run."""
    if caller.run_id is not None:
        try:
            return await actor_of_run(app, caller.run_id)
        except NotFound:
            return None
    return None if caller.agent is None else await actor_of_agent(app, caller.agent)
