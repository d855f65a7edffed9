"""Home Assistant: automations with time triggers, from `automations.yaml`. The automation stays there; the schedule
triggers it over its REST API, with its conditions.

A time that daylight saving leaves out is skipped, a repeated one runs twice.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, shown, text_of
from wakeful.integrations.imports.bearer import bearer_post
from wakeful.integrations.imports.cron_text import cron_text
from wakeful.integrations.imports.entries import Context, Entry, SourceFile, SourceTimes, refuse
from wakeful.integrations.imports.places import existing, read_files
from wakeful.integrations.imports.wall_rules import WallRules
from wakeful.integrations.imports.yaml_files import yaml_documents

_TOKEN: Final = "HASS_TOKEN"  # noqa: S105 - the name of a variable
_SERVER: Final = "HASS_SERVER"
_USUAL: Final = "http://homeassistant.local:8123"
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SIZES: Final = {"hours": 24, "minutes": 60, "seconds": 60}
_ID: Final = "its entity id is made from its name; check it in Home Assistant"


def find_home_assistant(context: Context) -> list[SourceFile]:
    """The automations of the user's home of Home Assistant."""
    folders = [context.user_home / ".homeassistant", context.user_home / "homeassistant", Path("/config")]
    return read_files(existing(*(folder / "automations.yaml" for folder in folders))[:1])


def open_home_assistant(path: Path) -> list[SourceFile]:
    """The configuration folder, or a file with automations."""
    if path.is_dir():
        return read_files(existing(path / "automations.yaml", path / "configuration.yaml"))
    return read_files([path])


