"""systemd timers: `*.timer` files with the services they start."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.core.time.instants import Instant, format_duration
from wakeful.integrations.imports.agent_jobs import every
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    masked,
    refuse,
    split_environment,
)
from wakeful.integrations.imports.systemd_calendar import Calendar, daily_times, joined_calendars, parse_calendar
from wakeful.integrations.imports.systemd_units import Unit, parse_unit, span

SYSTEM: Final = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_BOOT: Final = ("OnBootSec", "OnStartupSec", "OnActiveSec")
_CHANGES: Final = ("OnClockChange", "OnTimezoneChange")
_YES: Final = ("true", "yes", "on", "1")
_REPORTED: Final = ("WakeSystem", "DeferReactivation")
_AT_RANDOM: Final = "RandomizedDelaySec draws each delay at random; here stagger delays all runs by the same part of it"
_SPECIFIER: Final = re.compile(r"%(.)")
_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


def read_systemd(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All timers of these files."""
    units = {Path(file.place).name: parse_unit(file) for file in files}
    return [
        entry
        for name, unit in sorted(units.items())
        if name.endswith(".timer") or (file_is_pasted(unit) and "Timer" in unit.sections)
        for entry in _entries(unit, units, context)
    ]


def file_is_pasted(unit: Unit) -> bool:
    return unit.file.path is None


def _entries(timer: Unit, units: Mapping[str, Unit], context: Context) -> list[Entry]:
    stem = timer.name.removesuffix(".timer")
    base = Entry(timer.file.place, "", _shown(timer), slug_of(stem))
    try:
        options, dropped = _options(timer)
        calendars = _calendars(timer, context)
        _refuse_other_triggers(timer, has_calendar=bool(calendars))
        base = replace(
            base,
            options=options,
            not_carried=tuple(dropped),
            notes=_notes(timer),
            last_run=_last_run(timer),
            is_paused=_is_disabled(timer),
            off=_off(timer),
            by_hand=f"run systemctl disable --now {timer.name}",
        )
        base = _with_action(base, timer, units, stem, context)
        entries = _by_calendars(base, calendars)
        if timer.all("Timer", "OnUnitActiveSec"):
            entries.append(_by_interval(base, timer))
        if not entries:
            refuse(
                "it counts only from the start of the machine, so it has no fixed time"
                if _is_boot(timer)
                else "it has no time"
            )
        _refuse_overlap(entries, context.now)
    except EntryRefused as refused:
        return [replace(base, ref="1", refused=str(refused))]
    if len(entries) > 1:
        entries = [replace(entry, options={**entry.options, "lane": f"systemd-{base.name}"}) for entry in entries]
    return [replace(entry, ref=str(number), name=base.name) for number, entry in enumerate(entries, 1)]


def _calendars(timer: Unit, context: Context) -> list[Calendar]:
    """Several lines are a union: a line that another one covers is left out."""
    calendars = [parse_calendar(text, context.zone) for text in timer.all("Timer", "OnCalendar")]
    kept: list[Calendar] = []
    for number, calendar in enumerate(calendars):
        others = [*kept, *(other for other in calendars[number + 1 :] if not calendar.covers(other))]
        if not any(other.covers(calendar) for other in others):
            kept.append(calendar)
    return joined_calendars(kept)


def _with_action(base: Entry, timer: Unit, units: Mapping[str, Unit], stem: str, context: Context) -> Entry:
    """The entry with what it starts. If that is not there, the entry is refused, but its times can still be seen."""
    try:
        action, dropped, limit = _action(timer, units, stem, context)
    except EntryRefused as refused:
        return replace(base, refused=str(refused))
    return replace(base, action=action, options={**base.options, **limit}, not_carried=(*base.not_carried, *dropped))


def _by_calendars(base: Entry, calendars: Sequence[Calendar]) -> list[Entry]:
    """One entry, if one schedule has the times of all lines."""
    daily = daily_times(calendars) if len(calendars) > 1 else None
    if daily is None:
        return [_by_calendar(base, calendar) for calendar in calendars]
    text = "; ".join(f"OnCalendar={calendar.text}" for calendar in calendars)
    return [replace(base, source=text, schedule=daily[0], times=daily[1])]


