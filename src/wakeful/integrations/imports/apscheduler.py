"""APScheduler 3: the table of its SQLAlchemy job store, in a SQLite file.

A job is a pickle. It is read as plain data and never loaded, so nothing of the program runs. Its function becomes a
command that calls it in a Python of its own.

Its cron counts weekdays from Monday, and the date and the weekday must both match. A time that daylight saving leaves
out runs an hour later, a repeated one runs twice.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.schedule.policies import GRACE
from wakeful.core.slug import slug_of
from wakeful.core.time.instants import SECOND, Instant, format_duration, format_instant
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, every, jobs_of, once
from wakeful.integrations.imports.cron_text import cron_text, with_days
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    SourceFile,
    SourceRefused,
    SourceTimes,
    masked,
    refuse,
)
from wakeful.integrations.imports.inert_pickle import Made, Named, read_pickle
from wakeful.integrations.imports.places import json_of, rows_of
from wakeful.integrations.imports.python_text import call_text, project_of
from wakeful.integrations.imports.wall_rules import WallRules

TABLE: Final = "apscheduler_jobs"
_RANGES: Final = {
    "month": (1, 12), "day": (1, 31), "week": (1, 53), "day_of_week": (0, 6), "hour": (0, 23), "minute": (0, 59),
    "second": (0, 59),
}  # fmt: skip
_NOT_SET: Final = "set cwd to the folder of your program and argv to its Python, then enable it"


def find_apscheduler(_: Context) -> list[SourceFile]:
    """A program keeps its jobs where it wants to."""
    raise SourceRefused("", "name the SQLite file of the job store: wakeful import apscheduler FILE")


def open_apscheduler(path: Path) -> list[SourceFile]:
    """A job store."""
    rows = rows_of(path, TABLE, ("id", "next_run_time", "job_state"))
    if not rows:
        raise SourceRefused(str(path), f"it has no jobs in a table {TABLE}; name the file of the SQLAlchemy job store")
    jobs = [{**row, "job_state": base64.b64encode(_bytes(row.get("job_state"))).decode()} for row in rows]
    return [SourceFile(str(path), json.dumps(jobs), path)]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def read_apscheduler(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs of these stores."""
    return [
        entry_or_refusal(file, str(row.get("id")), {"id": row.get("id")}, partial(_entry, file, row, context))
        for file in files
        for row in jobs_of(json_of(file), file)
    ]


def _entry(file: SourceFile, row: Mapping[str, Any], context: Context) -> Entry:
    try:
        job = read_pickle(base64.b64decode(str(row.get("job_state")), validate=True))
    except ValueError:
        refuse("its job_state is not a pickle")
    if not isinstance(job, dict):
        refuse("its pickle is not a job of APScheduler 3")
    trigger = job.get("trigger")
    if not isinstance(trigger, Made) or not isinstance(trigger.state, dict):
        refuse("its pickle has no trigger")
    try:
        schedule, times, words, notes = _timing(trigger.kind, trigger.state, context)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        refuse(f"its trigger is not one that APScheduler 3 writes ({str(error)[:80]})")
    argv, cwd, draft = _command(job, file)
    return Entry(
        file.place,
        str(row.get("id")),
        masked(f"{job.get('func')} {words}")[:400],
        slug_of(str(job.get("name") or row.get("id"))),
        schedule=schedule,
        action={"command": {"argv": argv, **({"cwd": cwd} if cwd else {})}},
        options={"timeout": "1d", "maxConsecutiveErrors": 0, **_policies(job), **_end(trigger.state)},
        times=times,
        notes=(*notes, *_notes(job)),
        is_paused=row.get("next_run_time") is None,
        draft=draft,
        by_hand="remove the job in your program",
    )


def _command(job: Mapping[str, Any], file: SourceFile) -> tuple[list[str], str | None, str | None]:
    """The call of the job's function, in the program's folder if its module is found there."""
    module, _, function = str(job.get("func") or "").partition(":")
    if module == "__main__":
        refuse("its function is in the script that was started; move it into a module, and import it again")
    args, keywords = job.get("args"), job.get("kwargs")
    text = call_text(module, function, list(args or ()), dict(keywords or {}))
    python, cwd = project_of(module, file.path)
    return [python or "python3", "-c", text], cwd, None if cwd else _NOT_SET


