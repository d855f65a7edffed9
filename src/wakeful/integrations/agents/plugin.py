"""Agents of plugins: an object with the methods of the port, or a function that takes the prompt."""

from collections.abc import Mapping
from typing import Any, Final, cast

from wakeful.core.run.results import Failed
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.plugins.guard import Fallback
from wakeful.integrations.plugins.loading import Absent, Function, PluginBroken, Plugins
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Agent, Answer, Exchange, NotVisible


def _refusing(why: str) -> Exchange:
    """A turn that ends at once: nothing was sent."""

    async def send(_: Ladder) -> Answer:
        return Failed(why)

    return OneShot(send)


_AGENT: Final[Mapping[str, Fallback]] = {
    "check": lambda why: why,
    "begin": _refusing,
    "ask": lambda _: None,
    "close": lambda _: None,
}
_EXCHANGE: Final[Mapping[str, Fallback]] = {
    "send": Failed,
    "look": lambda _: NotVisible(),
    "cancel": lambda _: False,
    "clean_up": lambda _: None,
}


def plugin_agent(plugins: Plugins, kind: str, settings: Mapping[str, Any], registry: CallRegistry) -> Agent:
    """The agent; one that cannot be used refuses schedules, and fails turns, with the reason."""
    try:
        made = plugins.make("wakeful.agents", kind, settings, _AGENT, {"begin": _EXCHANGE})
    except PluginBroken as broken:
        return cast(Agent, Absent(str(broken), _AGENT, ("check", "begin"), proves="finished", knows={}))
    if isinstance(made, Function):
        registry.register(made.target, made.call)
        return CallAgent(made.target, registry)
    return cast(Agent, made)
