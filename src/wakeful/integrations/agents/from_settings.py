"""Creates agents from the settings."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import assert_never

import tzlocal

from wakeful.config import agents as written
from wakeful.config.secrets import Secret
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.anthropic import anthropic_agent
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.agents.chat import ChatSettings
from wakeful.integrations.agents.command import CommandAgent, CommandSettings
from wakeful.integrations.agents.echo import EchoAgent
from wakeful.integrations.agents.openai import openai_agent
from wakeful.integrations.agents.preset_agent import PresetAgent, PresetSettings
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.session_notes import SessionNotes
from wakeful.integrations.agents.session_records import FOLDER
from wakeful.integrations.agents.session_server import SessionsSettings
from wakeful.integrations.agents.sessions import SessionsAgent
from wakeful.integrations.agents.transcripts import FileTranscripts
from wakeful.ports.agent import Agent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener


class AgentRegistry:
    """The agents from the settings, created on first use and kept while their settings do not change: an agent knows
    which sessions it created, and what it left behind. Transcripts are in the home folder."""

    def __init__(self, home: Path, listener: Callable[[], ExchangeListener | None] | None = None) -> None:
        self._home = home
        self._listener = listener  # called when an agent is created: the listener may be set after this registry
        self._made: dict[str, tuple[written.Agent, Agent]] = {}

    def agents(self, described: Mapping[str, written.Agent], clock: Clock, registry: CallRegistry) -> dict[str, Agent]:
        """One agent for each `[agents.NAME]`."""
        made: dict[str, tuple[written.Agent, Agent]] = {}
        listener = None if self._listener is None else self._listener()
        for name, one in described.items():
            known = self._made.get(name)
            if known is None or known[0] != one:
                known = (one, _make(name, one, clock, registry, self._home, listener))
            made[name] = known
        self._made = made
        return {name: agent for name, (_, agent) in made.items()}


def _make(
    name: str,
    one: written.Agent,
    clock: Clock,
    registry: CallRegistry,
    home: Path,
    listener: ExchangeListener | None,
) -> Agent:
    match one:
        case written.EchoAgent():
            return EchoAgent()
        case written.SessionsAgent():
            settings = SessionsSettings(
                url=one.url,
                model=one.model,
                cwd=one.cwd,
                headers=_all_revealed(one.headers),
                confirm_within=one.confirm_within,
                answer_within=one.answer_within,
                sessions_max=one.sessions_max,
                history_path=one.history_path,
                history_file=one.history_file,
                proves=one.proves,
            )
            return SessionsAgent(settings, clock, listener, home / FOLDER / f"{name}.json")
        case written.OpenAIAgent():
            return openai_agent(_chat(one), clock, _transcripts(name, one, home), listener)
        case written.AnthropicAgent():
            return anthropic_agent(_chat(one), clock, _transcripts(name, one, home), listener)
        case written.CommandAgent():
            return CommandAgent(_command(one, home), clock)
        case written.PresetAgent():
            return PresetAgent(_preset(one, home), clock, SessionNotes(home / "agents" / name))
        case written.CallAgent():
            return CallAgent(one.target, registry, model=one.model)
        case _:
            assert_never(one)


def _chat(one: written.OpenAIAgent | written.AnthropicAgent) -> ChatSettings:
    return ChatSettings(
        url=one.url,
        model=one.model,
        api_key=_revealed(one.api_key),
        system=one.system,
        max_tokens=one.max_tokens,
        has_tools=one.tools,
        headers=_all_revealed(one.headers),
        answer_within=one.answer_within,
    )


def _transcripts(name: str, one: written.OpenAIAgent | written.AnthropicAgent, home: Path) -> FileTranscripts:
    return FileTranscripts(home / "transcripts" / name, sessions_max=one.sessions_max)


def _command(one: written.CommandAgent, home: Path) -> CommandSettings:
    env = variables(one.env)
    return CommandSettings(
        argv=one.argv,
        resume_argv=one.resume_argv,
        cwd=str(one.cwd or home),
        env=env,
        pass_env=one.pass_env,
        model=one.model,
        format=one.format,
        stdin=one.stdin,
        session_path=one.session_key,
        reply_path=one.reply_key,
        usage_path=one.usage_key,
        error_path=one.error_key,
        session_pattern=_pattern(one.session_pattern),
        lost_pattern=_pattern(one.lost_pattern),
        error_pattern=_pattern(one.error_pattern),
        limit_pattern=_pattern(one.limit_pattern),
        zone=_zone(env),
    )


def _preset(one: written.PresetAgent, home: Path) -> PresetSettings:
    preset, env = PRESETS[one.adapter], variables(one.env)
    return PresetSettings(
        preset=preset,
        program=preset.program if one.program is None else _program(one.program),
        cwd=str(one.cwd or home),
        model=one.model,
        permissions=one.permissions,
        has_tools=one.tools,
        args=one.args,
        env=env,
        pass_env=(*preset.pass_env, *one.pass_env),
        zone=_zone(env),
    )


def environment_of(one: written.Agent) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """The secrets an agent's program gets, and the variables the settings add; None if it starts no program."""
    match one:
        case written.CommandAgent():
            return one.pass_env, variables(one.env)
        case written.PresetAgent():
            preset = PRESETS[one.adapter]
            return (*preset.pass_env, *one.pass_env), {**preset.env, **variables(one.env)}
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
