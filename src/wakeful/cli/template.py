"""A `wakeful.toml` to begin with: every setting with its default, commented out, made from the models themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from wakeful.settings.messages import table_at
from wakeful.settings.model import ENTRIES, Settings

_HEAD: Final = """\
# Settings of Wakeful. Every line is optional: what stands behind a # is the default.
# The file is read again when it changes; check it with: wakeful check wakeful.toml
"""
# What is unset by default has no line of its own to show; these are examples of it.
_EXAMPLES: Final = {
    "server.token": 'token = {env = "WAKEFUL_TOKEN"}',
    "heartbeat.active_hours": 'active_hours = {start = "09:00", end = "22:00", timezone = "Europe/Berlin"}',
}
_ENTRY_EXAMPLES: Final = {
    "agents": """\
# Whom prompts are for. The agent named default is an echo until you say otherwise:
# [agents.default]
# adapter = "openai"                  # sessions | openai | anthropic | command | call | echo
# url = "http://127.0.0.1:8000/v1"
# model = "some-model"
# api_key = {env = "MODEL_KEY"}
""",
    "hooks": """\
# An address that wakes the agent, POST /api/hooks/door:
# [hooks.door]
# token = {env = "DOOR_TOKEN"}
""",
    "channels": """\
# Where answers go:
# [channels.phone]
# type = "telegram"                   # telegram | webhook | console | inbox | apprise
# token = {env = "TELEGRAM_TOKEN"}
# chat = "12345"
""",
    "slots": """\
# Quota windows to keep warm:
# [slots.main]
# provider = "glm"                    # glm | http | command
# api_key = {env = "GLM_KEY"}
# interval = "60m"
""",
}


def settings_template() -> str:
    """The text of the file."""
    return "\n".join([_HEAD, *(text for section in Settings.model_fields for text in _section(section))])


def _section(section: str) -> Iterator[str]:
    if section in ENTRIES:
        yield _ENTRY_EXAMPLES[section]
        return
    table = table_at((section,), {})
    if table is None:
        return
    lines = [f"[{section}]"]
    for name, field in table.model_fields.items():
        written = _EXAMPLES.get(f"{section}.{name}") or f"{name} = {_toml(field.default)}"
        kind = "for example; " if f"{section}.{name}" in _EXAMPLES else ""
        lines.append(f"# {written:<36}# {kind}{field.description or ''}".rstrip(" #"))
    yield "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
