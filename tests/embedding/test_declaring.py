"""What a declaration takes: timings, text, and nothing that would be lost or fail only at the start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from embedding import jobs
from wakeful import Invalid, New, Wakeful, Workflow, cron, every, manual
from wakeful import sync as blocking
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("0 9 * * *", {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"}),
        ("weekdays at 9:00", {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}),
        ("0 9 * * * UTC", {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}),
        ("every 2h", {"type": "every", "every": "2h"}),
        ("in 20m", {"type": "once", "at": "2026-03-28T12:20:00.000Z", "timezone": "Europe/Berlin"}),
    ],
)
async def test_text_is_read_like_the_schedule_of_a_definition(
    app: Wakeful, text: str, schedule: dict[str, Any]
) -> None:
    """The same stored schedule, whether it is declared, added, added with others, or written as JSON."""
    app.job(text, "declared")(jobs.note)
    async with virtual(app, start=START):
        await app.add("added", text, call=jobs.note)
        await app.add_many([New("many", text, call="embedding.jobs:note")])
        await app.schedules.put("json", {"schedule": text, "call": {"target": "embedding.jobs:note"}})
        read = {slug: (await app.get(slug)).to_json()["schedule"] for slug in ("declared", "added", "many", "json")}
    assert read == dict.fromkeys(read, schedule)


async def test_a_declared_text_runs(app: Wakeful) -> None:
    app.job("0 9 * * *", "nine")(jobs.note)
    async with virtual(app, start=START) as time:
        await time.advance("1d")
    assert jobs.CALLS == [("nine", "2026-03-29T07:00:00+00:00")]


async def test_a_length_counts_from_the_start(app: Wakeful) -> None:
    """As with `once("+20m")`: not from the import of the module."""
    app.job("in 20m", "soon")(jobs.note)
    async with virtual(app, start=START) as time:
        await time.advance("20m")
    assert jobs.CALLS == [("soon", "2026-03-28T12:20:00+00:00")]


def test_a_bare_decorator_is_refused(app: Wakeful) -> None:
    """It would register nothing."""
    with pytest.raises(Invalid, match=r"the function note is not a timing; write it as @app.job\(every\('2h'\)\)"):
        app.job(jobs.note)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"a function is not a name; write it as @app.agent\(\)"):
        app.agent(jobs.note)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"the function note is not a timing; write every\('5m'\)"):
        app.workflow("inbox").producer(jobs.note)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ("0 25 * * *", "hour '25' is not valid"),
        ("sometimes", "'sometimes' is not understood; write for example 'every 2h'"),
        ("", "is empty; write for example"),
        (timedelta(hours=2), r"write every\(…\) around it"),
        (datetime(2027, 1, 1, tzinfo=UTC), r"write once\(…\) around a datetime"),
        (3600, r"3600 is not a timing; write every\('2h'\)"),
        (None, "None is not a timing"),
        ({"type": "manual"}, "is not a timing"),
    ],
)
async def test_what_is_no_timing_is_refused_where_it_is_declared(
    app: Wakeful, tmp_path: Path, given: Any, cure: str
) -> None:
    with pytest.raises(Invalid, match=cure):
        app.job(given)
    with blocking.Wakeful(tmp_path / "blocking.db") as other, pytest.raises(Invalid, match=cure):
        other.job(given)
    async with virtual(app, start=START):
        with pytest.raises(Invalid, match=cure):
            await app.add("it", given, call=jobs.note)
        assert await app.list() == []


def test_a_producer_takes_no_text() -> None:
    """As in its JSON form."""
    with pytest.raises(Invalid, match=r"'\*/5 \* \* \* \*' is not a timing; write every"):
        Workflow("inbox").producer("*/5 * * * *")  # type: ignore[arg-type]


def test_timings_are_taken_as_before(app: Wakeful) -> None:
    for timing in (every("2h"), cron("0 9 * * *"), manual()):
        assert app.job(timing)(jobs.note) is jobs.note
