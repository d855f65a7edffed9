"""The heartbeat of another program as lines for wakeful.toml."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import format_duration, parse_duration
from wakeful.integrations.imports.agent_jobs import object_of, refused_entry, text_of, whole_of
from wakeful.integrations.imports.entries import Entry, EntryRefused, SourceFile, refuse

_IS_A_SETTING: Final = "its heartbeat is a setting here: add these lines to wakeful.toml"
_TIME: Final = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")


def heartbeat_lines(settings: Mapping[str, Any], *, agent: str | None = None) -> str:
    """`[heartbeat]` with these settings: whether it is on, every, prompt, model, ackToken, ackMaxChars, activeHours.
    Refuses a value that is none of ours."""
    every = text_of(settings, "every")
    is_on = settings.get("enabled") is not False and every not in ("0", "0m", "0s")
    lines = ["[heartbeat]", f"enabled = {_toml(is_on)}"]
    length = None if every is None or not is_on else _length(every)
    chars = whole_of(settings, "ackMaxChars")
    for name, value in (
        ("agent", agent),
        ("every", length),
        ("prompt", _prompt(settings)),
        ("model", text_of(settings, "model")),
        ("ack_token", text_of(settings, "ackToken")),
        ("ack_chars_max", chars),
    ):
        if value is not None:
            lines.append(f"{name} = {_toml(value)}")
    hours = object_of(settings, "activeHours")
    if hours:
        zone = text_of(hours, "timezone")
        lines += ["", "[heartbeat.active_hours]", f"start = {_toml(_hour(hours, 'start'))}"]
        lines += [f"end = {_toml(_hour(hours, 'end'))}"]
        lines += [f"timezone = {_toml(zone)}"] if zone not in (None, "user", "local") else []
    return "\n".join(lines) + "\n"


def heartbeat_entry(
    file: SourceFile, job: Mapping[str, Any], settings: Mapping[str, Any], *, agent: str | None = None
) -> Entry:
    """A heartbeat, which is no schedule here but a setting."""
    entry = refused_entry(file, "heartbeat", job, _IS_A_SETTING, is_skipped=True)
    try:
        return replace(entry, settings=heartbeat_lines(settings, agent=agent))
    except EntryRefused as refused:
        return replace(entry, refused=f"{_IS_A_SETTING}; {refused}")


def _length(text: str) -> str:
    try:
        return format_duration(parse_duration(text if text[-1:].isalpha() else f"{text}m"))
    except Invalid as invalid:
        refuse(f"its heartbeat's interval {text[:40]!r}: {invalid}")


def _prompt(settings: Mapping[str, Any]) -> str | None:
    """With its token as our place for it, so that both stay the same."""
    prompt, token = text_of(settings, "prompt"), text_of(settings, "ackToken") or "HEARTBEAT_OK"
    return None if prompt is None else prompt.replace(token, "{ack_token}")


def _hour(hours: Mapping[str, Any], name: str) -> str:
    text = text_of(hours, name) or ""
    if _TIME.fullmatch(text) is None:
        refuse(f"the {name} of its active hours, {text[:40]!r}, is not a time of day")
    return f"{text:0>5}"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
