"""launchd: property lists of agents and daemons, as XML.

`StartCalendarInterval` is like cron: what is missing matches anything, and if both the day and the weekday are given,
either of them matches. A Mac that sleeps runs a missed time once when it wakes.
"""

import plistlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, every, given, shown, text_of, whole_of
from wakeful.integrations.imports.cron_fields import debian_times
from wakeful.integrations.imports.entries import (
    ENTRIES_MAX,
    Context,
    Entry,
    SourceFile,
    SourceRefused,
    SourceTimes,
    masked,
    refuse,
    split_environment,
)
from wakeful.integrations.imports.places import plain_files_in, read_each, read_files

_FOLDERS: Final = ("Library/LaunchAgents",)
_SYSTEM: Final = (Path("/Library/LaunchAgents"), Path("/Library/LaunchDaemons"))
_FIELDS: Final = {"Minute": (0, 59), "Hour": (0, 23), "Day": (1, 31), "Month": (1, 12), "Weekday": (0, 7)}
_TRIGGERS: Final = (
    "KeepAlive", "WatchPaths", "QueueDirectories", "StartOnMount", "Sockets", "MachServices", "LaunchEvents",
)  # fmt: skip
_CARRIED: Final = frozenset({
    "Label", "Program", "ProgramArguments", "StartCalendarInterval", "StartInterval", "EnvironmentVariables",
    "WorkingDirectory", "UserName", "Disabled", "RunAtLoad", "StandardOutPath", "StandardErrorPath", "Nice",
})  # fmt: skip
_OUTPUT: Final = "its output went to a file there; here it is kept with the run"
_LOAD: Final = "it also ran when it was loaded (RunAtLoad); here it runs at its times only"
_CLOCK: Final = (
    "launchd does not say what it does with times that daylight saving leaves out or repeats; here they run as in cron"
)
_SLEEP: Final = (
    "StartInterval skips what a sleeping Mac misses; here it is caught up once, and counts from a fixed time"
)


def find_launchd(context: Context) -> list[SourceFile]:
    """The agents of the user, and those of the machine."""
    folders = [*(context.user_home / folder for folder in _FOLDERS), *_SYSTEM]
    return read_each(file for folder in folders if folder.is_dir() for file in plain_files_in(folder, "*.plist"))


def open_launchd(path: Path) -> list[SourceFile]:
    """A property list, or a folder of them."""
    return read_files(plain_files_in(path, "*.plist") if path.is_dir() else [path])


