"""Celery beat. The oracle is Celery's own crontab; the tables are those that django-celery-beat 2.9.0 wrote."""

import ast
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from moving.kit import CORPUS, STARTS, read, year_of
from wakeful.integrations.imports.entries import Entry, SourceRefused
from wakeful.integrations.imports.fitting import fit

SETTINGS = """
import os
from celery import Celery
from celery.schedules import crontab, schedule
from datetime import timedelta

HOUR = 60 * 60.0
raise RuntimeError("this is never run")
app = Celery("tasks", broker="redis://127.0.0.1:6379/0", backend="redis://:hunter2@127.0.0.1/1")
app.conf.timezone = "Europe/Berlin"

@app.on_after_configure.connect
def setup_periodic_tasks(sender: Celery, **kwargs):
    sender.add_periodic_task(HOUR, test.s("hello"), name="say hello")
    sender.add_periodic_task(crontab(hour=7, minute=30, day_of_week=1), test.s("Happy Mondays!"))

@app.task
def test(arg):
    print(arg)

app.conf.beat_schedule = {
    "multiply-at-some-time": {
        "task": "tasks.mul", "schedule": crontab(hour=7, minute=30, day_of_week="mon"), "args": (16, 16),
    },
    "reports": {
        "task": "reports.build", "schedule": 2 * HOUR, "kwargs": {"country": "de"},
        "options": {"queue": "reports", "expires": 15},
    },
    "delta": {"task": "reports.poll", "schedule": schedule(run_every=timedelta(minutes=90))},
    "sun": {"task": "reports.poll", "schedule": solar("sunset", -37.8, 144.9)},
    "computed": {"task": "reports.poll", "schedule": crontab(minute=os.environ["M"])},
    "its arguments": {"task": "reports.poll", "schedule": 30.0, "args": (now(),)},
}
"""

CRONTABS = (
    {"minute": 30, "hour": 4},
    {"minute": "*/20", "hour": "0,1,3-7"},
    {"minute": 0, "hour": "*/3"},
    {"minute": "0,30", "hour": "8-17/2", "day_of_week": "mon-fri"},
    {"minute": 15, "hour": "22-1", "day_of_week": "fri-mon"},
    {"minute": 5, "hour": 12, "day_of_month": "8-14", "day_of_week": "tue"},
    {"minute": 0, "hour": 0, "day_of_month": 1, "month_of_year": "*/3"},
    {"minute": 0, "hour": 6, "day_of_month": "1,15"},
    {"minute": 50, "hour": 5, "day_of_month": "1-31/2", "month_of_year": "jan,jul"},
    {"minute": 0, "hour": [9, 17], "day_of_week": 0},
)


def settings(folder: Path, text: str = SETTINGS) -> Path:
    path = folder / "tasks.py"
    path.write_text(text)
    return path


def beats(fields: dict[str, Any], zone: str) -> list[int]:
    """The times of the year, by Celery itself."""
    celery = pytest.importorskip("celery")
    from celery.schedules import crontab

    app = celery.Celery("oracle", broker="memory://")
    app.conf.timezone = zone
    at, found = datetime.fromtimestamp(STARTS[0] / 1000, UTC), []
    end = at + timedelta(days=365)
    while True:
        clock = crontab(app=app, nowfun=lambda at=at: at.astimezone(ZoneInfo(zone)), **fields)
        at = at + clock.remaining_estimate(at)
        if at > end:
            return found
        found.append(round(at.timestamp() * 1000))


@pytest.mark.parametrize("fields", CRONTABS, ids=lambda fields: " ".join(f"{name}={fields[name]}" for name in fields))
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_a_year_of_times_is_celerys_own(fields: dict[str, Any], zone: str, tmp_path: Path) -> None:
    """Both changes of the clock included."""
    given = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    text = f"timezone = {zone!r}\nbeat_schedule = {{'x': {{'task': 't', 'schedule': crontab({given})}}}}\n"
    (entry,) = read("celery-beat", settings(tmp_path, text))
    assert year_of(entry) == beats(fields, zone)


def test_a_time_in_the_gap_is_refused(tmp_path: Path) -> None:
    """Celery sends it an hour later; a schedule runs right after the gap."""
    text = "timezone = 'Europe/Berlin'\nbeat_schedule = {'x': {'task': 't', 'schedule': crontab(minute=30, hour=2)}}\n"
    (entry,) = read("celery-beat", settings(tmp_path, text))
    assert entry.times is not None
    theirs = beats({"minute": 30, "hour": 2}, "Europe/Berlin")
    assert list(entry.times(STARTS[0], len(theirs))) == theirs
    problem = fit(entry.schedule, entry.times, now=STARTS[0])[1]
    assert problem is not None and "2027-03-28T01:30:00.000Z in the source, 2027-03-28T01:00:00.000Z here" in problem


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Entry]:
    return {entry.ref: entry for entry in read("celery-beat", settings(tmp_path))}


