"""Who calls: the agents behind runs, tokens and processes."""

import socket
from collections.abc import Collection
from typing import Final

from wakeful.app.lifecycle import AppLifecycle
from wakeful.core.refusals import NotFound
from wakeful.features.schedules import calling_runs
from wakeful.features.schedules.calling_runs import CallingRun
from wakeful.features.schedules.owned import Actor
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Tx

RUNS_MAX: Final = 10_000


async def actor_of_run(app: AppLifecycle, run_id: int) -> Actor:
    """The agent that a run belongs to, with its lineage and where its reply goes."""
    hooks, default = app._open.hooks, app._heartbeat.terms.agent

    def look(tx: Tx) -> Actor:
        run = tx.runs.lock([run_id]).get(run_id)
        if run is None:
            raise NotFound(f"there is no run {run_id}")
        return calling_runs.actor_of(tx, run, hooks.keepers, default=default)

    return await app._open.store.read(look)


async def actor_of_agent(app: AppLifecycle, agent: str) -> Actor:
    """An agent that calls with its own token, from outside or from one of its runs: that cannot be told apart, so
    its deepest run in progress counts. Otherwise a chain of `wake_me` would never end."""

    def look(tx: Tx) -> int:
        runs = tx.runs.of_nodes([node.node_id for node in tx.nodes.all()], limit=RUNS_MAX)
        owners = tx[Ownerships].among([run.schedule_id for run in runs if run.outcome == "running"])
        return max((row.depth for row in owners.values() if row.owner == agent), default=0)

    return Actor(agent, depth=await app._open.store.read(look))


async def calling_run(app: AppLifecycle, leaders: Collection[int], tokens: Collection[str]) -> CallingRun | None:
    """The run whose program has one of these process ids on this machine, or that was given one of these tokens."""
    parts, host = app._open, socket.gethostname()
    read = [] if parts.run_tokens is None else [parts.run_tokens.read(token) for token in tokens]
    marked = {known[0] for known in read if known is not None}
    return await parts.store.read(
        lambda tx: calling_runs.calling_run(tx, parts.hooks.keepers, host=host, leaders=leaders, marked=marked)
    )