def read_launchd(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs; one with several times that no single schedule has is several entries."""
    entries = [entry for file in files for entry in _entries(file, _list_of(file), context)]
    if len(entries) > ENTRIES_MAX:
        raise SourceRefused(files[0].place, f"there are {len(entries)} entries; at most {ENTRIES_MAX} are imported")
    return entries


def _list_of(file: SourceFile) -> Mapping[str, Any]:
    if file.text.startswith("bplist"):
        raise SourceRefused(file.place, "it is a binary property list; convert a copy: plutil -convert xml1 FILE")
    try:
        data = plistlib.loads(file.text.encode(), fmt=plistlib.FMT_XML)
    except Exception as error:
        raise SourceRefused(file.place, f"it is not a property list ({str(error)[:80]})") from None
    if not isinstance(data, dict):
        raise SourceRefused(file.place, "it is not the property list of a job")
    return data


def _entries(file: SourceFile, job: Mapping[str, Any], context: Context) -> list[Entry]:
    label = text_of(job, "Label") or Path(file.place).stem
    if "StartCalendarInterval" not in job and "StartInterval" not in job:
        refused = (
            "it has no StartCalendarInterval and no StartInterval: it runs all the time, or when something happens"
        )
        return [Entry(file.place, label, shown(job), slug_of(label), refused=refused, is_skipped=True)]
    calendars = _calendars(job)
    numbered = enumerate([*calendars, *(["interval"] if "StartInterval" in job else [])], 1)
    count = len(calendars) + ("StartInterval" in job)
    return [
        entry_or_refusal(file, f"{label} {number}", job, partial(_entry, file, label, number, count, one, job, context))
        for number, one in numbered
    ]


def _calendars(job: Mapping[str, Any]) -> list[Any]:
    """The times of a job. Those that differ in their minutes, hours or weekdays only are one."""
    given = job.get("StartCalendarInterval", [])
    calendars = given if isinstance(given, list) else [given]
    if len(calendars) < 2 or not all(isinstance(one, dict) for one in calendars):
        return calendars
    for name in _FIELDS:
        rest = [{key: value for key, value in one.items() if key != name} for one in calendars]
        if all(one == rest[0] for one in rest) and all(name in one for one in calendars):
            return [{**rest[0], name: [one[name] for one in calendars]}]
    return calendars


def _entry(
    file: SourceFile, label: str, number: int, count: int, one: Any, job: Mapping[str, Any], context: Context
) -> Entry:
    lost = next(given(job, _TRIGGERS), None)
    if lost is not None:
        refuse(f"it also starts by {lost}, which a schedule cannot express; leave the job there")
    schedule, times, text, note = _interval(job) if one == "interval" else _calendar(one, context)
    notes = [note, *([_LOAD] if job.get("RunAtLoad") else [])]
    notes += [_OUTPUT] if text_of(job, "StandardOutPath", "StandardErrorPath") else []
    command, secret = _command(job, context)
    lane = {"lane": f"launchd-{slug_of(label)}"} if count > 1 else {}
    return Entry(
        file.place,
        f"{label} {number}",
        masked(f"{label}: {text}")[:400],
        slug_of(label),
        schedule=schedule,
        action={"command": command},
        options={"catchUp": "once", "timeout": "1d", "maxConsecutiveErrors": 0, **lane},
        times=times,
        not_carried=(
            *(f"{name} (a secret: set it where the daemon runs)" for name in secret),
            *sorted(job.keys() - _CARRIED),
        ),
        notes=tuple(notes),
        is_paused=job.get("Disabled") is True,
        by_hand=f"run launchctl bootout gui/$(id -u) {file.place}",
    )


def _calendar(one: Any, context: Context) -> tuple[dict[str, Any], SourceTimes, str, str]:
    if not isinstance(one, dict) or not one.keys() <= _FIELDS.keys():
        refuse("its StartCalendarInterval has fields that launchd does not know")
    fields = [_field(one.get(name), name) for name in ("Minute", "Hour", "Day", "Month", "Weekday")]
    expression = " ".join(fields)
    text = "StartCalendarInterval " + ", ".join(f"{name}={value}" for name, value in one.items())
    schedule = {"type": "cron", "expression": expression, "timezone": context.zone}
    return schedule, debian_times(expression, context.zone), text, _CLOCK


def _field(value: Any, name: str) -> str:
    low, high = _FIELDS[name]
    values = value if isinstance(value, list) else [value]
    if value is None:
        return "*"
    if not all(isinstance(number, int) and low <= number <= high for number in values):
        refuse(f"its {name} {str(value)[:80]} is not between {low} and {high}")
    return ",".join(map(str, sorted(set(values))))


def _interval(job: Mapping[str, Any]) -> tuple[dict[str, Any], SourceTimes | None, str, str]:
    length = whole_of(job, "StartInterval")
    schedule, times = every(None if length is None else length * 1000, None)
    return schedule, times, f"StartInterval {length}", _SLEEP


def _command(job: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], list[str]]:
    argv = job.get("ProgramArguments")
    program = text_of(job, "Program")
    words = [str(word) for word in argv] if isinstance(argv, list) and argv else [program] if program else []
    if not words:
        refuse("it has no Program and no ProgramArguments")
    if program:
        words[0] = program
    user = text_of(job, "UserName")
    if user is not None and user != context.user:
        if context.user != "root":
            refuse(f"it runs as {user[:80]}, and the daemon runs as {context.user}; import it there")
        words = ["runuser", "-u", user, "--", *words]
    variables = job.get("EnvironmentVariables")
    env, secret = split_environment(
        {str(k): str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}
    )
    more = {"cwd": text_of(job, "WorkingDirectory"), "env": env, "passEnv": secret}
    return {"argv": words, **{name: value for name, value in more.items() if value}}, secret
