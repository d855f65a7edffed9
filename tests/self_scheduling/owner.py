"""What an agent asks for."""

from wakeful import Wakeful
from wakeful.api.actors import Actor, Agent
from wakeful.api.schedules import Schedules


def own(app: Wakeful, agent: Agent) -> Schedules:
    """The operations on schedules, as this agent."""
    return Schedules(app, Actor("agent", agent=agent))
