"""Caco's `schedule/` folders, and Open Alice's `jobs.json`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition_json import ACTIONS, READ_BACK
from wakeful.core.slug import slug_of
from wakeful.core.time.instants import DAY, format_instant, parse_duration
from wakeful.integrations.imports.agent_jobs import (
    addressee,
    entry_or_refusal,
    every,
    given,
    instant_of,
    jobs_of,
    object_of,
    once,
    refused_entry,
    shown,
    text_of,
    whole_of,
)
from wakeful.integrations.imports.cron_fields import debian_times
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    SourceTimes,
    refuse,
)
from wakeful.integrations.imports.heartbeat_lines import heartbeat_entry
from wakeful.integrations.imports.places import existing, found, json_of, read_files

DELIVERED_WITHIN: Final = DAY
"""A message that waited longer is no news any more."""


def open_caco(path: Path) -> list[SourceFile]:
    """A home, its `schedule` folder, or one definition."""
    if not path.is_dir():
        return read_files([path])
    folder = path / "schedule" if (path / "schedule").is_dir() else path
    return read_files(found(folder, "*/definition.json", "*/last-run.json"))


def find_caco(context: Context) -> list[SourceFile]:
    """The user's schedules."""
    home = context.user_home / ".caco"
    return open_caco(home) if home.is_dir() else []


def read_caco(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All schedules. A definition has the same fields as ours."""
    states = {Path(file.place).parent: json_of(file) for file in files if file.place.endswith("last-run.json")}
    return [
        _caco(file, states.get(Path(file.place).parent), context)
        for file in files
        if not file.place.endswith("last-run.json")
    ]


def _caco(file: SourceFile, state: Any, context: Context) -> Entry:
    job = json_of(file)
    ref = Path(file.place).parent.name or "schedule"
    if not isinstance(job, Mapping):
        return refused_entry(file, ref, {}, "it is not a definition")
    ref = text_of(job, "slug") or ref
    return entry_or_refusal(file, ref, job, lambda: _caco_entry(file, ref, job, state, context))


def _caco_entry(file: SourceFile, ref: str, job: Mapping[str, Any], state: Any, context: Context) -> Entry:
    known = state if isinstance(state, Mapping) else {}
    schedule = dict(object_of(job, "schedule"))
    if schedule.get("type") == "interval":
        anchor = instant_of(known.get("lastRun"), context.zone)
        schedule.setdefault("anchor", known["lastRun"]) if anchor is not None else None
    written = {name: value for name, value in job.items() if name not in (*READ_BACK, "slug", "schedule", "enabled")}
    written = {name: value for name, value in written.items() if value is not None}
    action = {name: value for name, value in written.items() if name in (*ACTIONS, "agent", "sessionConfig")}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(ref),
        schedule=schedule,
        action=action,
        options={name: value for name, value in written.items() if name not in action},
        last_run=instant_of(known.get("lastRun"), context.zone),
        is_paused=job.get("enabled") is False,
        session=text_of(known, "sessionId"),
        off=None if file.path is None else Off("json", {"path": file.place, "set": {"enabled": False}}),
    )


def open_openalice(path: Path) -> list[SourceFile]:
    """A home, its `data` folder, or the file of jobs."""
    if not path.is_dir():
        return read_files([path])
    paths = existing(path / "data/cron/jobs.json", path / "cron/jobs.json", path / "jobs.json")[:1]
    paths += existing(path / "data/config/scheduler.json", path / "config/scheduler.json", path / "scheduler.json")[:1]
    paths += found(path, "data/delivery-queue/*.json", "delivery-queue/*.json")
    return read_files(paths)


def find_openalice(context: Context) -> list[SourceFile]:
    """The user's jobs."""
    folders = [context.user_home / name for name in ("open-alice", "OpenAlice", ".open-alice")]
    return [file for folder in folders if folder.is_dir() for file in open_openalice(folder)]


def read_openalice(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """Its jobs and its queued messages; the heartbeat is a setting here."""
    entries: list[Entry] = []
    for file in files:
        data = json_of(file)
        if isinstance(data, Mapping) and "heartbeat" in data:
            entries.append(heartbeat_entry(file, object_of(data, "heartbeat"), object_of(data, "heartbeat")))
        elif "delivery-queue" in file.place:
            entries.append(_queued(file, data, context))
        else:
            jobs = enumerate(jobs_of(data, file), 1)
            entries += [_alice(file, str(job.get("id") or f"#{number}"), job, context) for number, job in jobs]
    return entries


def _queued(file: SourceFile, data: Any, context: Context) -> Entry:
    """A message that was not sent yet. Its id is the name of its file."""
    job = data if isinstance(data, Mapping) else {}
    ref = text_of(job, "id") or Path(file.place).stem
    return entry_or_refusal(file, ref, job, lambda: _queued_entry(file, ref, job, context))


def _queued_entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    text = text_of(job, "text") or refuse("it has no text")
    at = instant_of(job.get("enqueuedAt"), context.zone)
    if at is not None and context.now - at > DELIVERED_WITHIN:
        refuse(f"it was queued at {format_instant(at)}, too long ago to be sent")
    to = job.get("to")
    message = {"text": text, **addressee(context, text_of(job, "channel") or "last", None if to is None else str(to))}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(f"delivery-{ref}"),
        action=message,
        notes=(f"Open Alice sends it as well when it starts again: remove {file.place} first",),
        by_hand=f"remove {file.place} while Open Alice is stopped",
        becomes="delivery",
    )


def _alice(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    return entry_or_refusal(file, ref, job, lambda: _alice_entry(file, ref, job, context))


def _alice_entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    state = object_of(job, "state")
    last = whole_of(state, "lastRunAtMs") or whole_of(job, "lastRunAtMs")
    schedule, times = _alice_time(job, last, context)
    payload = job.get("payload")
    text = payload if isinstance(payload, str) else text_of(object_of(job, "payload"), "text", "message")
    if not text:
        refuse("it has no payload")
    lost = next(given(job, ("deliver", "delivery")), None)
    if lost is not None:
        refuse(f"its {lost} says who gets the result; write it by hand, with deliver")
    is_isolated = job.get("sessionTarget") == "isolated"
    action: dict[str, Any] = {"event": {"text": text, "contextKey": f"cron:{ref}"}}
    if is_isolated:
        action = {"prompt": text, "sessionConfig": {"persistSession": False}}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name") or ref),
        schedule=schedule,
        action=action,
        times=times,
        last_run=last,
        is_paused=job.get("enabled") is False,
        off=None
        if file.path is None
        else Off("json", {"path": file.place, "list": "jobs", "id": ref, "set": {"enabled": False}}),
    )


def _alice_time(
    job: Mapping[str, Any], last: int | None, context: Context
) -> tuple[dict[str, Any], SourceTimes | None]:
    schedule = object_of(job, "schedule")
    match schedule.get("kind"):
        case "at":
            return once(instant_of(schedule.get("at"), context.zone))
        case "every":
            try:
                length = parse_duration(text_of(schedule, "every") or "")
            except Invalid as invalid:
                raise EntryRefused(str(invalid)) from None
            return every(length, last or whole_of(job, "createdAtMs"))
        case "cron":
            expression = " ".join((text_of(schedule, "cron", "expr", "expression") or "").split())
            zone = text_of(schedule, "tz", "timezone") or context.zone
            return {"type": "cron", "expression": expression, "timezone": zone}, debian_times(expression, zone)
        case kind:
            raise EntryRefused(f"its schedule has the kind {str(kind)[:40]!r}, which Wakeful does not support")
