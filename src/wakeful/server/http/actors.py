"""Which agent a request comes from."""

from starlette.types import Scope

from wakeful.app import Wakeful
from wakeful.core.refusals import NotFound
from wakeful.features.schedules.owned import Actor
from wakeful.server.http.access import Caller
from wakeful.server.http.middleware import caller_of
from wakeful.server.http.problems import Refused


async def actor_of(app: Wakeful, scope: Scope) -> Actor | None:
    """The agent behind a request; None for everyone else."""
    caller: Caller | None = caller_of(scope)
    if caller is None or caller.role not in ("agent", "run"):
        return None
    if caller.run_id is not None:
        try:
            return await app.actor_of_run(caller.run_id)
        except NotFound:
            return None
    return None if caller.agent is None else await app.actor_of_agent(caller.agent)


async def known_actor(app: Wakeful, scope: Scope, *, for_commands: bool = False) -> Actor:
    """The agent behind a request to a route that only agents reach, or that runs of commands reach too."""
    actor = await actor_of(app, scope)
    if actor is None:
        raise NotFound("there is nothing here")
    if not actor.is_agent_run and not for_commands:
        raise Refused(403, "a command's run may only report its result, wake the heartbeat, and call wake_me")
    return actor
