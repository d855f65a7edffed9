"""Creates agents from the settings."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import tzlocal

from wakeful.config import agents as written
from wakeful.config.secrets import Secret
from wakeful.core.slot.windows import UsageWindow
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.actions.sandbox import Sandbox
from wakeful.integrations.agents.anthropic import anthropic_agent
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.agents.chat import ChatSettings
from wakeful.integrations.agents.command import CommandAgent, CommandSettings
from wakeful.integrations.agents.echo import EchoAgent
from wakeful.integrations.agents.openai import openai_agent
from wakeful.integrations.agents.plugin import plugin_agent
from wakeful.integrations.agents.preset_agent import PresetAgent, PresetSettings
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.session_notes import SessionNotes
from wakeful.integrations.agents.session_records import FOLDER
from wakeful.integrations.agents.session_server import SessionsSettings
from wakeful.integrations.agents.sessions import SessionsAgent
from wakeful.integrations.agents.transcripts import Transcripts
from wakeful.integrations.plugins.loading import Plugins
from wakeful.ports.agent import Agent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener

OnWindowsOf: TypeAlias = Callable[[str, tuple[UsageWindow, ...]], Awaitable[None]]
"""Called with an agent's name and the usage windows that one of its turns reported."""


class AgentRegistry:
    """The agents from the settings, created on first use and kept while their settings do not change: an agent knows
    which sessions it created, and what it left behind. Transcripts are in the home folder."""

    def __init__(
        self,
        home: Path,
        listener: Callable[[], ExchangeListener | None] | None = None,
        on_windows: OnWindowsOf | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self._home = home
        self._on_windows = on_windows
        self._plugins = plugins or Plugins(lambda: 0)
        self._listener = listener  # called when an agent is created: the listener may be set after this registry
        self._made: dict[str, tuple[written.Agent, Agent]] = {}

    def agents(self, described: Mapping[str, written.Agent], clock: Clock, registry: CallRegistry) -> dict[str, Agent]:
        """One agent for each `[agents.NAME]`."""
        made: dict[str, tuple[written.Agent, Agent]] = {}
        listener = None if self._listener is None else self._listener()
        for name, agent in described.items():
            known = self._made.get(name)
            if known is None or known[0] != agent:
                made_now = _make(name, agent, clock, registry, self._home, listener, self._on_windows, self._plugins)
                known = (agent, made_now)
            made[name] = known
        self._made = made
        return {name: agent for name, (_, agent) in made.items()}


def _make(
    name: str,
    agent: written.Agent,
    clock: Clock,
    registry: CallRegistry,
    home: Path,
    listener: ExchangeListener | None,
    on_windows: OnWindowsOf | None,
    plugins: Plugins,
) -> Agent:
    match agent:
        case written.EchoAgent():
            return EchoAgent()
        case written.SessionsAgent():
            settings = SessionsSettings(
                url=agent.url,
                model=agent.model,
                cwd=agent.cwd,
                headers=_all_revealed(agent.headers),
                confirm_within=agent.confirm_within,
                answer_within=agent.answer_within,
                sessions_max=agent.sessions_max,
                history_path=agent.history_path,
                history_file=agent.history_file,
                proves=agent.proves,
            )
            return SessionsAgent(settings, clock, listener, home / FOLDER / f"{name}.json")
        case written.OpenAIAgent():
            return openai_agent(_chat(agent), clock, _transcripts(name, agent, home), listener)
        case written.AnthropicAgent():
            return anthropic_agent(_chat(agent), clock, _transcripts(name, agent, home), listener)
        case written.CommandAgent():
            return CommandAgent(_command(agent, home), clock)
        case written.PresetAgent():
            notes = SessionNotes(home / "agents" / name)
            callback = None if on_windows is None else partial(on_windows, name)
            return PresetAgent(_preset(agent, home), clock, notes, on_windows=callback)
        case written.CallAgent():
            return CallAgent(agent.target, registry, model=agent.model)
        case written.PluginAgent():
            return plugin_agent(plugins, agent.adapter, _of_plugin(agent), registry)
        case _:
            assert_never(agent)


def _of_plugin(agent: written.PluginAgent) -> dict[str, Any]:
    """What the plugin gets: its own settings, and the model."""
    return {**agent.settings, **({} if agent.model is None else {"model": agent.model})}


def _chat(agent: written.OpenAIAgent | written.AnthropicAgent) -> ChatSettings:
    return ChatSettings(
        url=agent.url,
        model=agent.model,
        api_key=_revealed(agent.api_key),
        system=agent.system,
        max_tokens=agent.max_tokens,
        has_tools=agent.tools,
        headers=_all_revealed(agent.headers),
        answer_within=agent.answer_within,
    )


def _transcripts(name: str, agent: written.OpenAIAgent | written.AnthropicAgent, home: Path) -> Transcripts:
    return Transcripts(home / "transcripts" / name, sessions_max=agent.sessions_max)


def _command(agent: written.CommandAgent, home: Path) -> CommandSettings:
    env = variables(agent.env)
    return CommandSettings(
        argv=agent.argv,
        resume_argv=agent.resume_argv,
        cwd=str(agent.cwd or home),
        env=env,
        pass_env=agent.pass_env,
        model=agent.model,
        format=agent.format,
        stdin=agent.stdin,
        session_path=agent.session_key,
        reply_path=agent.reply_key,
        usage_path=agent.usage_key,
        error_path=agent.error_key,
        session_pattern=_pattern(agent.session_pattern),
        lost_pattern=_pattern(agent.lost_pattern),
        error_pattern=_pattern(agent.error_pattern),
        limit_pattern=_pattern(agent.limit_pattern),
        zone=_zone(env),
        sandbox=sandbox_of(agent, home),
    )


def sandbox_of(agent: written.CommandAgent, home: Path) -> Sandbox | None:
    """What its program may do; None if it is not in a sandbox."""
    if agent.sandbox is None:
        return None
    return Sandbox(tuple(map(str, agent.sandbox_write)), agent.sandbox_network, str(home))


def _preset(agent: written.PresetAgent, home: Path) -> PresetSettings:
    preset, env = PRESETS[agent.adapter], variables(agent.env)
    return PresetSettings(
        preset=preset,
        program=preset.program if agent.program is None else _program(agent.program),
        cwd=str(agent.cwd or home),
        model=agent.model,
        permissions=agent.permissions,
        has_tools=agent.tools,
        args=agent.args,
        env=env,
        pass_env=(*preset.pass_env, *agent.pass_env),
        zone=_zone(env),
    )


def environment_of(agent: written.Agent) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """The secrets an agent's program gets, and the variables the settings add; None if it starts no program."""
    match agent:
        case written.CommandAgent():
            return agent.pass_env, variables(agent.env)
        case written.PresetAgent():
            preset = PRESETS[agent.adapter]
            return (*preset.pass_env, *agent.pass_env), {**preset.env, **variables(agent.env)}
        case _:
            return None


def variables(env: Mapping[str, str | Secret]) -> dict[str, str]:
    """The environment from the settings, with secrets revealed."""
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in env.items()}


def _program(name: str) -> str:
    return str(Path(name).expanduser()) if name.startswith("~") else name


def _zone(env: Mapping[str, str]) -> str:
    """The zone in which a program prints times of day."""
    return env.get("TZ") or tzlocal.get_localzone_name()


def _pattern(pattern: re.Pattern[str] | None) -> str | None:
    return None if pattern is None else pattern.pattern


def _all_revealed(secrets: Mapping[str, Secret]) -> dict[str, str]:
    return {name: secret.reveal() for name, secret in secrets.items()}


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()
