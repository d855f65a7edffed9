"""Codex. The prompt goes over stdin (`-`); usage is the total of the session."""

import json
from dataclasses import replace
from typing import Final

from wakeful.core.run.usage import usage_of
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.codex_rollout import read_stored
from wakeful.integrations.agents.presets.preset import (
    TOKEN_VARIABLE,
    TOOLS,
    Ask,
    Launch,
    Preset,
    Printed,
    Reading,
    ReadMoment,
)
from wakeful.integrations.agents.printed import last, objects, of_type, text_at
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.troubles import error_lines

_LOST: Final = "no rollout found"
_LIMIT: Final = "usage limit"
_SANDBOXED: Final = ("Read-only file system", "Operation not permitted", "Permission denied")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "exec"]
    # `resume` takes no sandbox option, only the setting behind it.
    argv += ["resume"] if ask.session_id else []
    argv += ["--json", "--skip-git-repo-check"]
    argv += ["--ephemeral"] if not ask.session_id and not ask.new_session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["-c", f'sandbox_mode="{ask.permissions}"'] if ask.permissions else []
    argv += _tools(ask.tools_url) if ask.tools_url else []
    argv += ask.args
    argv += [ask.session_id] if ask.session_id else []
    return Launch((*argv, "-"), ask.prompt)


def _tools(url: str) -> list[str]:
    """Our MCP server, with the run's token from the environment; its tools need no further approval. Unless a server is
    required, the turn begins before it is connected, without its tools."""
    values: dict[str, object] = {
        "url": url,
        "bearer_token_env_var": TOKEN_VARIABLE,
        "default_tools_approval_mode": "approve",
        "required": True,
        "startup_timeout_sec": 60,
    }
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    return ["-c", f"mcp_servers.{TOOLS}={{{table}}}"]  # replaces one that the person has registered


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    session_id = next((session_id_of(event.get("thread_id")) for event in of_type(events, "thread.started")), None)
    completed, failed = last(events, "turn.completed"), last(events, "turn.failed")
    totals = usage_of(completed.get("usage")) if completed else None
    text = _reply(events)
    refused = _refused(events)
    if completed is not None and failed is None and text is not None and printed.code == 0:
        return Reading("answered", text, None, session_id, None, totals, refused)
    said = (
        text_at(failed, "error", "message") or text_at(last(events, "error"), "message") or error_lines(printed.stderr)
    )
    if failed is None and completed is not None and text is None:
        said = "it finished its turn without a reply"
    if _LOST in said:
        return Reading("lost", said)
    reset = printed_reset(said, printed, now) if _LIMIT in said else None
    reading = Reading("failed", said, None, session_id, None, totals, refused)
    return reading if reset is None else replace(reading, kind="limited", reset_at=reset)


def _reply(events: list[dict[str, object]]) -> str | None:
    """The last message of the agent; earlier ones are progress messages."""
    items = [event.get("item") for event in of_type(events, "item.completed")]
    said = [text_at(item, "text") for item in items if text_at(item, "type") == "agent_message"]
    return said[-1] if said else None


def _refused(events: list[dict[str, object]]) -> tuple[str, ...]:
    """Commands that were declined, or that its sandbox blocked."""
    tools: list[str] = []
    for event in of_type(events, "item.completed"):
        status, output = text_at(event, "item", "status"), text_at(event, "item", "aggregated_output") or ""
        if status == "declined" or (status == "failed" and any(words in output for words in _SANDBOXED)):
            tools.append(text_at(event, "item", "command") or text_at(event, "item", "type") or "a command")
    return tuple(dict.fromkeys(tools))


PRESET: Final = Preset(
    name="codex",
    program="codex",
    launch=launch,
    read=read,
    login="run `codex login` or set the key that its model provider names",
    pass_env=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
    permissions=("read-only", "workspace-write", "danger-full-access"),
    read_stored=read_stored,
)
