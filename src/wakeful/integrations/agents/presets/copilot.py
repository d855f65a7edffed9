"""GitHub Copilot CLI. The prompt goes over stdin; it reports no token counts."""

from dataclasses import replace
from typing import Any, Final

from wakeful.core.time.instants import Instant, parse_instant
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import at, last, objects, of_type, text_at
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.troubles import error_lines

_LOST: Final = ("No session", "matched")
_PERMISSIONS: Final = ("allow-all-tools", "allow-all-paths", "allow-all")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "--output-format", "json"]
    argv += [f"--resume={ask.session_id}"] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += [f"--{ask.permissions}"] if ask.permissions in _PERMISSIONS else []
    return Launch((*argv, *ask.args), ask.prompt)


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    result, error = last(events, "result"), last(events, "session.error")
    session_id, refused = session_id_of(at(result, "sessionId")), _refused(events)
    text = text_at(last(events, "assistant.message"), "data", "content")
    is_over = result is not None and result.get("exitCode") == 0 and printed.code == 0
    if is_over and error is None and text and last(events, "abort") is None:
        return Reading("answered", text, None, session_id, refused=refused)
    if not events and all(word in printed.stderr for word in _LOST):
        return Reading("lost", "no session matched")
    said = text_at(error, "data", "message") or error_lines(printed.stderr)
    said = said or ("it finished its turn without a reply" if is_over else "")
    status = at(error, "data", "statusCode")
    failed = Reading("failed", said, status if isinstance(status, int) else None, session_id, refused=refused)
    is_limit = text_at(error, "data", "errorType") in ("rate_limit", "quota")
    # A duration counts from when it was printed.
    cause = said.partition("Last error:")[2] or said
    reset = printed_reset(cause, printed, now._replace(at=_when(error, now))) if is_limit else None
    return failed if reset is None else replace(failed, kind="limited", reset_at=reset)


def _when(event: dict[str, Any] | None, now: ReadMoment) -> Instant:
    try:
        return min(parse_instant(text_at(event, "timestamp") or ""), now.at)
    except ValueError:
        return now.at


def _refused(events: list[dict[str, Any]]) -> tuple[str, ...]:
    names = {
        at(event, "data", "toolCallId"): text_at(event, "data", "toolName")
        for event in of_type(events, "tool.execution_start")
    }
    denied = [
        names.get(at(event, "data", "toolCallId")) or "a tool"
        for event in of_type(events, "tool.execution_complete")
        if text_at(event, "data", "error", "code") == "denied"
    ]
    return tuple(dict.fromkeys(denied))


PRESET: Final = Preset(
    name="copilot",
    program="copilot",
    launch=launch,
    read=read,
    takes_other_permissions=False,
    login="run `copilot login` or set GH_TOKEN (COPILOT_PROVIDER_API_KEY for a model of your own)",
    pass_env=(
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "COPILOT_GITHUB_TOKEN",
        "COPILOT_PROVIDER_API_KEY",
        "COPILOT_PROVIDER_BEARER_TOKEN",
    ),
    permissions=_PERMISSIONS,
    reports_usage=False,
)
