"""Airflow: the times of DAG files, as drafts. The files are parsed, never run; tasks stay in Airflow, which starts them
by `airflow dags trigger`.

A time that daylight saving leaves out runs an hour later; a repeated one the second time, unless it runs every hour.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.slug import slug_of
from wakeful.core.time.instants import Instant, parse_instant
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, every
from wakeful.integrations.imports.cron_fields import NAMED, cron_sets
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    SourceFile,
    SourceRefused,
    SourceTimes,
    masked,
    refuse,
)
from wakeful.integrations.imports.places import found, read_files
from wakeful.integrations.imports.python_source import (
    Called,
    Unknown,
    constants_of,
    dotted,
    milliseconds_of,
    tree_of,
    value_of,
    written,
)
from wakeful.integrations.imports.wall_rules import WallRules

_PRESETS: Final = {**NAMED, "@quarterly": "0 0 1 */3 *"}
_TIMETABLES: Final = ("CronTriggerTimetable", "CronDataIntervalTimetable")
_DRAFT: Final = "check that it starts the right runs, pause the DAG's own schedule, then enable it"
_INTERVAL: Final = (
    "Airflow stamps a run with the interval before it (the data interval); here it has the time it starts"
)
_CATCHUP: Final = "with catchup, Airflow runs each missed interval; here catchUp all runs at most catchUpMax of them"


def find_airflow(context: Context) -> list[SourceFile]:
    """The DAGs of the user's home of Airflow."""
    home = Path(context.environ.get("AIRFLOW_HOME") or context.user_home / "airflow")
    return open_airflow(home / "dags") if (home / "dags").is_dir() else []


def open_airflow(path: Path) -> list[SourceFile]:
    """A DAG file, or a folder of them."""
    return read_files([path] if not path.is_dir() else found(path, "*.py", "*/*.py"))


def read_airflow(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All DAGs with a schedule."""
    return [
        entry_or_refusal(file, name, {"dag": name}, partial(_entry, file, name, line, words, context))
        for file in files
        for name, line, words in _dags(file)
    ]


def _dags(file: SourceFile) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Id, line and keywords of each DAG: calls of `DAG`, and functions with `@dag`."""
    tree = tree_of(file)
    names = constants_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "DAG":
            called = value_of(node, names)
            given = called.keywords.get("dag_id", called.args[0] if called.args else None)
            yield _named(given, file), node.lineno, called.keywords
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                inner = decorator.func if isinstance(decorator, ast.Call) else decorator
                if dotted(inner).rpartition(".")[2] == "dag":
                    called = value_of(decorator, names) if isinstance(decorator, ast.Call) else Called("dag", ())
                    given = called.keywords.get("dag_id", called.args[0] if called.args else node.name)
                    yield _named(given, file), node.lineno, called.keywords


def _named(given: Any, file: SourceFile) -> str:
    if not isinstance(given, str):
        raise SourceRefused(file.place, "a DAG has an id that is known only when it runs; list its DAGs by hand")
    return given


def _entry(file: SourceFile, name: str, line: int, words: Mapping[str, Any], context: Context) -> Entry:
    given = words.get("schedule", words.get("schedule_interval", words.get("timetable", Unknown(""))))
    zone, start = _start(words.get("start_date"), context)
    if given is None or given == Unknown("") or given in ("@once", "@continuous"):
        refuse(f"its schedule is {written(given) or 'the default'}, which has no times")
    schedule, times = _timing(given, zone, start)
    notes = [_INTERVAL, *([_CATCHUP] if words.get("catchup") is True else [])]
    return Entry(
        file.place,
        name,
        masked(f"{name}: schedule={written(given)}")[:400],
        slug_of(name),
        line,
        schedule=schedule,
        action={"command": {"argv": ["airflow", "dags", "trigger", name]}},
        options={"catchUp": "all" if words.get("catchup") is True else "once", "timeout": "1d"},
        times=times,
        not_carried=tuple(word for word in ("end_date", "max_active_runs", "params") if words.get(word) is not None),
        notes=tuple(notes),
        draft=_DRAFT,
        by_hand=f"run airflow dags pause {name}",
    )


def _timing(given: Any, zone: str, start: Instant | None) -> tuple[dict[str, Any], SourceTimes | None]:
    length = milliseconds_of(given)
    if length is not None:
        return every(length, start)
    if isinstance(given, Called) and given.last in _TIMETABLES:
        own = given.keywords.get("timezone")
        zone = check_zone(own) if isinstance(own, str) else zone
        given = given.args[0] if given.args else given.keywords.get("cron")
    if isinstance(given, Called) and given.last == "DeltaDataIntervalTimetable" and given.args:
        return _timing(given.args[0], zone, start)
    if not isinstance(given, str):
        refuse(f"its schedule is {written(given)[:80]}, which is no time, or known only when the file runs")
    expression = _PRESETS.get(given, " ".join(given.split()))
    sets = cron_sets(expression, has_open_steps=True)
    rules = WallRules(zone, sets.matches_day, sets.times, "shift", "twice" if len(sets.hours) == 24 else "last")
    return {"type": "cron", "expression": expression, "timezone": zone}, rules


def _start(given: Any, context: Context) -> tuple[str, Instant | None]:
    """The zone and the instant of `start_date`; without a zone, Airflow counts in UTC."""
    if not isinstance(given, Called) or given.last not in ("datetime", "DateTime", "today"):
        return "UTC", None
    zone = _zone(given.keywords.get("tz", given.keywords.get("tzinfo", "UTC")), context)
    numbers = [number for number in given.args if isinstance(number, int)]
    numbers += [given.keywords[name] for name in ("year", "month", "day")[len(numbers) :] if name in given.keywords]
    if len(numbers) < 3 or not all(isinstance(number, int) for number in numbers):
        return zone, None
    year, month, day, hour, minute = [*numbers, 0, 0][:5]
    try:
        return zone, parse_instant(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00", zone)
    except (Invalid, ValueError):
        refuse(f"its start_date {numbers} is not a time")


def _zone(given: Any, context: Context) -> str:
    if isinstance(given, Called) and given.args and isinstance(given.args[0], str):  # pendulum.timezone("…")
        given = given.args[0]
    if not isinstance(given, str):
        refuse(f"its time zone is {written(given)[:80]}, which is known only when the file runs")
    return context.zone if given == "local" else check_zone(given)
