"""Celery beat: `beat_schedule` in Python settings, `add_periodic_task`, and the tables of django-celery-beat, from its
SQLite database or from `manage.py dumpdata django_celery_beat`.

A task stays a task: the schedule hands it over to the workers. Python files are parsed, never run. In its crontab the
date and the day of the week must both match; a time that daylight saving leaves out runs an hour later, a repeated one
runs once.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.core.time.instants import format_instant
from wakeful.integrations.imports.agent_jobs import (
    entry_or_refusal,
    every,
    given,
    instant_of,
    object_of,
    once,
    shown,
    text_of,
)
from wakeful.integrations.imports.celery_crontab import FIELDS, checked_zone, crontab_times
from wakeful.integrations.imports.entries import (
    MASK,
    Context,
    Entry,
    SourceFile,
    SourceRefused,
    SourceTimes,
    masked,
    refuse,
)
from wakeful.integrations.imports.places import json_of, read_file, rows_of
from wakeful.integrations.imports.python_source import (
    Called,
    assigned,
    constants_of,
    dotted,
    milliseconds_of,
    plain,
    tree_of,
    value_of,
    written,
)

_APP: Final = "django_celery_beat"
_TABLES: Final = ("periodictask", "crontabschedule", "intervalschedule", "clockedschedule", "solarschedule")
_COLUMNS: Final = (
    "id", "name", "task", "args", "kwargs", "queue", "exchange", "routing_key", "expires", "enabled", "last_run_at",
    "description", "crontab_id", "interval_id", "solar_id", "clocked_id", "one_off", "start_time", "priority",
    "headers", "expire_seconds", "minute", "hour", "day_of_week", "day_of_month", "month_of_year", "timezone",
    "every", "period", "clocked_time", "event",
)  # fmt: skip
_SETTINGS: Final = {
    "schedule": ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"),
    "timezone": ("timezone", "CELERY_TIMEZONE"),
    "broker": ("broker_url", "CELERY_BROKER_URL", "BROKER_URL", "broker"),
    "backend": ("result_backend", "CELERY_RESULT_BACKEND", "backend"),
}
_SECRETS: Final = {"broker": "CELERY_BROKER_SECRET", "backend": "CELERY_BACKEND_SECRET"}
_PERIODS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "microseconds": 0.001}
_INTERVAL_NOTE: Final = (
    "beat counts an interval from when it sent the task last, and again from its start; here it is a fixed grid"
)


def find_celery(_: Context) -> list[SourceFile]:
    """A program keeps its settings where it wants to."""
    raise SourceRefused("", "name the settings in Python, the SQLite database, or the file of manage.py dumpdata")


def open_celery(path: Path) -> list[SourceFile]:
    """Settings in Python, a database of django-celery-beat, or a dump of it."""
    if path.suffix not in (".sqlite", ".sqlite3", ".db"):
        return [read_file(path)]
    dump = [
        {"model": f"{_APP}.{table}", "pk": row.pop("id", None), "fields": _fields(row)}
        for table in _TABLES
        for row in rows_of(path, f"{_APP}_{table}", _COLUMNS)
    ]
    if not dump:
        raise SourceRefused(str(path), "it has no tables of django-celery-beat")
    return [SourceFile(str(path), json.dumps(dump, default=str), path)]


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The names that dumpdata gives to the columns."""
    return {name.removesuffix("_id"): value for name, value in row.items()}


