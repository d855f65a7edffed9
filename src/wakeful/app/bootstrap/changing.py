"""Changes to a running system."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from wakeful.app.bootstrap.parts import Parts
from wakeful.core.schedule.actions import Prompt
from wakeful.engine.lanes import unpark
from wakeful.engine.limits import Limits
from wakeful.features.schedules.rules import Terms
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.agent import Agent

STEP: Final = 500


async def change(parts: Parts, limits: Limits, terms: Terms) -> None:
    """Apply new limits and terms. Runs in progress keep the old ones."""
    before, parts.terms.value = parts.terms.value, terms
    parts.engine.change_limits(
        concurrency_max=limits.concurrency_max,
        shutdown_grace=limits.shutdown_grace,
        ledger_days=limits.ledger_days,
        labels=limits.labels,
    )
    after_id: int | None = None
    while terms.agent_lane == "parallel" != before.agent_lane:
        after_id = await parts.store.write(partial(unpark, is_lifted=terms.is_lifted, before_id=after_id, limit=STEP))
        if after_id is None:
            break
    parts.engine.ring_bell()


def agents_of(parts: Parts) -> Mapping[str, Agent]:
    """The current agents, by name."""
    turns = parts.hooks.actions.get(Prompt)
    return turns.agents if isinstance(turns, TurnAction) else {}


def change_agents(parts: Parts, agents: Mapping[str, Agent]) -> None:
    """Use these agents from now on; a turn in progress finishes with its agent."""
    turns = parts.hooks.actions.get(Prompt)
    if not isinstance(turns, TurnAction):
        raise RuntimeError("this app was started without agents; pass agents when it is created")
    turns.replace_agents(agents)