def _by_calendar(base: Entry, calendar: Calendar) -> Entry:
    return replace(base, source=f"OnCalendar={calendar.text}", schedule=calendar.schedule(), times=calendar.times)


def _by_interval(base: Entry, timer: Unit) -> Entry:
    schedule, times = every(span(timer.last("Timer", "OnUnitActiveSec")), base.last_run)
    dropped = [key for key in _BOOT if timer.all("Timer", key)]
    text = f"OnUnitActiveSec={timer.last('Timer', 'OnUnitActiveSec')}"
    return replace(base, source=text, schedule=schedule, times=times, not_carried=(*base.not_carried, *dropped))


def _refuse_other_triggers(timer: Unit, *, has_calendar: bool) -> None:
    """Refuse a timer that would also start otherwise. With an interval, the start of the machine only begins it."""
    lost = [key for key in ("OnUnitInactiveSec", *(_BOOT if has_calendar else ())) if timer.all("Timer", key)]
    lost += [key for key in _CHANGES if timer.last("Timer", key).lower() in _YES]
    if lost and (has_calendar or timer.all("Timer", "OnUnitActiveSec")):
        refuse(f"it also starts by {lost[0]}, which a schedule cannot express; leave the job there")


def _refuse_overlap(entries: Sequence[Entry], now: Instant) -> None:
    seen: set[Instant] = set()
    for entry in entries:
        times = set() if entry.times is None else set(entry.times(now, 300))
        if seen & times:
            refuse("two of its lines have some times in common, which would run twice here; write them as one")
        seen |= times


def _options(timer: Unit) -> tuple[dict[str, Any], list[str]]:
    is_persistent = timer.last("Timer", "Persistent").lower() in _YES
    options: dict[str, Any] = {"catchUp": "once" if is_persistent else "skip", "maxConsecutiveErrors": 0}
    delay = sum(
        span(timer.last("Timer", key)) for key in ("RandomizedDelaySec", "AccuracySec") if timer.all("Timer", key)
    )
    if delay:
        options["stagger"] = format_duration(delay)
    return options, [key for key in _REPORTED if timer.all("Timer", key)]


def _notes(timer: Unit) -> tuple[str, ...]:
    """AccuracySec, and a delay that is fixed, are the same part of the window at each run, as stagger is."""
    is_random = timer.all("Timer", "RandomizedDelaySec") and span(timer.last("Timer", "RandomizedDelaySec"))
    is_fixed = timer.last("Timer", "FixedRandomDelay").lower() in _YES
    return (_AT_RANDOM,) if is_random and not is_fixed else ()