def read_celery(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All periodic tasks."""
    entries: list[Entry] = []
    for file in files:
        is_dump = file.text.lstrip("\ufeff \n\t").startswith("[")
        entries += _from_tables(file, context) if is_dump else _from_python(file, context)
    return entries


def _from_tables(file: SourceFile, context: Context) -> Iterator[Entry]:
    rows = [row for row in json_of(file) if isinstance(row, Mapping)]
    tables: dict[str, dict[str, Mapping[str, Any]]] = {table: {} for table in _TABLES}
    for row in rows:
        table = str(row.get("model", "")).removeprefix(f"{_APP}.")
        if table in tables:
            tables[table][str(row.get("pk"))] = object_of(row, "fields")
    for pk, task in tables["periodictask"].items():
        if text_of(task, "task") != "celery.backend_cleanup":
            yield entry_or_refusal(file, pk, task, partial(_of_row, file, pk, task, tables, context))


def _of_row(
    file: SourceFile,
    ref: str,
    task: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]],
    context: Context,
) -> Entry:
    last = instant_of(task.get("last_run_at"))
    kinds = {name: tables[f"{name}schedule"].get(str(task.get(name))) for name in ("crontab", "interval", "clocked")}
    schedule, times, notes = _row_time(kinds, last)
    starts, ends = instant_of(task.get("start_time")), instant_of(task.get("expires"))
    if starts is not None and starts > context.now:
        refuse(f"it begins at {format_instant(starts)}, which a schedule cannot express; import it then")
    if task.get("one_off") and schedule["type"] != "once":
        refuse("it is one_off: it would be sent once at its next time, which is not known here")
    listed, keywords = (_json_field(task, name) for name in ("args", "kwargs"))
    dropped = given(task, ("exchange", "routing_key", "priority", "expire_seconds"))
    return Entry(
        file.place,
        ref,
        shown({name: value for name, value in task.items() if value not in (None, "", "{}", "[]")}),
        slug_of(text_of(task, "name") or ref),
        schedule=schedule,
        action=_dispatch(text_of(task, "task"), listed, keywords, text_of(task, "queue"), {}),
        options={**_OPTIONS, **({} if ends is None else {"expiresAt": format_instant(ends)})},
        times=times,
        not_carried=tuple(dropped),
        notes=tuple(notes),
        last_run=last,
        is_paused=not task.get("enabled", True),
        by_hand="disable it in the Django admin",
    )


_OPTIONS: Final = {"catchUp": "once", "timeout": "1d", "maxConsecutiveErrors": 0}


def _row_time(
    kinds: Mapping[str, Mapping[str, Any] | None], last: int | None
) -> tuple[dict[str, Any], SourceTimes | None, list[str]]:
    crontab, interval, clocked = kinds["crontab"], kinds["interval"], kinds["clocked"]
    if crontab is not None:
        return *crontab_times(crontab, text_of(crontab, "timezone") or "UTC"), []
    if interval is not None:
        factor, number = _PERIODS.get(str(interval.get("period"))), interval.get("every")
        length = round(factor * number) if factor is not None and isinstance(number, int) else None
        return *every(length, last), [_INTERVAL_NOTE]
    if clocked is not None:
        return *once(instant_of(clocked.get("clocked_time"))), []
    return refuse("it follows the sun, or has no schedule")


def _json_field(task: Mapping[str, Any], name: str) -> Any:
    try:
        return json.loads(task.get(name) or ("[]" if name == "args" else "{}"))
    except (ValueError, TypeError, RecursionError):
        refuse(f"its {name} are not JSON")


def _dispatch(task: str | None, args: Any, keywords: Any, queue: Any, addresses: Mapping[str, Any]) -> dict[str, Any]:
    if task is None:
        refuse("it has no task")
    if not isinstance(args, list | tuple) or not isinstance(keywords, Mapping) or not plain([*args, dict(keywords)]):
        refuse("its arguments are computed by the program")
    celery = {"broker": {"env": _SECRETS["broker"]}, **addresses, "task": task}
    more = {"args": list(args), "kwargs": dict(keywords), "queue": queue if isinstance(queue, str) else None}
    return {"dispatch": {"celery": {**celery, **{name: value for name, value in more.items() if value}}}}


def _from_python(file: SourceFile, context: Context) -> Iterator[Entry]:
    tree = tree_of(file)
    settings = _settings_of(tree)
    zone = settings.get("timezone")
    addresses = _addresses(settings)
    seen: dict[str, int] = {}
    for name, line, job in _jobs_of(tree, settings.get("schedule"), file):
        count = seen[name] = seen.get(name, 0) + 1
        ref = name if count == 1 else f"{name} #{count}"
        text = f"{name}: {job.get('task')} {written(job.get('schedule'))}"
        entry = partial(_of_settings, file, ref, line, text, job, str(zone or "UTC"), addresses)
        yield entry_or_refusal(file, ref, {"name": name, "schedule": written(job.get("schedule"))}, entry)


def _of_settings(
    file: SourceFile, ref: str, line: int, text: str, job: Mapping[str, Any], zone: str, addresses: Mapping[str, Any]
) -> Entry:
    schedule, times, notes = _time_of(job.get("schedule"), checked_zone(zone))
    options = object_of(job, "options")
    dropped = [*given(options, ("exchange", "routing_key", "priority", "expires")), *given(job, ("relative",))]
    queue = options.get("queue")
    return Entry(
        file.place,
        ref,
        masked(text)[:400],
        slug_of(ref),
        line,
        schedule=schedule,
        action=_dispatch(text_of(job, "task"), job.get("args", ()), job.get("kwargs", {}), queue, addresses),
        options=_OPTIONS,
        times=times,
        not_carried=tuple(dropped),
        notes=tuple(notes),
        by_hand="take it out of the settings of beat",
    )


def _settings_of(tree: ast.Module) -> dict[str, Any]:
    """The settings of Celery in a module: names, attributes of a configuration, keywords of `update` and `Celery`."""
    names = constants_of(tree)
    found: dict[str, Any] = {}

    def learn(name: str, value: Any) -> None:
        for setting, spellings in _SETTINGS.items():
            if name in spellings:
                is_both = isinstance(value, Mapping) and isinstance(found.get(setting), Mapping)
                found[setting] = {**found[setting], **value} if is_both else value

    for name, value in names.items():
        learn(name, value)
        if isinstance(value, Called) and value.last == "Celery":
            for word, inner in value.keywords.items():
                learn(word, inner)
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt):
            for target, value in assigned(statement):
                if isinstance(target, ast.Attribute):
                    learn(target.attr, value_of(value, names))
        if isinstance(statement, ast.Call) and dotted(statement.func).endswith("conf.update"):
            for keyword in statement.keywords:
                learn(keyword.arg or "", value_of(keyword.value, names))
    return found


def _jobs_of(tree: ast.Module, schedule: Any, file: SourceFile) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Name, line and settings of each entry."""
    lines = {node.value: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    if isinstance(schedule, Mapping):
        for name, job in schedule.items():
            known = job if isinstance(job, Mapping) else {"task": None, "schedule": job}
            yield str(name), lines.get(name, 1), known
    names = constants_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).endswith("add_periodic_task") and len(node.args) > 1:
            when, what = (value_of(part, names) for part in node.args[:2])
            words = {word.arg: value_of(word.value, names) for word in node.keywords}
            task = _task_of(what, file)
            keywords = what.keywords if isinstance(what, Called) else {}
            job = {
                "task": task, "schedule": when, "args": what.args if isinstance(what, Called) else (),
                "kwargs": keywords, "options": {name: value for name, value in words.items() if name != "name"},
            }  # fmt: skip
            yield str(words.get("name") or task or "task"), node.lineno, job


def _task_of(signature: Any, file: SourceFile) -> str | None:
    """The name of the task in `task.s(…)`, for a task of this module."""
    if not isinstance(signature, Called) or signature.last not in ("s", "si", "signature"):
        return None
    name = signature.name.removesuffix(f".{signature.last}")
    if "." in name or file.path is None:
        return name
    folder, parts = file.path.parent, [file.path.stem, name]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _addresses(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The broker and the backend; one with a password, or that the program computes, is left to the environment."""
    addresses: dict[str, Any] = {}
    for name, variable in _SECRETS.items():
        value = settings.get(name)
        if isinstance(value, str) and MASK not in masked(value):
            addresses[name] = value
        elif value is not None:
            addresses[name] = {"env": variable}
    return addresses


def _time_of(schedule: Any, zone: str) -> tuple[dict[str, Any], SourceTimes | None, list[str]]:
    if isinstance(schedule, Called) and schedule.last == "schedule":
        schedule = schedule.keywords.get("run_every", schedule.args[0] if schedule.args else None)
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return *every(round(schedule * 1000), None), [_INTERVAL_NOTE]
    length = milliseconds_of(schedule)
    if length is not None:
        return *every(length, None), [_INTERVAL_NOTE]
    if isinstance(schedule, Called) and schedule.last == "crontab":
        fields = {**dict(zip(FIELDS, schedule.args, strict=False)), **schedule.keywords}
        return *crontab_times(fields, zone), []
    if isinstance(schedule, Called) and schedule.name.endswith("crontab.from_string"):
        parts = str(schedule.args[0] if schedule.args else "").split()
        order = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
        return *crontab_times(dict(zip(order, parts, strict=False)), zone), []
    return refuse(f"its schedule is {written(schedule)[:80]}, which is known only when the program runs")
