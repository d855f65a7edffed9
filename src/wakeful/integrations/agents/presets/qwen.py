"""Qwen Code. It exits with 0 and says `is_error: false` when the model's server refused the request: then the reply is
the error, in brackets, and no token was used. Usage is the total of the session, cache reads included in the input."""

import re
from dataclasses import replace
from typing import Any, Final

from wakeful.core.run.usage import Usage, is_count, usage
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.claude_stream import result_of
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import at, last, objects, text_at

_LOST: Final = "No saved session found"
_ERROR: Final = re.compile(r"\[API Error: ([^\]]*)\]")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "--output-format", "stream-json"]
    argv += ["--resume", ask.session_id] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--approval-mode", ask.permissions] if ask.permissions else []
    return Launch((*argv, *ask.args), ask.prompt)


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    if _LOST in printed.stderr:
        return Reading("lost", _LOST)
    reading = result_of(printed, events, None, _totals(events))
    error = _ERROR.search(reading.text or "")
    if reading.kind == "answered" and error is not None and _cost_nothing(events):
        reading = replace(reading, kind="failed", text=error[1])
    if reading.kind == "answered" and not (reading.text or "").strip():
        reading = replace(reading, kind="failed", text="it finished its turn without a reply")
    if reading.kind != "failed":
        return reading
    said = reading.text or ""
    reset = printed_reset(said, printed, now) if "limit" in said.lower() or "quota" in said.lower() else None
    return reading if reset is None else replace(reading, kind="limited", reset_at=reset)


def _cost_nothing(events: list[dict[str, Any]]) -> bool:
    """Whether the last message used no token: a real reply would have used some."""
    counts = at(last(events, "assistant"), "message", "usage")
    return not any(is_count(at(counts, name)) and at(counts, name) for name in ("input_tokens", "output_tokens"))


def _totals(events: list[dict[str, Any]]) -> Usage | None:
    result = last(events, "result")
    counts = at(result, "usage")
    sent, received, cached = (at(counts, name) for name in ("input_tokens", "output_tokens", "cache_read_input_tokens"))
    if not is_count(sent) or not is_count(received) or not sent + received:
        return None
    model = text_at(last(events, "assistant"), "message", "model")
    return usage(input=sent, cachedInput=cached if is_count(cached) else None, output=received, model=model)


PRESET: Final = Preset(
    name="qwen",
    program="qwen",
    launch=launch,
    read=read,
    login="run `qwen auth` or set OPENAI_API_KEY",
    pass_env=("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"),
    permissions=("plan", "default", "auto-edit", "yolo"),
)