def _action(
    timer: Unit, units: Mapping[str, Unit], stem: str, context: Context
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    name = timer.last("Timer", "Unit", f"{stem}.service")
    program = ["systemctl", *([] if _is_system(timer) else ["--user"])]
    if context.is_adopting:
        return {"command": {"argv": [*program, "start", name]}}, [], {"timeout": "1d"}
    service = timer if file_is_pasted(timer) and "Service" in timer.sections else units.get(name)
    if service is None:
        refuse(f"{name} is not next to it; import the folder, or leave the job there with --adopt")
    return _service(service, stem, context)


def _service(service: Unit, stem: str, context: Context) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    variables = _environment(service, stem, context)
    env, secret = split_environment(variables)
    lines = [*service.all("Service", "ExecStartPre"), *service.all("Service", "ExecStart")]
    lines += service.all("Service", "ExecStartPost")
    if not service.all("Service", "ExecStart"):
        refuse(f"{service.name} has no ExecStart")
    commands = [_argv(line, service.name, stem, variables, context) for line in lines]
    argv = commands[0] if len(commands) == 1 else ["sh", "-c", " && ".join(map(shlex.join, commands))]
    user = service.last("Service", "User")
    if user and user != context.user:
        if context.user != "root":
            refuse(f"it runs as {user[:80]}, and the daemon runs as {context.user}; import it there, or use --adopt")
        argv = ["runuser", "-u", user, "--", *argv]
    command: dict[str, Any] = {"argv": argv}
    folder = service.last("Service", "WorkingDirectory").removeprefix("-")
    if folder:
        command["cwd"] = str(context.user_home) if folder == "~" else _specified(folder, service.name, stem, context)
    if env:
        command["env"] = env
    if secret:
        command["passEnv"] = secret
    dropped = [f"{name} (a secret: set it where the daemon runs)" for name in secret]
    known = {"Type", "ExecStart", "ExecStartPre", "ExecStartPost", "User", "WorkingDirectory", "Environment"}
    dropped += sorted(service.sections.get("Service", {}).keys() - known - {"TimeoutStartSec", "RemainAfterExit"})
    limit = service.last("Service", "TimeoutStartSec", "infinity")
    return {"command": command}, dropped, {"timeout": "1d" if limit == "infinity" else format_duration(span(limit))}


def _environment(service: Unit, stem: str, context: Context) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in service.all("Service", "Environment"):
        try:
            words = shlex.split(line)
        except ValueError:
            refuse(f"Environment={masked(line)[:80]} cannot be read")
        words = [_specified(word, service.name, stem, context) for word in words]
        variables.update((name, value) for name, equals, value in (word.partition("=") for word in words) if equals)
    return variables


def _argv(line: str, unit: str, stem: str, variables: Mapping[str, str], context: Context) -> list[str]:
    text = line.lstrip("-@:+!|")
    try:
        words = shlex.split(text)
    except ValueError:
        refuse(f"ExecStart={masked(line)[:80]} cannot be read")
    if not words:
        refuse("ExecStart is empty")
    return [_expanded(_specified(word, unit, stem, context), variables) for word in words]


def _specified(text: str, unit: str, stem: str, context: Context) -> str:
    known = {"%": "%", "h": str(context.user_home), "u": context.user, "n": unit, "N": stem, "p": stem.split("@")[0]}

    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            refuse(f"it uses %{match[1]}, which only systemd knows; leave the job there with --adopt")
        return known[match[1]]

    return _SPECIFIER.sub(value, text)


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            refuse(f"it uses ${match[1]}, which is not set in the unit; leave the job there with --adopt")
        return variables[match[1]]

    return _VARIABLE.sub(value, word.replace("$$", "\0")).replace("\0", "$")


def _is_system(timer: Unit) -> bool:
    return timer.file.place.startswith(SYSTEM)


def _is_boot(timer: Unit) -> bool:
    return any(timer.all("Timer", key) for key in _BOOT)


def _is_in_use(timer: Unit) -> bool:
    return _is_system(timer) or "/.config/systemd/user/" in timer.file.place


def _is_disabled(timer: Unit) -> bool:
    """Whether the timer could be enabled and is not: no target wants it."""
    if not _is_in_use(timer) or "Install" not in timer.sections:
        return False
    return not any(Path(timer.file.place).parent.glob(f"*.wants/{timer.name}"))


def _off(timer: Unit) -> Off | None:
    if not _is_in_use(timer):
        return None
    program = ["systemctl", *([] if _is_system(timer) else ["--user"])]
    return Off(
        "program",
        {
            "argv": [*program, "disable", "--now", timer.name],
            "check": [*program, "is-active", timer.name],
            "off": ["inactive", "failed", "unknown"],
        },
    )


def _last_run(timer: Unit) -> Instant | None:
    """A persistent timer's stamp."""
    if not _is_in_use(timer):
        return None
    folder = Path("/var/lib/systemd/timers") if _is_system(timer) else Path.home() / ".local/share/systemd/timers"
    try:
        return round((folder / f"stamp-{timer.name}").stat().st_mtime * 1000)
    except OSError:
        return None


def _shown(timer: Unit) -> str:
    settings = timer.sections.get("Timer", {})
    return masked("; ".join(f"{key}={value}" for key, values in settings.items() for value in values)) or timer.name