def test_settings_in_python(entries: dict[str, Entry]) -> None:
    """The task is handed over to the workers; a password stays in the environment; nothing is run."""
    ast.parse(SETTINGS)
    reports = entries["reports"]
    assert reports.action["dispatch"]["celery"] == {
        "broker": "redis://127.0.0.1:6379/0", "backend": {"env": "CELERY_BACKEND_SECRET"}, "task": "reports.build",
        "kwargs": {"country": "de"}, "queue": "reports",
    }  # fmt: skip
    assert reports.schedule == {"type": "every", "every": "2h"} and reports.not_carried == ("expires",)
    assert "hunter2" not in repr(entries) and any("interval" in note for note in reports.notes)
    monday = entries["multiply-at-some-time"]
    assert monday.schedule == {"type": "cron", "expression": "30 7 * * 1", "timezone": "Europe/Berlin"}
    assert monday.action["dispatch"]["celery"]["args"] == [16, 16]
    assert monday.line == SETTINGS.split("\n").index('    "multiply-at-some-time": {') + 1
    assert entries["delta"].schedule["every"] == "1h30m"
    hello = entries["say hello"]
    assert hello.action["dispatch"]["celery"]["task"] == "tasks.test" and hello.schedule["every"] == "1h"
    assert entries["tasks.test"].schedule["expression"] == "30 7 * * 1"


def test_what_only_the_program_knows_is_refused(entries: dict[str, Entry]) -> None:
    """With what it is."""
    assert "solar('sunset', -37.8, 144.9)" in str(entries["sun"].refused)
    assert "os.environ['M']" in str(entries["computed"].refused)
    assert "arguments are computed" in str(entries["its arguments"].refused)


@pytest.mark.parametrize(
    "fields",
    [
        {"minute": "5/10"}, {"minute": 60}, {"hour": "x"}, {"day_of_week": 7}, {"day_of_month": 0}, {"minute": ""},
        {"minute": "*-3"},
    ],
    ids=repr,
)  # fmt: skip
def test_what_celery_refuses_is_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    """A field that is out of range, or none."""
    schedules = pytest.importorskip("celery.schedules")
    with pytest.raises((ValueError, schedules.ParseException)):
        schedules.crontab(**fields)
    given = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    text = f"beat_schedule = {{'x': {{'task': 't', 'schedule': crontab({given})}}}}\n"
    (entry,) = read("celery-beat", settings(tmp_path, text))
    assert entry.refused is not None


def database(folder: Path) -> Path:
    path = folder / "db.sqlite3"
    with sqlite3.connect(path) as made:
        made.executescript((CORPUS / "django-celery-beat-2.9.0.sql").read_text())
    made.close()
    return path


def test_the_tables_of_django_celery_beat(tmp_path: Path) -> None:
    """From the database and from `dumpdata`: the same."""
    dump = read("celery-beat", CORPUS / "django-celery-beat-2.9.0.json")
    tables = {entry.ref: entry for entry in read("celery-beat", database(tmp_path))}
    assert len(dump) == len(tables) == 6
    for entry in dump:
        other = tables[entry.ref]
        assert (entry.schedule, entry.action, entry.refused) == (other.schedule, other.action, other.refused)
    nightly, office, friday, poll, once, sunset = (tables[str(ref)] for ref in range(1, 7))
    assert year_of(nightly) == beats({"minute": "30", "hour": "4"}, "Europe/Berlin")
    assert nightly.action["dispatch"]["celery"]["kwargs"] == {"copies": 2} and nightly.not_carried == (
        "expire_seconds",
    )
    assert office.schedule["timezone"] == "America/New_York" and office.name == "office-hours"
    assert "a weekday and a date at once" in str(friday.refused) and "the sun" in str(sunset.refused)
    assert poll.schedule == {"type": "every", "every": "1h30m"} and poll.is_paused
    assert once.schedule == {"type": "once", "at": "2027-03-28T02:00:00.000Z"}


def test_a_row_that_begins_later_or_once_is_refused(tmp_path: Path) -> None:
    """It would begin at once, or go on, here."""
    dump = json.loads((CORPUS / "django-celery-beat-2.9.0.json").read_text())
    tasks = [row["fields"] for row in dump if row["model"].endswith("periodictask")]
    tasks[0]["start_time"], tasks[1]["one_off"] = "2030-01-01T00:00:00Z", True
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    later, one_off, *_ = read("celery-beat", tmp_path / "dump.json")
    assert "begins at 2030-01-01" in str(later.refused) and "one_off" in str(one_off.refused)


def test_another_file_is_refused(tmp_path: Path) -> None:
    """With its line."""
    with pytest.raises(SourceRefused, match=r"tasks.py, line 2: it is not Python"):
        read("celery-beat", settings(tmp_path, "x = 1\ny = = 2\n"))
    with pytest.raises(SourceRefused, match="name the settings"):
        read("celery-beat")
