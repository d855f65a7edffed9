"""Whether the configured agents are usable, for `up`, `doctor` and `check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from wakeful.cli.client import Daemon
    from wakeful.config.load import Loaded

NO_AGENT: Final = "no agent is configured, so prompts go to the echo agent, which replies with the prompt"
HOW_TO_ADD: Final = (
    "add one: `wakeful init` finds installed agents; "
    'or write [agents.default] with adapter = "claude" (for example) into wakeful.toml'
)


class AgentState(NamedTuple):
    """One configured agent."""

    name: str
    adapter: str
    field: str  # the setting that names its program
    problem: str | None  # why it is unusable, and the cure


def states_of(loaded: Loaded) -> list[AgentState]:
    """The configured agents, with what is missing on this machine: on the PATH, or on Python's path."""
    from wakeful.config.agents import CallAgent
    from wakeful.integrations.actions.registry import missing_module
    from wakeful.integrations.agents.programs import unusable

    states = []
    for name, agent in loaded.settings.agents.items():
        if isinstance(agent, CallAgent):
            states.append(AgentState(name, agent.adapter, f"agents.{name}.target", missing_module(agent.target)))
            continue
        field = f"agents.{name}.{'argv' if agent.adapter == 'command' else 'program'}"
        states.append(AgentState(name, agent.adapter, field, unusable(agent)))
    return states


def agents_of_settings(home: Path) -> list[AgentState]:
    """The agents of a home folder; empty if its settings cannot be read, which is reported separately."""
    from wakeful.config import SettingsRefused, load

    try:
        return states_of(load(home))
    except SettingsRefused:
        return []


def agents_of_daemon(daemon: Daemon) -> list[AgentState]:
    """The agents of a running daemon, which may have another PATH."""
    listed = daemon.get("/api/agents")["agents"]
    return [AgentState(agent["name"], agent["adapter"], "", agent["problem"]) for agent in listed]


def has_only_echo(home: Path) -> bool:
    """Whether only the echo agent is available."""
    states = agents_of_settings(home)
    return bool(states) and all(state.adapter == "echo" for state in states)
