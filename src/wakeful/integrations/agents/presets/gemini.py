"""Gemini CLI. The prompt goes over stdin. The answer is one JSON object on stdout; errors are one on stderr, after many
lines of warnings and stacks, so the two are never read together."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wakeful.core.run.usage import Usage, added, is_count, usage
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.gemini_tools import prepare
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import at, text_at
from wakeful.integrations.agents.reply import session_id_of
from wakeful.integrations.agents.troubles import error_lines
from wakeful.integrations.system.text import parse_json

_LOST: Final = ("Error resuming session", "Invalid session identifier", "No previous sessions found")
_NO_AUTH: Final = 41
_TOO_MANY: Final = 429
_LIMIT: Final = re.compile(r"quota|exhausted|limit", re.IGNORECASE)
_RETRY: Final = re.compile(r"retry (?:in|after) [^\n'\"]{1,40}", re.IGNORECASE)


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "--output-format", "json", "--skip-trust"]
    argv += ["--resume", ask.session_id] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--approval-mode", ask.permissions] if ask.permissions else []
    return Launch((*argv, *ask.args), ask.prompt)


def read(printed: Printed, now: ReadMoment) -> Reading:
    answer, error = _object(printed.stdout), _object(printed.stderr)
    session_id = session_id_of(at(answer, "session_id"))
    used, refused, text = _usage(answer), _refused(answer), text_at(answer, "response")
    if text and printed.code == 0 and at(answer, "error") is None:
        return Reading("answered", text, None, session_id, used, None, refused)
    if any(words in printed.stderr for words in _LOST):
        return Reading("lost", error_lines(printed.stderr))
    said = text_at(answer, "error", "message") or text_at(error, "error", "message") or error_lines(printed.stderr)
    if answer is not None and printed.code == 0:
        said = "it finished its turn without a reply"
    status = 401 if printed.code == _NO_AUTH else _http(at(answer or error, "error", "code"))
    failed = Reading("failed", said, status, session_id, used, None, refused)
    reset = _reset(said, status, printed, now)
    return failed if reset is None else replace(failed, kind="limited", reset_at=reset)


def _object(text: str) -> Mapping[str, Any] | None:
    """The JSON object at the end of `text`, after any warnings."""
    begins = [match.start() for match in re.finditer(r"^\{\s*$", text, re.MULTILINE)]
    for begin in reversed(begins):
        value = parse_json(text[begin:])
        if isinstance(value, dict):
            return value
    value = parse_json(text)
    return value if isinstance(value, dict) else None


def _http(code: Any) -> int | None:
    return code if isinstance(code, int) and 400 <= code <= 599 else None


def _usage(answer: Mapping[str, Any] | None) -> Usage | None:
    """The sum over all models; thoughts are counted separately from the answer."""
    models, total = at(answer, "stats", "models"), None
    for model, about in models.items() if isinstance(models, dict) else ():
        counts = [at(about, "tokens", name) for name in ("prompt", "cached", "candidates", "thoughts", "total")]
        if not all(map(is_count, counts)) or not counts[-1]:
            continue
        sent, cached, answered, thought, both = counts
        of_model = usage(
            input=sent, cachedInput=cached, output=answered + thought, reasoning=thought, total=both, model=model
        )
        total = added(total, of_model)
    return total


def _refused(answer: Mapping[str, Any] | None) -> tuple[str, ...]:
    tools = at(answer, "stats", "tools", "byName")
    if not isinstance(tools, dict):
        return ()
    return tuple(name for name, about in tools.items() if at(about, "decisions", "reject"))


def _reset(said: str, status: int | None, printed: Printed, now: ReadMoment) -> int | None:
    """The last message says that a quota is used up; the lines before it say when it resets."""
    if status != _TOO_MANY or not _LIMIT.search(said):
        return None
    delays = _RETRY.findall(f"{printed.stderr}\n{said}")
    return printed_reset(delays[-1] if delays else said, printed, now)


PRESET: Final = Preset(
    name="gemini",
    program="gemini",
    launch=launch,
    read=read,
    login="log in with `gemini` or set GEMINI_API_KEY",
    pass_env=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"),
    permissions=("default", "auto_edit", "yolo", "plan"),
    prepare=prepare,
)
