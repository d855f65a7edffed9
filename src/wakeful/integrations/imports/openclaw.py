"""OpenClaw: `state/openclaw.sqlite` since 2026.6.1, `cron/jobs.json` before. Both are read.

Its cron (croner 10) runs the first time that daylight saving leaves out an hour later, and a repeated time once.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.core.time.instants import format_duration
from wakeful.integrations.imports.agent_jobs import (
    addressee,
    agent_of,
    entry_or_refusal,
    every,
    given,
    instant_of,
    jobs_of,
    object_of,
    once,
    refused_entry,
    seconds,
    shown,
    text_of,
    whole_of,
)
from wakeful.integrations.imports.cron_fields import NAMED, cron_sets
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    SourceRefused,
    SourceTimes,
    refuse,
    split_environment,
)
from wakeful.integrations.imports.heartbeat_lines import heartbeat_entry
from wakeful.integrations.imports.places import existing, json_of, read_file, rows_of
from wakeful.integrations.imports.wall_rules import WallRules

_OWN_KEYS: Final = ("heartbeat:", "memory-core:", "skill-collection-review:")
KIND: Final = "openclaw"
MAIN_AGENT: Final = "main"
"""The agent that every home has; here, the agent named `openclaw`, or the default."""
TOP_OF_HOUR: Final = 5 * 60 * 1000
_REPORTED: Final = ("thinking", "toolsAllow", "fallbacks", "lightContext", "allowUnsafeExternalContent")
_TRIGGERS: Final = ("trigger", "pacing", "onExit", "stream", "script")
_REPORTED_OF_JOB: Final = ("wakeMode", "deleteAfterRun")
_ALERTED: Final = frozenset({"after", "channel"})
_SETTINGS: Final = "openclaw.json"
"""Its settings, in the home folder: the heartbeat, and the models of agents."""
_TARGETS: Final = ("main", "isolated")


def find_openclaw(context: Context) -> list[SourceFile]:
    """The stores of the user's home."""
    home = Path(context.environ.get("OPENCLAW_STATE_DIR") or context.user_home / ".openclaw")
    return open_openclaw(home)


def open_openclaw(path: Path) -> list[SourceFile]:
    """A home, a database or a file."""
    if path.is_dir():
        paths = existing(path / "state/openclaw.sqlite", path / "openclaw.sqlite")[:1]
        paths += existing(path / "cron/jobs.json", path / "jobs.json")[:1] + existing(path / _SETTINGS)
        return [file for inner in paths for file in open_openclaw(inner)]
    if path.suffix in (".sqlite", ".db", ".sqlite3"):
        rows = rows_of(path, "cron_jobs", ("job_json", "state_json"))
        jobs = [_merged(row) for row in rows]
        return [SourceFile(str(path), json.dumps({"jobs": jobs}), path)]
    return [read_file(path)]


def _merged(row: Mapping[str, Any]) -> Any:
    try:
        job = json.loads(row.get("job_json") or "{}")
        state = json.loads(row.get("state_json") or "{}")
    except (ValueError, RecursionError):
        return {"id": "unreadable", "error": "job_json is not JSON"}
    return {**job, "state": {**object_of(job, "state"), **state}} if isinstance(job, dict) else {"id": "unreadable"}


