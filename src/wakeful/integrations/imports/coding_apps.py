"""Coding agents' scheduled tasks: Claude's `scheduled-tasks.json` with a `SKILL.md` for each prompt, and Codex's
`automations/ID/automation.toml`."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.integrations.imports.agent_jobs import (
    agent_of,
    given,
    instant_of,
    jobs_of,
    once,
    refused_entry,
    shown,
    text_of,
)
from wakeful.integrations.imports.cron_fields import debian_times
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    SourceRefused,
    SourceTimes,
    refuse,
    slug_of,
)
from wakeful.integrations.imports.places import existing, json_of, read_files
from wakeful.integrations.imports.rrule import rrule_schedule

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def find_claude(context: Context) -> list[SourceFile]:
    """The user's tasks."""
    return open_claude(context.user_home / ".claude" / "scheduled-tasks")


def open_claude(path: Path) -> list[SourceFile]:
    """The folder of tasks, or the file in it."""
    folder = path if path.is_dir() else path.parent
    listed = existing(folder / "scheduled-tasks.json", folder.parent / "scheduled-tasks.json")[:1]
    if path.is_file() or path.is_symlink():
        listed = [path]
    return read_files([*listed, *sorted(folder.glob("*/SKILL.md"))]) if listed else []


def read_claude(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All tasks; the prompt of each is in its SKILL.md."""
    prompts = {Path(file.place).parent.name: _FRONT.sub("", file.text).strip() for file in files if _is_skill(file)}
    entries: list[Entry] = []
    for file in files:
        if not _is_skill(file):
            data = json_of(file)
            key = "scheduledTasks" if isinstance(data, Mapping) and "scheduledTasks" in data else "tasks"
            entries += [_task(file, key, job, prompts, context) for job in jobs_of(data, file, key)]
    return entries


def _is_skill(file: SourceFile) -> bool:
    return file.place.endswith("SKILL.md")


def _task(file: SourceFile, key: str, job: Mapping[str, Any], prompts: Mapping[str, str], context: Context) -> Entry:
    ref = str(job.get("id") or job.get("taskId") or "")
    try:
        if not _ID.fullmatch(ref):
            refuse(f"{ref[:80]!r} is not the id of a task")
        prompt = prompts.get(ref) or text_of(job, "prompt") or refuse(f"{ref}/SKILL.md, its prompt, is missing")
        schedule, times = _time(job, context)
    except EntryRefused as refused:
        return refused_entry(file, ref, job, str(refused))
    model = text_of(job, "model")
    config: dict[str, Any] = {"persistSession": False, **({"model": model} if model else {})}
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name", "title") or ref),
        schedule=schedule,
        action={"prompt": prompt, **agent_of(context, "claude"), "sessionConfig": config},
        times=times,
        not_carried=tuple(given(job, ("cwd", "permissionMode", "allowedTools"))),
        last_run=instant_of(job.get("lastRunAt"), context.zone),
        is_paused=job.get("enabled") is False,
        off=None
        if file.path is None
        else Off("json", {"path": file.place, "list": key, "id": ref, "set": {"enabled": False}}),
    )


def _time(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes]:
    if job.get("fireAt") is not None:
        return once(instant_of(job["fireAt"], context.zone))
    expression = " ".join((text_of(job, "cronExpression", "cron") or "").split())
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
    return read_files(sorted([*path.glob("*/automation.toml"), *path.glob("automations/*/automation.toml")]))


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
    try:
        prompt = text_of(job, "prompt") or refuse("it has no prompt")
        rule = text_of(job, "rrule") or refuse("it has no rrule")
        zone = text_of(job, "timezone") or context.zone
        made = instant_of(job.get("created_at") or job.get("createdAt"), zone)
        schedule, times = rrule_schedule(rule, zone, now=context.now, anchor=context.now if made is None else made)
    except EntryRefused as refused:
        return refused_entry(file, ref, job, str(refused))
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
