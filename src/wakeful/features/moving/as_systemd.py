"""One schedule as a timer and a service of systemd."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wakeful.core.time.cron import LAST, CronFields, parse_cron
from wakeful.core.time.instants import SECOND, Duration
from wakeful.core.time.timing import Cron, Every, Once, Times
from wakeful.core.time.timing_words import describe
from wakeful.features.moving.leaving import Leaving, clock_fields, union
from wakeful.features.moving.leaving import Times as Rule
from wakeful.integrations.imports.entries import EntryRefused, refuse
from wakeful.integrations.imports.systemd_calendar import parse_calendar

_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_GRID: Final = "its grid: systemd counts the interval from the last start"
_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "%": "%%"})


@dataclass(frozen=True, slots=True)
class Units:
    """The files of a timer, its times by systemd's rules, and what is lost. Without times, it counts from a start."""

    files: dict[str, str]
    times: Rule | None
    lost: Sequence[str]


def systemd_units(leaving: Leaving) -> Units:
    """SLUG.timer and SLUG.service. Refuses what systemd cannot express."""
    definition, lost = (
        leaving.definition,
        [f"passEnv {name}: set it in the service" for name in leaving.command.pass_env],
    )
    timer = ["[Unit]", f"Description={_plain(leaving.slug)}: {_plain(describe(leaving.timing))}", "", "[Timer]"]
    calendars, times = _calendars(leaving)
    timer += [f"OnCalendar={text}" for text in calendars]
    if times is None and isinstance(leaving.timing, Every):
        timer += ["OnActiveSec=0", f"OnUnitActiveSec={_span(leaving.timing.every)}"]
        lost.append(_GRID)
    timer += ["AccuracySec=1s"]
    timer += ["Persistent=true"] if definition.catch_up != "skip" and times is not None else []
    if definition.catch_up == "all":
        lost.append("catchUp all: systemd runs once for all that was missed")
    if definition.stagger:
        timer += [f"RandomizedDelaySec={_span(definition.stagger)}", "FixedRandomDelay=true"]
    if leaving.is_enabled:
        timer += ["", "[Install]", "WantedBy=timers.target"]
    files = {f"{leaving.slug}.timer": "\n".join(timer) + "\n", f"{leaving.slug}.service": _service(leaving)}
    return Units(files, times, lost)


def _service(leaving: Leaving) -> str:
    command, program = leaving.command, leaving.command.argv[0]
    if "/" in program and not program.startswith("/"):
        if command.cwd is None:
            refuse(f"its program {program} is in the folder of the daemon, which systemd does not know")
        program = f"{command.cwd.rstrip('/')}/{program.removeprefix('./')}"
    lines = ["[Unit]", f"Description={_plain(leaving.slug)}", "", "[Service]", "Type=oneshot"]
    lines += [] if command.cwd is None else [f"WorkingDirectory={command.cwd.replace('%', '%%')}"]
    lines += [f"Environment={_quoted(f'{name}={value}')}" for name, value in command.env.items()]
    if command.stdin is not None:
        lines += [
            "StandardInput=data",
            f"StandardInputText={_plain(command.stdin.removesuffix(chr(10)), newline=True)}",
        ]
    words = [_quoted(word).replace("$", "$$") for word in (program, *command.argv[1:])]
    lines += [f"ExecStart={' '.join(words)}", f"TimeoutStartSec={_span(leaving.definition.timeout)}"]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    return f'"{word.translate(_ESCAPED)}"'


def _plain(text: str, *, newline: bool = False) -> str:
    """Text without quotes: specifiers and backslashes escaped."""
    text = text.replace("\\", "\\\\").replace("%", "%%")
    return text.replace("\n", "\\n" if newline else " ")


def _span(length: Duration) -> str:
    return f"{length // SECOND}s" if length % SECOND == 0 else f"{length}ms"


def _calendars(leaving: Leaving) -> tuple[list[str], Rule | None]:
    match leaving.timing:
        case Cron(expression=expression, timezone=zone):
            texts = _of_cron(parse_cron(expression), zone or leaving.zone)
        case Times(times=times, timezone=zone):
            texts = [f"*-*-* {text}:00 {zone or leaving.zone}" for text in times]
        case Once(at=int(at)):
            from datetime import UTC, datetime

            texts = [datetime.fromtimestamp(at // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")]
            return texts, lambda after, count: [at // SECOND * SECOND][: count if at > after else 0]
        case Every() as every:
            try:
                minute, hour = clock_fields(every)
            except EntryRefused:
                return [], None
            texts = [f"*-*-* {hour}:{minute}:00 UTC"]
        case timing:
            refuse(f"its times are not known to systemd: {describe(timing)}")
    return texts, union([parse_calendar(text, leaving.zone).times for text in texts])


def _of_cron(fields: CronFields, zone: str) -> list[str]:
    """One expression for each kind of day that matches."""
    months = "*" if len(fields.months) == 12 else ",".join(f"{month:02}" for month in fields.months)
    clock = ":".join(
        _values(values, size) for values, size in ((fields.hours, 24), (fields.minutes, 60), (fields.seconds, 60))
    )
    if fields.last_weekday:
        refuse("it runs on the last working day of a month (LW), which systemd cannot express")
    weekdays = "" if fields.any_weekday else ",".join(_WEEKDAYS[day] for day in fields.weekdays) + " "
    dates: list[tuple[str, str]] = []
    if fields.last_day:
        dates.append(("" if fields.either_day else weekdays, f"{months}~01"))
    if fields.nth_weekdays and not (fields.either_day or fields.any_day_of_month):
        refuse("it needs a date and the weekday of a week at once, which systemd cannot express")
    for day, number in fields.nth_weekdays:
        span = "~07/1" if number == LAST else f"-{7 * number - 6:02}..{min(7 * number, 31):02}"
        dates.append((f"{_WEEKDAYS[day]} ", f"{months}{span}"))
    days = "" if fields.any_day_of_month else ",".join(f"{day:02}" for day in fields.days)
    if days and fields.days:
        dates.append(("" if fields.either_day else weekdays, f"{months}-{days}"))
    if weekdays.strip() and (fields.either_day or not days) and not (fields.last_day and not fields.either_day):
        dates.append((weekdays, f"{months}-*"))
    if not dates:
        dates.append(("", f"{months}-*"))
    return [f"{weekday}*-{date} {clock} {zone}" for weekday, date in dates]


def _values(values: Sequence[int], size: int) -> str:
    if len(values) == size:
        return "*"
    return ",".join(f"{value:02}" for value in values)