def read_openclaw(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs. A job that is in both stores is read from the newer one."""
    seen: set[str] = set()
    settings = next((_settings(file) for file in files if _is_settings(file)), {})
    entries: list[Entry] = []
    for file in (file for file in files if not _is_settings(file)):
        for number, job in enumerate(jobs_of(json_of(file), file), 1):
            ref = str(job.get("id") or f"#{number}")
            if ref not in seen:
                seen.add(ref)
                entry = entry_or_refusal(file, ref, job, partial(_entry, file, ref, job, context))
                entries.append(_with_settings(file, entry, job, settings))
    return entries


def _is_settings(file: SourceFile) -> bool:
    return Path(file.place).name == _SETTINGS


def _settings(file: SourceFile) -> Mapping[str, Any]:
    """The settings of the agents. They may have comments, and then they are not read."""
    try:
        data = json_of(file)
    except SourceRefused:
        return {}
    return object_of(data, "agents") if isinstance(data, Mapping) else {}


def _with_settings(file: SourceFile, entry: Entry, job: Mapping[str, Any], agents: Mapping[str, Any]) -> Entry:
    """With what the settings of OpenClaw say about the heartbeat, or about the model of the job's agent."""
    payload = object_of(job, "payload")
    if payload.get("kind") == "heartbeat":
        length = whole_of(object_of(job, "schedule"), "everyMs")
        own = {} if length is None else {"every": format_duration(length)}
        beat = {**own, **object_of(object_of(agents, "defaults"), "heartbeat"), "enabled": job.get("enabled")}
        return replace(entry, settings=heartbeat_entry(file, job, beat).settings)
    model = _model_of(agents, text_of(job, "agentId") or MAIN_AGENT)
    if entry.refused is not None or model is None or payload.get("kind") != "agentTurn" or payload.get("model"):
        return entry
    here = entry.action.get("agent", "default")
    return replace(
        entry, notes=(*entry.notes, f"its agent has the model {model[:80]} there: set it in [agents.{here}]")
    )


def _model_of(agents: Mapping[str, Any], name: str) -> str | None:
    listed = agents.get("list")
    named = (
        [one for one in listed if isinstance(one, Mapping) and one.get("id") == name]
        if isinstance(listed, list)
        else []
    )
    for one in (*named, object_of(agents, "defaults")):
        model = text_of(one, "model") or text_of(object_of(one, "model"), "primary")
        if model is not None:
            return model
    return None


def _entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    name = text_of(job, "name") or ref
    if job.get("error"):
        return refused_entry(file, ref, job, str(job["error"]))
    if _is_own(ref, name, job):
        return refused_entry(file, ref, job, "it belongs to OpenClaw itself", is_skipped=True)
    schedule, times, stagger = _schedule(job, context)
    lost = None if context.is_adopting else next(given(job, _TRIGGERS), None)
    if lost is not None:
        refuse(f"it also starts by {lost}, which a schedule cannot express; leave the job there with --adopt")
    action, options, dropped = _adopted(ref) if context.is_adopting else _action(job, context)
    target = text_of(job, "sessionTarget") or ""
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(name),
        schedule=schedule,
        action=action,
        options={**options, **stagger},
        times=times,
        not_carried=(*dropped, *given(job, _REPORTED_OF_JOB)),
        last_run=whole_of(object_of(job, "state"), "lastRunAtMs"),
        is_paused=job.get("enabled") is False,
        session=target.removeprefix("session:") if target.startswith("session:") and not context.is_adopting else None,
        off=None if file.path is None else Off(KIND, {"path": file.place, "id": ref}),
    )


def _is_own(ref: str, name: str, job: Mapping[str, Any]) -> bool:
    """Whether OpenClaw made the job for itself: its heartbeat, or maintenance of its memory and skills."""
    is_named = name.lower() in ("heartbeat", "system") or ref.startswith(("system:", "heartbeat"))
    is_declared = (text_of(job, "declarationKey") or "").startswith(_OWN_KEYS)
    is_managed = (text_of(job, "description") or "").startswith("[managed-by=")
    is_beat = object_of(job, "payload").get("kind") == "heartbeat"
    return is_named or is_declared or is_managed or is_beat or job.get("owner") == "system"


def _schedule(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes | None, dict[str, Any]]:
    schedule = object_of(job, "schedule")
    match schedule.get("kind"):
        case "at":
            at = instant_of(schedule["at"] if schedule.get("at") is not None else schedule.get("atMs"))
            return *once(at), {}
        case "every":
            state = object_of(job, "state")
            for source, field in ((schedule, "anchorMs"), (job, "createdAtMs"), (state, "lastRunAtMs")):
                anchor = whole_of(source, field)
                if anchor is not None:
                    return *every(whole_of(schedule, "everyMs"), anchor), {}
            raise EntryRefused("it has no anchor")
        case "cron":
            return _cron(schedule, context)
        case kind:
            raise EntryRefused(f"its schedule has the kind {str(kind)[:40]!r}, which has no time")


