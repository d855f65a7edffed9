"""Coding agents' scheduled tasks: the Claude app's `scheduled-tasks.json` with a `SKILL.md` for each prompt, Claude
Code's `.claude/scheduled_tasks.json` in a project, and Codex's `automations/ID/automation.toml`.

A task of Claude Code has a `cron`. Without `recurring` it runs once, at the first match after it was created; with it,
for seven days.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.core.time.instants import DAY, format_instant
from wakeful.integrations.imports.agent_jobs import (
    agent_of,
    entry_or_refusal,
    given,
    instant_of,
    jobs_of,
    once,
    shown,
    text_of,
)
from wakeful.integrations.imports.cron_fields import debian_times
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    Off,
    SourceFile,
    SourceRefused,
    SourceTimes,
    refuse,
)
from wakeful.integrations.imports.places import existing, found, json_of, read_files
from wakeful.integrations.imports.rrule import rrule_schedule

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
CODE_FILE: Final = "scheduled_tasks.json"
_CODE_ENDS_AFTER: Final = 7 * DAY
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def find_claude(context: Context) -> list[SourceFile]:
    """The user's tasks."""
    home = context.user_home / ".claude"
    return [*open_claude(home / "scheduled-tasks"), *read_files(existing(home / CODE_FILE))]


def open_claude(path: Path) -> list[SourceFile]:
    """The folder of tasks, the file in it, or a project of Claude Code."""
    folder = path if path.is_dir() else path.parent
    listed = existing(folder / "scheduled-tasks.json", folder.parent / "scheduled-tasks.json")[:1]
    if path.is_dir():
        listed += existing(path / ".claude" / CODE_FILE, path / CODE_FILE)[:1]
    elif path.is_symlink() or path.exists():
        listed = [path]
    return read_files([*listed, *found(folder, "*/SKILL.md")]) if listed else []


def read_claude(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All tasks; the prompt of each is in its SKILL.md."""
    prompts = {Path(file.place).parent.name: _FRONT.sub("", file.text).strip() for file in files if _is_skill(file)}
    entries: list[Entry] = []
    for file in files:
        if not _is_skill(file):
            data = json_of(file)
            key = "scheduledTasks" if isinstance(data, Mapping) and "scheduledTasks" in data else "tasks"
            for job in jobs_of(data, file, key):
                ref = str(job.get("id") or job.get("taskId") or "")
                entries.append(entry_or_refusal(file, ref, job, partial(_task, file, key, ref, job, prompts, context)))
    return entries


def _is_skill(file: SourceFile) -> bool:
    return file.place.endswith("SKILL.md")


def _task(
    file: SourceFile, key: str, ref: str, job: Mapping[str, Any], prompts: Mapping[str, str], context: Context
) -> Entry:
    if not _ID.fullmatch(ref):
        refuse(f"{ref[:80]!r} is not the id of a task")
    prompt = prompts.get(ref) or text_of(job, "prompt") or refuse(f"{ref}/SKILL.md, its prompt, is missing")
    is_code = "cron" in job and "cronExpression" not in job and "fireAt" not in job
    schedule, times = _code_time(job, context) if is_code else _time(job, context)
    model = text_of(job, "model")
    config: dict[str, Any] = {"persistSession": False, **({"model": model} if model else {})}
    off: dict[str, Any] = {"path": file.place, "list": key, "id": ref}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name", "title") or ref),
        schedule=schedule,
        action={"prompt": prompt, **agent_of(context, "claude"), "sessionConfig": config},
        times=times,
        not_carried=(*_where(file, job, is_code), *given(job, ("permissionMode", "allowedTools")), *_end(job, is_code)),
        last_run=instant_of(job.get("lastFiredAt" if is_code else "lastRunAt"), context.zone),
        is_paused=job.get("enabled") is False,
        off=None
        if file.path is None
        else Off("json", {**off, "remove": True} if is_code else {**off, "set": {"enabled": False}}),
    )


def _where(file: SourceFile, job: Mapping[str, Any], is_code: bool) -> list[str]:
    """The folder it works in, which is a setting of the agent here."""
    is_in_project = is_code and file.path is not None and file.path.parent.name == ".claude"
    cwd = str(file.path.parent.parent) if is_in_project and file.path is not None else text_of(job, "cwd")
    return [] if cwd is None else [f"cwd (set it to {cwd[:200]} in the settings of the agent)"]


def _end(job: Mapping[str, Any], is_code: bool) -> list[str]:
    """Claude Code removes a recurring task after seven days."""
    if not is_code or job.get("recurring") is not True or job.get("permanent") is True:
        return []
    made = instant_of(job.get("createdAt"))
    when = "seven days after it was created" if made is None else f"on {format_instant(made + _CODE_ENDS_AFTER)}"
    return [f"its end (Claude Code removes it {when}; here it goes on: give it expiresAt to end it)"]


def _code_time(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    expression = " ".join((text_of(job, "cron") or "").split())
    times = debian_times(expression, context.zone)
    if job.get("recurring") is True:
        return {"type": "cron", "expression": expression, "timezone": context.zone}, times
    made = instant_of(job.get("createdAt"))
    return once(next(iter(times(context.now if made is None else made, 1)), None))


def _time(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    if job.get("fireAt") is not None:
        return once(instant_of(job["fireAt"], context.zone))
    expression = " ".join((text_of(job, "cronExpression") or "").split())
    if not expression:
        refuse("it has no cronExpression and no fireAt")
    return {"type": "cron", "expression": expression, "timezone": context.zone}, debian_times(expression, context.zone)


def find_codex(context: Context) -> list[SourceFile]:
    """The user's automations."""
    return open_codex(Path(context.environ.get("CODEX_HOME") or context.user_home / ".codex") / "automations")


def open_codex(path: Path) -> list[SourceFile]:
    """The folder of automations, its home, or one file."""
    if not path.is_dir():
        return read_files(existing(path))
    return read_files(found(path, "*/automation.toml", "automations/*/automation.toml"))


def read_codex(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All automations, one in each file."""
    return [_automation(file, context) for file in files]


def _automation(file: SourceFile, context: Context) -> Entry:
    try:
        job: Mapping[str, Any] = tomllib.loads(file.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        raise SourceRefused(file.place, f"it is not TOML ({error})", int(line[1]) if line else None) from None
    ref = text_of(job, "id") or Path(file.place).parent.name
    return entry_or_refusal(file, ref, job, lambda: _automation_entry(file, ref, job, context))


def _automation_entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    prompt = text_of(job, "prompt") or refuse("it has no prompt")
    rule = text_of(job, "rrule") or refuse("it has no rrule")
    zone = text_of(job, "timezone") or context.zone
    made = instant_of(job.get("created_at") or job.get("createdAt"), zone)
    schedule, times = rrule_schedule(rule, zone, now=context.now, made=made)
    thread, model = text_of(job, "target_thread_id"), text_of(job, "model")
    config: dict[str, Any] = {**({} if thread else {"persistSession": False}), **({"model": model} if model else {})}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name") or ref),
        schedule=schedule,
        action={"prompt": prompt, **agent_of(context, "codex"), **({"sessionConfig": config} if config else {})},
        times=times,
        not_carried=tuple(given(job, ("cwds", "kind", "reasoning_effort", "execution_environment"))),
        is_paused=str(job.get("status", "ACTIVE")).upper() != "ACTIVE",
        session=thread,
        off=None if file.path is None else Off("toml", {"path": file.place, "name": "status", "value": "PAUSED"}),
    )
