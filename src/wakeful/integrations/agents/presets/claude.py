"""Claude Code. The prompt goes over stdin; the stream reports the usage limit and its reset before the reply."""

import json
from dataclasses import replace
from typing import Any, Final

from wakeful.core.run.usage import Usage, added, is_cost, usage_of
from wakeful.core.slot.windows import LENGTHS, UsageWindow
from wakeful.core.time.instants import SECOND, Instant
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.claude_stream import Events, result_of
from wakeful.integrations.agents.presets.preset import (
    TOKEN_VARIABLE,
    TOOLS,
    Ask,
    Launch,
    Preset,
    Printed,
    Reading,
    ReadMoment,
    instant_of,
    percentage_of,
)
from wakeful.integrations.agents.printed import at, last, objects, of_type, text_at

_LOST: Final = "No conversation found"
_LIMIT: Final = ("hit your", "usage limit reached", "limit · resets")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "-p", "--output-format", "stream-json", "--verbose"]
    argv += ["--resume", ask.session_id] if ask.session_id else []
    argv += ["--no-session-persistence"] if not ask.session_id and not ask.new_session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--permission-mode", ask.permissions] if ask.permissions else []
    argv += ["--max-budget-usd", f"{ask.cost_max:g}"] if ask.cost_max is not None else []
    argv += _tools(ask.tools_url) if ask.tools_url else []
    return Launch((*argv, *ask.args), ask.prompt)


def _tools(url: str) -> list[str]:
    """Our MCP server, and the permission to use it. The token is not on the command line: other users can read that."""
    headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
    # Offered immediately: otherwise its model has to search for tools that it does not know of.
    config = {"mcpServers": {TOOLS: {"type": "http", "url": url, "headers": headers, "alwaysLoad": True}}}
    return [f"--mcp-config={json.dumps(config)}", f"--allowedTools=mcp__{TOOLS}"]


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    usage, totals = (_labelled(counts, events) for counts in _usage(events))
    reading = replace(result_of(printed, events, usage, totals), windows=_windows(events))
    if reading.kind != "failed":
        return reading
    said = reading.text or ""
    if _LOST in said or _LOST in printed.stderr:
        return replace(reading, kind="lost")
    reset = _reset(events, said, printed, now)
    return reading if reset is None else replace(reading, kind="limited", reset_at=reset)


def _reset(events: Events, said: str, printed: Printed, now: ReadMoment) -> Instant | None:
    """The event first: it is exact. `overageStatus: rejected` under `status: allowed` is not a rejection."""
    for event in reversed(list(of_type(events, "rate_limit_event"))):
        info = event.get("rate_limit_info")
        resets = at(info, "resetsAt")
        if text_at(info, "status") == "rejected" and isinstance(resets, int):
            return resets * SECOND
    if any(words in said for words in _LIMIT):
        return printed_reset(said, printed, now)
    return None


def _windows(events: Events) -> tuple[UsageWindow, ...]:
    """The windows of the account, from the last event. A window that is used up refuses nothing while the account pays
    for more (`isUsingOverage`): the status of the request decides."""
    info = next((event.get("rate_limit_info") for event in reversed(list(of_type(events, "rate_limit_event")))), None)
    by_name = at(info, "unifiedWindows")
    is_rejected = text_at(info, "status") == "rejected"
    named = by_name.items() if isinstance(by_name, dict) else ()
    return tuple(
        UsageWindow(
            str(name),
            percentage_of(at(window, "utilization"), times=100),
            instant_of(at(window, "resetsAt")),
            LENGTHS.get(name),
            is_rejected and text_at(window, "status") == "rejected",
        )
        for name, window in named
    )


def _usage(events: Events) -> tuple[Usage | None, Usage | None]:
    """This turn's usage, and the session's total cost, which versions without a figure per turn report. All models are
    added up, because the agent's helpers may use others."""
    result = last(events, "result")
    if result is None:
        return None, None
    turn = _models(result.get("model_usage_since_last_result"))
    if turn is not None:
        return turn, None
    usage: dict[str, Any] = dict(usage_of(result.get("usage")) or {})
    session = _models(result.get("modelUsage"))
    if session is not None and "model" in session:
        usage["model"] = session["model"]
    cost = result.get("total_cost_usd")
    if not usage.get("total") or not is_cost(cost):
        return (usage_of(usage) if usage.get("total") else None), None
    if session is None or session.get("total") == usage.get("total"):  # the session is this turn
        return usage_of({**usage, "cost": cost}), None
    return None, usage_of({**session, "cost": cost})


def _labelled(usage: Usage | None, events: Events) -> Usage | None:
    """Without an API key the program is logged in with a subscription: it prints what the tokens would cost."""
    init = next((event for event in of_type(events, "system") if text_at(event, "subtype") == "init"), None)
    if usage is None or init is None or text_at(init, "apiKeySource") != "none" or "cost" not in usage:
        return usage
    return {**usage, "listPrice": True}


def _models(by_model: Any) -> Usage | None:
    if not isinstance(by_model, dict):
        return None
    total: Usage | None = None
    for model, counts in by_model.items():
        total = added(total, usage_of({**counts, "model": model}) if isinstance(counts, dict) else None)
    return total


PRESET: Final = Preset(
    name="claude",
    program="claude",
    launch=launch,
    read=read,
    login="log in with `claude` or set ANTHROPIC_API_KEY",
    pass_env=(
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    permissions=("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"),
    # Its own ten retries take three minutes, on a wrong key too. Five take twenty seconds.
    env={"CLAUDE_CODE_MAX_RETRIES": "5"},
)