def _cron(schedule: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes, dict[str, Any]]:
    expression = " ".join((text_of(schedule, "expr") or "").split())
    expression = NAMED.get(expression.lower(), expression)
    if "+" in expression:
        refuse("a weekday with + (both the date and the weekday) cannot be expressed as a schedule")
    zone = text_of(schedule, "tz") or context.zone
    sets = cron_sets(expression)
    times = WallRules(zone, sets.matches_day, sets.times, "shift", "once by the hour")
    stagger = whole_of(schedule, "staggerMs")
    if stagger is None:
        parts = expression.split()[-5:]
        stagger = TOP_OF_HOUR if parts[0] == "0" and parts[1].startswith("*") else 0
    options = {"stagger": format_duration(stagger)} if stagger > 0 else {}
    return {"type": "cron", "expression": expression, "timezone": zone}, times, options


def _action(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    payload = object_of(job, "payload")
    deliver = {**_deliver(object_of(job, "delivery"), context), **_alert(job, context)}
    alert = object_of(job, "failureAlert")
    dropped = [f"failureAlert.{name}" for name in sorted(alert.keys() - _ALERTED)]
    limit = seconds(whole_of(payload, "timeoutSeconds"))
    match payload.get("kind"):
        case "systemEvent":
            text = text_of(payload, "text") or refuse("its event has no text")
            return {"event": {"text": text}}, limit, dropped
        case "agentTurn":
            prompt = text_of(payload, "message") or refuse("its turn has no message")
            config: dict[str, Any] = {} if not payload.get("model") else {"model": payload["model"]}
            target = text_of(job, "sessionTarget") or "isolated"
            if target not in _TARGETS and not target.startswith("session:"):
                refuse(f"its session is {target[:80]!r}: name one (session:ID), or make it isolated")
            if target == "isolated":
                config["persistSession"] = False
            agent = agent_of(context, text_of(job, "agentId"), KIND)
            named = text_of(job, "agentId")
            if named not in (None, MAIN_AGENT, agent.get("agent")):
                refuse(f"its agent is {named[:80]!r}: add [agents.{named[:80]}] to wakeful.toml first")
            action = {"prompt": prompt, **agent, **({"sessionConfig": config} if config else {})}
            if payload.get("toolsAllow") == ["*"]:  # what it writes if all are allowed
                payload = {**payload, "toolsAllow": None}
            return action, {**limit, **deliver}, [*dropped, *given(payload, _REPORTED)]
        case "command":
            return {"command": _command(payload, dropped)}, {**limit, **deliver}, dropped
        case kind:
            raise EntryRefused(f"its payload has the kind {str(kind)[:40]!r}, which Wakeful does not support")


def _command(payload: Mapping[str, Any], dropped: list[str]) -> dict[str, Any]:
    argv = payload.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        refuse("its command has no argv")
    env, secret = split_environment({str(name): str(value) for name, value in object_of(payload, "env").items()})
    dropped += [f"{name} (a secret: set it where the daemon runs)" for name in secret]
    more = {"cwd": payload.get("cwd"), "env": env, "stdin": payload.get("input"), "passEnv": secret}
    return {"argv": argv, **{name: value for name, value in more.items() if value}}


def _deliver(delivery: Mapping[str, Any], context: Context) -> dict[str, Any]:
    mode = delivery.get("mode")
    if mode in (None, "none"):
        return {}
    if mode != "announce":
        refuse(f"its delivery is {str(mode)[:40]!r}; add a channel for it to wakeful.toml, and write it by hand")
    return {"deliver": addressee(context, text_of(delivery, "channel") or "last", text_of(delivery, "to"))}


def _alert(job: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """After how many errors in a row, and where."""
    if job.get("failureAlert") is False:
        return {"alert": False}
    alert = object_of(job, "failureAlert")
    channel, errors = text_of(alert, "channel"), whole_of(alert, "after")
    to = {} if channel in (None, "last") else {"channel": addressee(context, str(channel), None)["channel"]}
    written = {**({"errors": errors} if errors is not None and errors > 0 else {}), **to}
    return {"alert": written} if written else {}


def _adopted(ref: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    return {"command": {"argv": ["openclaw", "cron", "run", ref]}}, {"timeout": "1d"}, []


def is_enabled(path: Path, ref: str) -> bool:
    """Whether a job is switched on in its store."""
    for file in open_openclaw(path):
        for job in jobs_of(json_of(file), file):
            if str(job.get("id")) == ref:
                return job.get("enabled") is not False
    return False


def program() -> str | None:
    """OpenClaw's program, if it is installed."""
    return shutil.which(KIND)