def _policies(job: Mapping[str, Any]) -> dict[str, Any]:
    grace = job.get("misfire_grace_time")
    options: dict[str, Any] = {"catchUp": "once" if job.get("coalesce", True) else "all"}
    if isinstance(grace, int | float):
        options["maxLateness"] = format_duration(max(round(grace * SECOND), GRACE))
    return options


def _end(state: Mapping[str, Any]) -> dict[str, Any]:
    end = _instant(state.get("end_date"))
    jitter = state.get("jitter")
    stagger = {"stagger": format_duration(round(jitter * SECOND))} if isinstance(jitter, int | float) and jitter else {}
    return {**stagger, **({} if end is None else {"expiresAt": format_instant(end)})}


def _notes(job: Mapping[str, Any]) -> list[str]:
    notes = ["the function runs in a process of its own, and no longer in your program"]
    most = job.get("max_instances")
    if isinstance(most, int) and most > 1:
        notes.append(f"up to {most} runs at the same time there, one here")
    return notes


def _timing(
    kind: str, state: Mapping[str, Any], context: Context
) -> tuple[dict[str, Any], SourceTimes | None, str, list[str]]:
    start = _instant(state.get("start_date"))
    notes = ["jitter moves each run at random there; here stagger moves all runs by the same part of it"]
    notes = notes if state.get("jitter") else []
    match kind:
        case "DateTrigger":
            return *once(_instant(state.get("run_date"))), "date", []
        case "IntervalTrigger":
            length = _length(state.get("interval"))
            return *every(length, start), f"interval[{format_duration(length)}]", notes
        case "CronTrigger":
            if start is not None and start > context.now:
                refuse(f"it begins at {format_instant(start)}, which a cron schedule cannot express; import it then")
            return *_cron(state, context), notes
        case other:
            return refuse(f"its trigger is {other[:80] or 'unknown'}, which a schedule cannot express")


def _cron(state: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], SourceTimes, str]:
    zone = _zone(state.get("timezone")) or context.zone
    fields = {
        inner.state["name"]: inner.state.get("expressions")
        for inner in state.get("fields") or ()
        if isinstance(inner, Made) and isinstance(inner.state, dict) and "name" in inner.state
    }
    words = " ".join(f"{name}={_written(given)}" for name, given in fields.items() if _written(given) != "*")
    for name in ("year", "week"):
        if _written(fields.get(name)) != "*":
            refuse(f"it names a {name} ({words}), which a cron schedule cannot express")
    sets = {name: _set(fields.get(name), *bounds) for name, bounds in _RANGES.items() if name != "day"}
    weekdays = None if sets["day_of_week"] is None else {(day + 1) % 7 for day in sets["day_of_week"]}
    hours = sets["hour"] if sets["hour"] is not None else set(range(24))
    minutes = sets["minute"] if sets["minute"] is not None else set(range(60))
    clock_seconds = sets["second"] if sets["second"] is not None else set(range(60))
    day = _special_day(fields.get("day"), weekdays)
    days = None if day is not None else _set(fields.get("day"), *_RANGES["day"])
    expression = cron_text(
        minutes, hours, days, sets["month"], None if day is not None else weekdays, seconds=clock_seconds, source=words
    )
    if day is not None:
        expression = with_days(expression, *day[0])

    def matches(at: date) -> bool:
        is_month = sets["month"] is None or at.month in sets["month"]
        if day is not None:
            return is_month and day[1](at)
        is_date = days is None or at.day in days
        return is_month and is_date and (weekdays is None or at.isoweekday() % 7 in weekdays)

    seconds = tuple(sorted(h * 3600 + m * 60 + s for h in hours for m in minutes for s in clock_seconds))
    rules = WallRules(zone, matches, seconds, "shift", "twice")
    return {"type": "cron", "expression": expression, "timezone": zone}, rules, f"cron[{words}]"


