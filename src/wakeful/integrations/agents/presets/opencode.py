"""OpenCode. The prompt goes over stdin; tokens come with every step and are added up."""

import json
from dataclasses import replace
from typing import Any, Final

from wakeful.core.run.usage import Usage, added, is_cost, is_count, usage
from wakeful.core.time.instants import MINUTE
from wakeful.integrations.agents.limits import printed_reset
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
from wakeful.integrations.agents.printed import at, last, objects, of_type, text_at
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.troubles import error_lines

_LOST: Final = "Session not found"
_AUTO: Final = "auto"
_REJECTED: Final = ("rejected permission", "permission", "denied")


def launch(ask: Ask) -> Launch:
    # Without a title it asks the model for one, and does not report what that costs.
    argv = [ask.program, "run", "--format", "json", "--title", "Wakeful"]
    argv += ["--session", ask.session_id] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--auto"] if ask.permissions == _AUTO else []
    return Launch((*argv, *ask.args), ask.prompt, _tools(ask.tools_url) if ask.tools_url else {})


def _tools(url: str) -> dict[str, str]:
    """Our MCP server, added to the person's own settings; the program takes the run's token from its environment."""
    headers = {"Authorization": f"Bearer {{env:{TOKEN_VARIABLE}}}"}
    server = {"type": "remote", "url": url, "headers": headers, "oauth": False, "enabled": True}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"mcp": {TOOLS: server}})}


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    session_id = next((session_id_of(event.get("sessionID")) for event in events), None)
    used, refused, text = _usage(events), _refused(events), _reply(events)
    error = last(events, "error")
    if error is None and text is not None and printed.code == 0:
        return Reading("answered", text, None, session_id, used, None, refused)
    said = text_at(error, "error", "data", "message") or text_at(error, "error", "name") or error_lines(printed.stderr)
    if error is None and printed.code == 0:
        said = "it stopped because a tool was refused" if refused else "it finished its turn without a reply"
    if _LOST in said:
        return Reading("lost", said)
    status = at(error, "error", "data", "statusCode")
    status = status if isinstance(status, int) else None
    failed = Reading("failed", said, status, session_id, used, None, refused)
    reset = _reset(error, said, printed, now)
    return failed if reset is None else replace(failed, kind="limited", reset_at=reset)


def _reply(events: list[dict[str, Any]]) -> str | None:
    """The text after its last tool."""
    said: list[str] = []
    for event in events:
        if event.get("type") == "tool_use":
            said = []
        elif event.get("type") == "text":
            said.append(text_at(event, "part", "text") or "")
    text = "\n".join(said)
    return text if text.strip() else None


def _usage(events: list[dict[str, Any]]) -> Usage | None:
    total: Usage | None = None
    for event in of_type(events, "step_finish"):
        tokens, cost = at(event, "part", "tokens"), at(event, "part", "cost")
        counts = [
            at(tokens, *path)
            for path in (("input",), ("cache", "read"), ("cache", "write"), ("output",), ("reasoning",))
        ]
        if not all(map(is_count, counts)):
            continue
        fresh, read, written, output, reasoning = counts
        step = usage(
            input=fresh + read + written,
            cachedInput=read,
            output=output + reasoning,
            reasoning=reasoning,
            cost=cost if is_cost(cost) and cost > 0 else None,  # 0 means that the model has no price
        )
        total = added(total, step)
    return total


def _refused(events: list[dict[str, Any]]) -> tuple[str, ...]:
    tools: list[str] = []
    for event in of_type(events, "tool_use"):
        error = text_at(event, "part", "state", "error") or ""
        if text_at(event, "part", "state", "status") == "error" and any(word in error for word in _REJECTED):
            tools.append(text_at(event, "part", "tool") or "a tool")
    return tuple(dict.fromkeys(tools))


def _reset(error: dict[str, Any] | None, said: str, printed: Printed, now: ReadMoment) -> int | None:
    """A delay of seconds only limits the request rate; a longer one means that a usage limit is reached."""
    if at(error, "error", "data", "statusCode") != 429:
        return None
    after = text_at(error, "error", "data", "responseHeaders", "retry-after") or ""
    stamp = at(error, "timestamp")
    since = min(stamp, now.at) if isinstance(stamp, int) else now.at  # a duration counts from when it was printed
    told_at = now._replace(at=since)
    reset = printed_reset(after, printed, told_at) or printed_reset(said, printed, told_at)
    return reset if reset is not None and reset >= now.at + MINUTE else None


PRESET: Final = Preset(
    name="opencode",
    program="opencode",
    launch=launch,
    read=read,
    takes_other_permissions=False,
    login="run `opencode auth login` or set the key of its provider",
    pass_env=("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
    permissions=(_AUTO,),
)
