"""Caco's `schedule/` folders, Open Alice's `jobs.json`, and GLM-Tray's settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition_json import ACTIONS, READ_BACK
from wakeful.core.time.instants import format_duration, parse_duration
from wakeful.integrations.imports.agent_jobs import (
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
    slug_of,
)
from wakeful.integrations.imports.places import existing, json_of, read_files

_GLM: Final = ("wakeIntervalMinutes", "wakeTimes", "wakeAfterResetMinutes", "pollIntervalMinutes")
_GLM_SNAKE: Final = {
    "wake_interval_minutes": _GLM[0],
    "wake_times": _GLM[1],
    "wake_after_reset_minutes": _GLM[2],
    "poll_interval_minutes": _GLM[3],
    "api_key": "apiKey",
    "base_url": "baseUrl",
    "wake_interval_enabled": "wakeIntervalEnabled",
    "wake_times_enabled": "wakeTimesEnabled",
    "wake_after_reset_enabled": "wakeAfterResetEnabled",
}


def open_caco(path: Path) -> list[SourceFile]:
    """A home, its `schedule` folder, or one definition."""
    if not path.is_dir():
        return read_files([path])
    folder = path / "schedule" if (path / "schedule").is_dir() else path
    return read_files(sorted([*folder.glob("*/definition.json"), *folder.glob("*/last-run.json")]))


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
    paths += sorted([*path.glob("data/delivery-queue/*.json"), *path.glob("delivery-queue/*.json")])
    return read_files(paths)


def find_openalice(context: Context) -> list[SourceFile]:
    """The user's jobs."""
    folders = [context.user_home / name for name in ("open-alice", "OpenAlice", ".open-alice")]
    return [file for folder in folders if folder.is_dir() for file in open_openalice(folder)]


def read_openalice(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """Its jobs; the heartbeat and queued deliveries are reported, and left alone."""
    entries: list[Entry] = []
    for file in files:
        data = json_of(file)
        if isinstance(data, Mapping) and "heartbeat" in data:
            reason = "its heartbeat is a setting here: copy it to [heartbeat] in wakeful.toml"
            entries.append(refused_entry(file, "heartbeat", object_of(data, "heartbeat"), reason, is_skipped=True))
        elif "delivery-queue" in file.place:
            reason = "a queued delivery is sent by the system that queued it"
            entries.append(refused_entry(file, Path(file.place).stem, data, reason, is_skipped=True))
        else:
            jobs = enumerate(jobs_of(data, file), 1)
            entries += [_alice(file, str(job.get("id") or f"#{number}"), job, context) for number, job in jobs]
    return entries


def _alice(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    state = object_of(job, "state")
    last = whole_of(state, "lastRunAtMs") or whole_of(job, "lastRunAtMs")
    try:
        schedule, times = _alice_time(job, last, context)
        payload = job.get("payload")
        text = payload if isinstance(payload, str) else text_of(object_of(job, "payload"), "text", "message")
        if not text:
            refuse("it has no payload")
    except EntryRefused as refused:
        return refused_entry(file, ref, job, str(refused))
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
        not_carried=tuple(given(job, ("deliver", "delivery"))),
        last_run=last,
        is_paused=job.get("enabled") is False,
        off=None
        if file.path is None
        else Off("json", {"path": file.place, "list": "jobs", "id": ref, "set": {"enabled": False}}),
    )


def _alice_time(job: Mapping[str, Any], last: int | None, context: Context) -> tuple[dict[str, Any], SourceTimes]:
    schedule = object_of(job, "schedule")
    match schedule.get("kind"):
        case "at":
            return once(instant_of(schedule.get("at"), context.zone))
        case "every":
            try:
                length = parse_duration(text_of(schedule, "every") or "")
            except Invalid as invalid:
                raise EntryRefused(str(invalid)) from None
            return every(length, last or whole_of(job, "createdAtMs") or context.now)
        case "cron":
            expression = " ".join((text_of(schedule, "cron", "expr", "expression") or "").split())
            zone = text_of(schedule, "tz", "timezone") or context.zone
            return {"type": "cron", "expression": expression, "timezone": zone}, debian_times(expression, zone)
        case kind:
            raise EntryRefused(f"its schedule has the kind {str(kind)[:40]!r}, which Wakeful does not support")


def open_glm_tray(path: Path) -> list[SourceFile]:
    """Its settings, or their folder."""
    return read_files(existing(path / "settings.json", path / "config.json")[:1] if path.is_dir() else [path])


def find_glm_tray(context: Context) -> list[SourceFile]:
    """The user's settings."""
    folders = [context.user_home / name for name in (".config/glm-tray", ".local/share/glm-tray", ".glm-tray")]
    return [file for folder in folders if folder.is_dir() for file in open_glm_tray(folder)]


def read_glm_tray(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """Its slots, which become quota slots. Keys go into a file that only its owner can read."""
    return [
        _slot(file, str(job.get("id") or job.get("slot") or f"#{number}"), job)
        for file in files
        for number, job in enumerate(jobs_of(json_of(file), file, "slots"), 1)
    ]


def _item(file: SourceFile, ref: str) -> dict[str, str]:
    return {"path": file.place, "list": "slots", "id": ref}


def _slot(file: SourceFile, ref: str, written: Mapping[str, Any]) -> Entry:
    job = {_GLM_SNAKE.get(name, name): value for name, value in written.items()}
    key = text_of(job, "apiKey")
    name = slug_of(text_of(job, "name") or f"glm-{ref}")[:32]
    if key is None:
        return refused_entry(file, ref, written, "it has no key", is_skipped=True)
    secret = f"{name}.key"
    slot: dict[str, Any] = {"provider": "glm", "apiKey": {"file": f"imported/{secret}"}}
    for field, ours, switch in (
        (_GLM[0], "interval", "wakeIntervalEnabled"),
        (_GLM[2], "afterReset", "wakeAfterResetEnabled"),
        (_GLM[3], "poll", ""),
    ):
        minutes = whole_of(job, field)
        if minutes and job.get(switch) is not False:
            slot[ours] = format_duration(minutes * 60_000)
    times = job.get("wakeTimes")
    if isinstance(times, list) and times and job.get("wakeTimesEnabled") is not False:
        slot["times"] = [str(time) for time in times]
    if text_of(job, "baseUrl"):
        slot["baseUrl"] = job["baseUrl"]
    known = {*_GLM_SNAKE.values(), "name", "slot", "id", "enabled", "timezone"}
    return Entry(
        file.place,
        ref,
        shown({**written, **{field: "***" for field in ("apiKey", "api_key") if field in written}}),
        name,
        action=slot,
        not_carried=tuple(sorted(job.keys() - known)),
        files={secret: key.strip() + "\n"},
        is_paused=job.get("enabled") is False,
        off=None if file.path is None else Off("glm-tray", {**_item(file, ref), "set": {"enabled": False}}),
        by_hand="switch the slot off in GLM-Tray",
        becomes="slot",
    )