def _special_day(given: Any, weekdays: set[int] | None) -> tuple[tuple[str, str], Any] | None:
    """The last day of the month, or its nth weekday: the fields of cron, and which days match."""
    kinds = [one.kind for one in given or () if isinstance(one, Made)]
    if not {"LastDayOfMonthExpression", "WeekdayPositionExpression"} & set(kinds):
        return None
    if len(kinds) > 1 or weekdays is not None:
        refuse(f"its day is {_written(given)} together with other days, which cron cannot express")
    if kinds[0] == "LastDayOfMonthExpression":
        return ("L", "*"), _is_last_day
    state = given[0].state
    number, weekday = int(state["option_num"]), int(state["weekday"])  # 0 to 4, and 5 for the last; Monday 0
    field = f"{(weekday + 1) % 7}{'L' if number == 5 else f'#{number + 1}'}"
    return ("*", field), partial(_is_nth, number, weekday)


def _is_last_day(at: date) -> bool:
    return (at + timedelta(days=1)).day == 1


def _is_nth(number: int, weekday: int, at: date) -> bool:
    if at.weekday() != weekday:
        return False
    return (at + timedelta(days=7)).month != at.month if number == 5 else (at.day - 1) // 7 == number


def _set(given: Any, low: int, high: int) -> set[int] | None:
    """The values of a field; None for all of them."""
    if given is None or _written(given) == "*":
        return None
    values: set[int] = set()
    for one in given:
        state = one.state if isinstance(one, Made) and isinstance(one.state, dict) else {}
        step = state.get("step") or 1
        first = low if state.get("first") is None else state["first"]
        last = high if state.get("last") is None else state["last"]
        if not all(isinstance(number, int) for number in (step, first, last)) or step < 1:
            refuse(f"its field {_written(given)[:80]} cannot be read")
        values.update(range(max(first, low), min(last, high) + 1, step))
    return values


def _written(given: Any) -> str:
    """A field as APScheduler writes it, roughly."""
    return ",".join(_one(one) for one in given) if isinstance(given, list) else "*"


def _one(one: Any) -> str:
    state = one.state if isinstance(one, Made) and isinstance(one.state, dict) else {}
    if "option_num" in state:
        return f"{state['option_num']}. weekday {state.get('weekday')}"
    if isinstance(one, Made) and one.kind == "LastDayOfMonthExpression":
        return "last"
    step = f"/{state['step']}" if state.get("step") else ""
    if "first" not in state:
        return f"*{step}"
    is_single = state.get("last") in (state["first"], None)
    return f"{state['first']}{'' if is_single else '-' + str(state['last'])}{step}"


def _length(value: Any) -> int:
    """Milliseconds of a timedelta: days, seconds and microseconds."""
    if not isinstance(value, Made) or value.what != Named("datetime", "timedelta"):
        refuse("its interval cannot be read")
    days, whole, micro = (*value.args, 0, 0, 0)[:3]
    return int(days) * 86_400_000 + int(whole) * 1000 + round(int(micro) / 1000)


def _instant(value: Any) -> Instant | None:
    """A datetime as its pickle has it: ten bytes, and the zone."""
    if not isinstance(value, Made) or value.what != Named("datetime", "datetime"):
        return None
    packed = value.args[0].encode("latin-1") if isinstance(value.args[0], str) else value.args[0]
    zone = _zone(value.args[1]) if len(value.args) > 1 else None
    if not isinstance(packed, bytes) or len(packed) != 10 or zone is None:
        refuse("one of its times cannot be read")
    from zoneinfo import ZoneInfo

    year, month = packed[0] * 256 + packed[1], packed[2] & 0x7F
    micro = int.from_bytes(packed[7:])
    wall = datetime(year, month, packed[3], packed[4], packed[5], packed[6], micro, fold=packed[2] >> 7)  # noqa: DTZ001 - its zone follows
    return round(wall.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def _zone(value: Any) -> str | None:
    """The name of a zone, however its library pickles it."""
    if not isinstance(value, Made):
        return None
    args = value.args if isinstance(value.args, tuple) else ()
    named = args[0] if args and isinstance(args[0], str) else None
    is_utc = value.kind in ("_UTC", "UTC") or value.what == Named("datetime", "timezone")
    if named is None and is_utc and (not args or _length(args[0]) == 0):
        return "UTC"
    try:
        return check_zone(named or "")
    except Invalid:
        refuse(f"its time zone {str(named)[:80]!r} is not one that is known here")
