"""Who a request comes from: an agent, or a person or program with a role."""

from starlette.types import Scope

from wakeful.api.actors import PROGRAM, Actor
from wakeful.api.python import Wakeful
from wakeful.app.calling import actor_of_agent, actor_of_run
from wakeful.core.refusals import NotFound
from wakeful.features.schedules.owned import Actor as Agent
from wakeful.server.http.access import Caller, caller_of


async def actor_of(app: Wakeful, scope: Scope) -> Actor:
    """Who asks. The middleware has authenticated the request."""
    caller: Caller | None = caller_of(scope)
    if caller is None:
        return PROGRAM
    agent = await agent_of(app, scope)
    if agent is not None:
        return Actor("agent", caller.name, agent, caller.run_id)
    role = caller.role
    return Actor(role if role in ("read", "operate", "admin") else "read", caller.name, run_id=caller.run_id)


async def agent_of(app: Wakeful, scope: Scope) -> Agent | None:
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
