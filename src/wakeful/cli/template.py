"""A starting `wakeful.toml`: every setting with its default, commented out, generated from their descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wakeful.config.model import ENTRIES, SETTINGS
from wakeful.core.description import Field
from wakeful.integrations.agents.programs import Installed

_HEAD: Final = """\
# Wakeful settings. Every line is optional: the commented values are the defaults. To change one, remove the # from its
# line and from the [section] above it, or append both to this file.
# The file is read again when it changes; check it with: wakeful check wakeful.toml
"""
# Examples for settings that are unset by default.
_EXAMPLES: Final = {
    "server.public_url": 'public_url = "https://wakeful.example.com"',
    "server.token": 'token = {env = "WAKEFUL_TOKEN"}',
    "exclude.calendar": 'calendar = "holidays.ics"',
    "otel.endpoint": 'endpoint = "http://127.0.0.1:4318"',
    "alerts.ping": 'ping = "https://hc.example.com/id"',
    "heartbeat.check": 'check = {command = {argv = ["./new-mail"]}}',
    "budgets.day": "day = 5.0",
    "budgets.month": "month = 100.0",
    "heartbeat.model": 'model = "small-model"',
    "heartbeat.active_hours": 'active_hours = {start = "09:00", end = "22:00", timezone = "Europe/Berlin"}',
}
_ENTRY_EXAMPLES: Final = {
    "tokens": """\
# [tokens.grafana]                    # an additional API token with a role
# token = {env = "GRAFANA_TOKEN"}
# role = "read"                       # read | operate | admin | agent
""",
    "hooks": """\
# A webhook that wakes the agent, POST /api/hooks/doorbell:
# [hooks.doorbell]
# token = {env = "DOORBELL_TOKEN"}
""",
    "channels": """\
# Where replies and alerts are delivered:
# [channels.phone]
# type = "telegram"                   # telegram | webhook | console | inbox | apprise
# token = {env = "TELEGRAM_TOKEN"}
# chat = "12345"
""",
    "prices": """\
# The price of a model that has none in the built-in table:
# [prices."some-model"]               # US dollars per million tokens
# input = 3.0
# output = 15.0
""",
    "slots": """\
# Quota windows to keep warm:
# [slots.main]
# provider = "glm"                    # glm | http | command
# api_key = {env = "GLM_KEY"}
# interval = "60m"
""",
}


_AGENTS_HEAD: Final = "# Agents that run prompts. A schedule uses the agent named default unless it names another one."
_NO_AGENT: Final = """\
# No agent was found on the PATH, so default is the echo agent, which replies with the prompt. For example:
# [agents.default]
# adapter = "claude"                  # or codex | gemini | opencode | qwen | copilot | aider | goose | cursor | amp
"""
_OTHER_AGENTS: Final = """\
# Any other program, run once for each prompt: it reads the prompt and prints the reply.
# [agents.script]
# adapter = "command"
# argv = ["sh", "-c", "echo \\"I was asked: $(cat)\\""]

# A chat endpoint; other adapters: sessions | anthropic | call | echo
# [agents.chat]
# adapter = "openai"
# url = "http://127.0.0.1:8000/v1"
# model = "some-model"
# api_key = {env = "MODEL_KEY"}
"""


def settings_template(programs: Sequence[Installed] = ()) -> str:
    """The text of the file with these agents, the first as default."""
    return "\n".join([_HEAD, *(text for section in SETTINGS for text in _section(section, programs))])


def agents_template(programs: Sequence[Installed]) -> str:
    """The tables of these agents, the first as default, and examples for others."""
    tables = [_agent_table(program, is_first=number == 0) for number, program in enumerate(programs)]
    return "\n".join([_AGENTS_HEAD, *(tables or [_NO_AGENT]), _OTHER_AGENTS])


def _agent_table(program: Installed, *, is_first: bool) -> str:
    name = "default" if is_first else program.adapter
    adapter = f'adapter = "{program.adapter}"'
    cwd = '# cwd = "/home/me/project"'
    return f"[agents.{name}]\n{adapter:<38}# found at {program.path}\n{cwd:<38}# its working directory\n"


def _section(section: Field, programs: Sequence[Installed]) -> Iterator[str]:
    if section.name == "agents":
        yield agents_template(programs)
    elif section.name in ENTRIES:
        yield _ENTRY_EXAMPLES[section.name]
    elif not section.kind.inner:
        yield _line("", section) + "\n"
    else:
        (table,) = section.kind.inner
        yield "\n".join([f"# [{section.name}]", *(_line(section.name, field) for field in table)]) + "\n"


def _line(section: str, field: Field) -> str:
    example = _EXAMPLES.get(f"{section}.{field.name}")
    written = example or f"{field.name} = {_toml(field.written_default)}"
    return f"# {written:<36}# {'for example; ' if example else ''}{field.says}".rstrip(" #")


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
