"""The stream of JSON lines that Claude Code introduced, and that amp, cursor and qwen print in much the same form: an
`init`, messages, and a `result` at the end. Without a `result` nothing proves an answer."""

from typing import Any

from wakeful.core.run.usage import Usage
from wakeful.integrations.agents.presets.preset import Printed, Reading
from wakeful.integrations.agents.printed import at, last, text_at
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.troubles import error_lines

Events = list[dict[str, Any]]


def session_in(events: Events) -> str | None:
    """The session id, from the last event that has one."""
    ids = (session_id_of(event.get("session_id")) for event in reversed(events))
    return next((session_id for session_id in ids if session_id is not None), None)


def refused_in(events: Events) -> tuple[str, ...]:
    """The tools that were not run for lack of permission, without duplicates."""
    result = last(events, "result") or {}
    denials = at(result, "permission_denials")
    names = [text_at(denial, "tool_name") for denial in denials] if isinstance(denials, list) else []
    return tuple(dict.fromkeys(name for name in names if name))


def result_of(printed: Printed, events: Events, usage: Usage | None, totals: Usage | None = None) -> Reading:
    """The reply in the `result` event; anything else is a failure with the program's own message."""
    result = last(events, "result")
    session_id, refused = session_in(events), refused_in(events)
    if result is None:
        said = error_lines(printed.stderr) or error_lines(printed.stdout if not events else "")
        return Reading("failed", said, session_id=session_id, usage=usage, totals=totals, refused=refused)
    text = text_at(result, "result")
    is_error = result.get("is_error") is not False or printed.code != 0
    if is_error or text is None or text_at(result, "subtype") != "success":
        said = text or text_at(result, "errors", 0) or text_at(result, "error") or error_lines(printed.stderr)
        status = at(result, "api_error_status")
        status = status if isinstance(status, int) else None
        return Reading("failed", said, status, session_id, usage, totals, refused)
    return Reading("answered", text, None, session_id, usage, totals, refused)
