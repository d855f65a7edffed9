"""Hermes: `cron/jobs.json`, including each profile's. Its cron makes up what daylight saving leaves out, and runs a
repeated time twice.

A `script` is a file in the scripts folder of its home, never a shell line. Hermes runs it in that folder: `.sh` and
`.bash` with bash, everything else with its own Python.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
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
)
from wakeful.integrations.imports.places import existing, found, json_of, read_files

KIND: Final = "hermes"
_REPORTED: Final = (
    "context_from",
    "skills",
    "skill",
    "enabled_toolsets",
    "provider",
)
_TRIGGERS: Final = ("monitor_script", "monitor_url")
_SHELL_SUFFIXES: Final = (".sh", ".bash")
_FIRST_LINE_MAX: Final = 256


def find_hermes(context: Context) -> list[SourceFile]:
    """The user's home and its profiles."""
    return open_hermes(default_home(context))


def open_hermes(path: Path) -> list[SourceFile]:
    """A home, or a file."""
    if not path.is_dir():
        return read_files([path])
    profiles = found(path, "profiles/*/cron/jobs.json")
    return read_files([*existing(path / "cron/jobs.json", path / "jobs.json")[:1], *profiles])


def read_hermes(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs of these files."""
    entries: list[Entry] = []
    for file in files:
        for number, job in enumerate(jobs_of(json_of(file), file), 1):
            ref = str(job.get("id") or f"#{number}")
            entries.append(entry_or_refusal(file, ref, job, partial(_entry, file, ref, job, context)))
    return entries


def _entry(file: SourceFile, ref: str, job: Mapping[str, Any], context: Context) -> Entry:
    schedule, times = _schedule(job, context)
    action, options, dropped = _action(job, ref, _home_of(file, context), context)
    return Entry(
        file.place,
        ref,
        shown(job),
        slug_of(text_of(job, "name") or ref),
        schedule=schedule,
        action=action,
        options=options,
        times=times,
        not_carried=(*dropped, *_left(job), *given(job, _REPORTED)),
        last_run=instant_of(job.get("last_run_at"), context.zone),
        is_paused=bool(job.get("paused_at")) or job.get("enabled") is False or job.get("state") == "paused",
        off=None if file.path is None else _off(file, ref),
    )


def _home_of(file: SourceFile, context: Context) -> Path:
    """The home of a file of jobs, which has the scripts."""
    if file.path is not None and file.path.parent.name == "cron":
        return file.path.parent.parent
    return default_home(context)


def default_home(context: Context) -> Path:
    """Where Hermes keeps its files, if nothing else is said."""
    return Path(context.environ.get("HERMES_HOME") or context.user_home / ".hermes")


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


def _schedule(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes | None]:
    schedule = object_of(job, "schedule")
    match schedule.get("kind") or next((kind for kind in ("once", "interval", "cron") if kind in schedule), None):
        case "once":
            inner = object_of(schedule, "once") or schedule
            return once(instant_of(inner.get("run_at"), context.zone))
        case "interval":
            inner = object_of(schedule, "interval") or schedule
            minutes = whole_of(inner, "minutes")
            anchor = instant_of(job.get("last_run_at") or job.get("created_at"), context.zone)
            return every(None if minutes is None else minutes * 60_000, anchor)
        case "cron":
            inner = object_of(schedule, "cron") or schedule
            expression = " ".join((text_of(inner, "expr") or "").split())
            zone = text_of(inner, "tz") or context.environ.get("HERMES_TIMEZONE") or context.zone
            times = plain_times(expression, zone, gap="run", repeat="twice")
            return {"type": "cron", "expression": expression, "timezone": zone}, times
        case kind:
            raise EntryRefused(f"its schedule has the kind {str(kind)[:40]!r}, which Wakeful does not support")


def _action(
    job: Mapping[str, Any], ref: str, home: Path, context: Context
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    if context.is_adopting:
        return {"command": {"argv": ["hermes", "cron", "run", ref]}}, {"timeout": "1d"}, []
    lost = next(given(job, _TRIGGERS), None)
    if lost is not None:
        refuse(f"it starts by {lost}, which a schedule cannot express; leave the job there with --adopt")
    if text_of(job, "base_url"):
        refuse("it has a base_url of its own: add an agent for that address to wakeful.toml, and write it by hand")
    options, text = _deliver(job, context), text_of(job, "script")
    command, dropped = (None, []) if text is None else _script(text, home, context)
    dropped += given(job, ("workdir",))
    if job.get("no_agent"):
        if command is None:
            refuse("it has no agent and no script")
        return {"command": command}, options, dropped
    prompt = text_of(job, "prompt") or refuse("it has no prompt")
    model = text_of(job, "model")
    action: dict[str, Any] = {"prompt": prompt, **agent_of(context, KIND)}
    config: dict[str, Any] = {"persistSession": False, **({"model": model} if model else {})}
    options |= {"check": {"command": command}} if command is not None else {}
    return {**action, "sessionConfig": config}, options, dropped


def _script(text: str, home: Path, context: Context) -> tuple[dict[str, Any], list[str]]:
    """The command that runs a script as Hermes does."""
    try:
        folder = (home / "scripts").resolve()
        own = context.user_home / text.removeprefix("~/") if text.startswith("~/") else folder / text
        path = own.resolve()
        is_there = path.is_file()
    except (OSError, ValueError, RuntimeError):
        refuse(f"its script {text[:200]!r} is not a path")
    if not path.is_relative_to(folder):
        refuse(f"its script {text[:200]} is not in {folder}, the only folder that Hermes runs scripts from")
    if not is_there:
        refuse(f"its script {path} does not exist")
    if path.suffix.lower() in _SHELL_SUFFIXES:
        return {"argv": ["bash", str(path)], "cwd": str(path.parent)}, []
    python = _python(home, context)
    dropped = [] if python is not None else ["the Python of Hermes (its program is not on the PATH: python3 runs it)"]
    return {"argv": [python or "python3", str(path)], "cwd": str(path.parent)}, dropped


def _python(home: Path, context: Context) -> str | None:
    """The interpreter of Hermes, with the packages that its scripts may import."""
    installed = home / "hermes-agent" / "venv" / "bin" / "python"
    if installed.is_file():
        return str(installed)
    program = shutil.which(KIND, path=context.environ.get("PATH"))
    if program is None:
        return None
    try:
        with Path(program).open("rb") as opened:
            first = opened.readline(_FIRST_LINE_MAX).decode(errors="replace").strip()
    except OSError:
        return None
    words = first.removeprefix("#!").split()
    return words[0] if first.startswith("#!/") and len(words) == 1 and "python" in Path(words[0]).name else None


def _deliver(job: Mapping[str, Any], context: Context) -> dict[str, Any]:
    options: dict[str, Any] = {}
    to = [addressee(context, *target) for target in _targets(job, "deliver")]
    if to:
        options["deliver"] = to[0] if len(to) == 1 else to
    failed = [addressee(context, *target) for target in _targets(job, "failure_deliver")]
    if len(failed) > 1:
        refuse("its failures are delivered to several channels; an alert goes to one")
    return options | ({"alert": {"channel": failed[0]["channel"]}} if failed else {})


def _targets(job: Mapping[str, Any], name: str) -> Iterator[tuple[str, str | None]]:
    """Channel and person of each delivery."""
    written, origin = job.get(name), object_of(job, "origin")
    listed = [str(part) for part in written] if isinstance(written, list) else str(written or "").split(",")
    for part in filter(None, map(str.strip, listed)):
        channel, _, person = part.partition(":")
        if channel == "all":
            refuse(f"{name} is all, every connected platform; name the channels by hand")
        if channel == "origin":
            yield text_of(origin, "platform") or "last", _person(origin)
        elif channel != "local":
            yield channel, person or (_person(origin) if origin.get("platform") == channel else None)


def _person(origin: Mapping[str, Any]) -> str | None:
    return None if origin.get("chat_id") is None else str(origin["chat_id"])