def read_home_assistant(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All time triggers of all automations."""
    return [entry for file in files for number, job in _automations(file) for entry in _of(file, number, job, context)]


def _automations(file: SourceFile) -> list[tuple[int, Mapping[str, Any]]]:
    found: list[Any] = []
    for document in yaml_documents(file):
        given = (
            document.get("automation", []) if isinstance(document, Mapping) and "alias" not in document else document
        )
        found += given if isinstance(given, list) else [given]
    return [(number, job) for number, job in enumerate(found, 1) if isinstance(job, Mapping)]


def _of(file: SourceFile, number: int, job: Mapping[str, Any], context: Context) -> list[Entry]:
    name = text_of(job, "alias", "id") or f"automation {number}"
    given = job.get("triggers", job.get("trigger", []))
    triggers = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, Mapping)]
    timed = [one for one in triggers if _kind(one) in ("time", "time_pattern")]
    others = sorted({_kind(one) for one in triggers} - {"time", "time_pattern"})
    entries: list[Entry] = []
    ref = str(job.get("id") or name)
    for at, trigger in enumerate(timed, 1):
        make = partial(_entry, file, f"{ref} {at}", name, job, trigger, len(timed), others, context)
        entries.append(entry_or_refusal(file, f"{ref} {at}", {"alias": name, "trigger": dict(trigger)}, make))
    return entries


def _kind(trigger: Mapping[str, Any]) -> str:
    return str(trigger.get("trigger") or trigger.get("platform") or "")


def _entry(
    file: SourceFile,
    ref: str,
    name: str,
    job: Mapping[str, Any],
    trigger: Mapping[str, Any],
    count: int,
    others: Sequence[str],
    context: Context,
) -> Entry:
    schedule, times = _pattern(trigger, context) if _kind(trigger) == "time_pattern" else _times(trigger, context)
    address = (context.environ.get(_SERVER) or _USUAL).rstrip("/")
    body = {"entity_id": f"automation.{_object_id(name)}", "skip_condition": False}
    notes = [_ID]
    if others:
        notes.append(
            f"it also starts by {', '.join(others)[:120]}, which stays in Home Assistant: do not switch it off there"
        )
    return Entry(
        file.place,
        ref,
        shown({"alias": name, "trigger": dict(trigger)}),
        slug_of(name),
        schedule=schedule,
        action=bearer_post(f"{address}/api/services/automation/trigger", body, _TOKEN),
        options={
            "catchUp": "skip",
            "maxConsecutiveErrors": 0,
            **({"lane": f"hass-{slug_of(name)}"} if count > 1 else {}),
        },
        times=times,
        notes=tuple(notes),
        is_paused=job.get("initial_state") is False,
        draft=None
        if context.environ.get(_TOKEN)
        else f"give the daemon {_TOKEN}, a long-lived access token, then enable it",
        by_hand="remove its time trigger there",
    )


def _times(trigger: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    given = trigger.get("at")
    read = [_time_of(one) for one in (given if isinstance(given, list) else [given])]
    weekdays = trigger.get("weekday")
    named = [str(day).lower()[:3] for day in (weekdays if isinstance(weekdays, list) else [weekdays])]
    days = None if weekdays is None else {_DAYS.index(day) for day in named if day in _DAYS}
    hours, minutes, seconds = ({parts[at] for parts in read} for at in range(3))
    if len(set(read)) != len(hours) * len(minutes) * len(seconds):
        if days is not None or seconds != {0}:
            refuse("its times are not one cron expression: split them into several triggers")
        texts = sorted({f"{hour:02}:{minute:02}" for hour, minute, _ in read})
        rules = _rules(context, read, None)
        return {"type": "times", "times": texts, "timezone": context.zone}, rules
    return _cron(hours, minutes, seconds, days, context)


def _time_of(given: Any) -> tuple[int, int, int]:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 86_400:
        return given // 3600, given // 60 % 60, given % 60  # YAML reads 07:30:00 without quotes in base 60
    read = _TIME.fullmatch(given) if isinstance(given, str) else None
    if read is None or int(read[1]) > 23 or int(read[2]) > 59 or int(read[3] or 0) > 59:
        refuse(f"its time is {str(given)[:80]!r}, which Home Assistant knows only when it runs")
    return int(read[1]), int(read[2]), int(read[3] or 0)


def _pattern(trigger: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    """What is missing matches anything before the first field that is given, and 0 after it."""
    sets: list[set[int]] = []
    is_given = False
    for name, size in _SIZES.items():
        value = trigger.get(name)
        is_given = is_given or value is not None
        sets.append(_matching("0" if value is None and is_given else "*" if value is None else str(value), name, size))
    if not is_given:
        refuse("its time_pattern is empty")
    hours, minutes, seconds = sets
    return _cron(hours, minutes, seconds, None, context)


def _matching(text: str, name: str, size: int) -> set[int]:
    step = text.removeprefix("*").removeprefix("/")
    if text in ("*", "/1", "*/1"):
        return set(range(size))
    if text.startswith(("/", "*/")) and step.isdecimal() and 0 < int(step) <= size:
        return set(range(0, size, int(step)))
    if not text.isdecimal() or int(text) >= size:
        refuse(f"its {name} {text[:40]!r} are not a pattern of Home Assistant")
    return {int(text)}


def _cron(
    hours: set[int], minutes: set[int], seconds: set[int], days: set[int] | None, context: Context
) -> tuple[dict[str, Any], SourceTimes]:
    expression = cron_text(minutes, hours, None, None, days, seconds=seconds, source="its trigger")
    read = [(hour, minute, second) for hour in hours for minute in minutes for second in seconds]
    return {"type": "cron", "expression": expression, "timezone": context.zone}, _rules(context, read, days)


def _rules(context: Context, read: Sequence[tuple[int, int, int]], days: set[int] | None) -> WallRules:
    def matches(at: date) -> bool:
        return days is None or at.isoweekday() % 7 in days

    seconds = tuple(sorted({hour * 3600 + minute * 60 + second for hour, minute, second in read}))
    return WallRules(context.zone, matches, seconds, "skip", "twice")


def _object_id(name: str) -> str:
    """A name as Home Assistant makes an id of it."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_") or "unknown"
