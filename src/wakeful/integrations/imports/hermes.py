"""Hermes: `cron/jobs.json`, including each profile's. Its cron makes up what daylight saving leaves out, and runs a
repeated time twice."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.integrations.imports.agent_jobs import (
    agent_of,
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
from wakeful.integrations.imports.cron_fields import plain_times
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    SourceTimes,
    refuse,
    slug_of,
)
from wakeful.integrations.imports.places import existing, json_of, read_files

KIND: Final = "hermes"
_REPORTED: Final = (
    "context_from",
    "skills",
    "skill",
    "enabled_toolsets",
    "monitor_script",
    "monitor_url",
    "provider",
    "base_url",
)


def find_hermes(context: Context) -> list[SourceFile]:
    """The user's home and its profiles."""
    return open_hermes(Path(context.environ.get("HERMES_HOME") or context.user_home / ".hermes"))


def open_hermes(path: Path) -> list[SourceFile]:
    """A home, or a file."""
    if not path.is_dir():
        return read_files([path])
    profiles = sorted(path.glob("profiles/*/cron/jobs.json"))
    return read_files([*existing(path / "cron/jobs.json", path / "jobs.json")[:1], *profiles])


def read_hermes(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs of these files."""
    return [
        _entry(file, str(job.get("id") or f"#{number}"), job, context)
        for file in files
        for number, job in enumerate(jobs_of(json_of(file), file), 1)
    ]


def _entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    try:
        schedule, times = _schedule(job, context)
        action, options, dropped = _action(job, ref, context)
        left = _left(job)
    except EntryRefused as refused:
        return refused_entry(file, ref, job, str(refused))
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name") or ref),
        schedule=schedule,
        action=action,
        options=options,
        times=times,
        not_carried=(*dropped, *left, *given(job, _REPORTED)),
        last_run=instant_of(job.get("last_run_at"), context.zone),
        is_paused=bool(job.get("paused_at")) or job.get("enabled") is False or job.get("state") == "paused",
        off=None if file.path is None else _off(file, ref),
    )


def _off(file: SourceFile, ref: str) -> Off:
    return Off("json", {"path": file.place, "list": "jobs", "id": ref, "set": {"enabled": False, "state": "paused"}})


def _left(job: Mapping[str, Any]) -> list[str]:
    repeat = object_of(job, "repeat")
    times, completed = whole_of(repeat, "times"), whole_of(repeat, "completed") or 0
    if times is None:
        return []
    if times - completed <= 0:
        refuse("it has already run as often as it should")
    is_once = object_of(job, "schedule").get("kind") == "once"
    return [] if is_once else [f"repeat ({times - completed} of {times} left)"]


def _schedule(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    schedule = object_of(job, "schedule")
    match schedule.get("kind") or next((kind for kind in ("once", "interval", "cron") if kind in schedule), None):
        case "once":
            inner = object_of(schedule, "once") or schedule
            return once(instant_of(inner.get("run_at"), context.zone))
        case "interval":
            inner = object_of(schedule, "interval") or schedule
            minutes = whole_of(inner, "minutes")
            anchor = instant_of(job.get("last_run_at") or job.get("created_at"), context.zone)
            return every(None if minutes is None else minutes * 60_000, context.now if anchor is None else anchor)
        case "cron":
            inner = object_of(schedule, "cron") or schedule
            expression = " ".join((text_of(inner, "expr") or "").split())
            zone = text_of(inner, "tz") or context.environ.get("HERMES_TIMEZONE") or context.zone
            times = plain_times(expression, zone, gap="run", repeat="twice")
            return {"type": "cron", "expression": expression, "timezone": zone}, times
        case kind:
            raise EntryRefused(f"its schedule has the kind {str(kind)[:40]!r}, which Wakeful does not support")


def _action(job: Mapping[str, Any], ref: str, context: Context) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    deliver, dropped = _deliver(job, context)
    if context.is_adopting:
        return {"command": {"argv": ["hermes", "cron", "run", ref]}}, {"timeout": "1d"}, []
    script, folder = text_of(job, "script"), text_of(job, "workdir")
    where = {"cwd": folder} if folder else {}
    if job.get("no_agent"):
        if script is None:
            refuse("it has no agent and no script")
        return {"command": {"argv": ["sh", "-c", script], **where}}, deliver, dropped
    prompt = text_of(job, "prompt") or refuse("it has no prompt")
    model = text_of(job, "model")
    action: dict[str, Any] = {"prompt": prompt, **agent_of(context, KIND)}
    config: dict[str, Any] = {"persistSession": False, **({"model": model} if model else {})}
    options = {**deliver, **({"check": {"command": {"argv": ["sh", "-c", script], **where}}} if script else {})}
    return {**action, "sessionConfig": config}, options, [*dropped, *given(job, ("workdir",))]


def _deliver(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], list[str]]:
    options: dict[str, Any] = {}
    dropped: list[str] = []
    for name in ("deliver", "failure_deliver"):
        to = text_of(job, name)
        if to is None or to == "local":
            continue
        channel, _, person = to.partition(":")
        channel = "last" if channel == "origin" else channel
        if channel != "last" and channel not in context.channels:
            dropped.append(f"{name} ({to[:80]}: add a channel named {channel[:40]})")
        elif name == "deliver":
            options["deliver"] = {"channel": channel, **({"to": person} if person else {})}
        else:
            options["alert"] = {"channel": channel}
    return options, dropped
