"""Zones, durations, times and paths of the standard library, wherever a program would pass one."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from embedding import jobs
from wakeful import Heartbeat, Invalid, Wakeful, Workflow, cron, every, manual, once, times
from wakeful.core.time.instants import MINUTE
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"
BERLIN = ZoneInfo("Europe/Berlin")
NAIVE = datetime(2026, 12, 1, 9)  # noqa: DTZ001 - a time without a zone is what is tested


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="UTC")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (cron("0 9 * * *", tz=BERLIN), cron("0 9 * * *", tz="Europe/Berlin")),
        (cron("0 9 * * *", tz=UTC), cron("0 9 * * *", tz="UTC")),
        (times(time(9), time(18, 30), tz=BERLIN), times("09:00", "18:30", tz="Europe/Berlin")),
        (once(timedelta(minutes=5)), once("+5m")),
        (once(NAIVE, tz=BERLIN), once("2026-12-01T09:00", tz="Europe/Berlin")),
        (once(timedelta(hours=1), tz=BERLIN), once("+1h", tz="Europe/Berlin")),
        (every(timedelta(hours=2)), every("2h")),
    ],
)
def test_timings(given: object, written: object) -> None:
    """The same as with text."""
    assert given == written


async def test_once_counts_from_when_it_is_written(app: Wakeful) -> None:
    async with virtual(app, start=START) as clock:
        await app.add("later", once(timedelta(minutes=5)), call=jobs.note)
        assert (await app.get("later")).to_json()["schedule"]["at"] == "2026-03-28T12:05:00.000Z"
        await clock.advance("5m")
    assert jobs.CALLS == [("later", "2026-03-28T12:05:00+00:00")]


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (
            lambda: cron("0 9 * * *", tz=timezone(timedelta(hours=1))),
            r"timezone: .* is not a named zone; write 'Europe",
        ),
        (lambda: cron("0 9 * * *", tz=3), "timezone: 3 is not a named zone"),  # type: ignore[arg-type]
        (lambda: times(time(9, 0, 30)), "09:00:30"),
        (lambda: times(time(9, tzinfo=UTC)), r"09:00\+00:00"),
        (lambda: once(timedelta(seconds=-1)), "at: .* is not between zero"),
        (lambda: Wakeful("unused.db", timezone=timezone(timedelta(hours=1))), "timezone: .* is not a named zone"),
        (lambda: Wakeful("unused.db", every_min=timedelta(-1)), "every_min: .* is not between zero"),
        (lambda: Heartbeat(every=timedelta(-1)), "every: .* is not between zero"),
    ],
)
def test_what_has_no_text_is_refused_with_its_field(make: Any, cure: str) -> None:
    with pytest.raises(Invalid, match=cure):
        make()


async def test_options_of_a_definition(app: Wakeful, tmp_path: Path) -> None:
    """Durations, dates, zones and paths, also inside objects; what is read back is what text would have given."""
    options: dict[str, Any] = {
        "timeout": timedelta(minutes=10),
        "max_lateness": timedelta(minutes=5),
        "stagger": timedelta(seconds=30),
        "expires_at": datetime(2027, 1, 1, tzinfo=UTC),
        "active_hours": {"start": time(9), "end": time(18), "timezone": BERLIN},
        "exclude": {"dates": [date(2026, 12, 25)]},
        "retry": {"times": 2, "delay": timedelta(seconds=30)},
    }
    text = {
        "timeout": "10m",
        "max_lateness": "5m",
        "stagger": "30s",
        "expires_at": "2027-01-01T00:00:00.000Z",
        "active_hours": {"start": "09:00", "end": "18:00", "timezone": "Europe/Berlin"},
        "exclude": {"dates": ["2026-12-25"]},
        "retry": {"times": 2, "delay": "30s"},
    }
    async with virtual(app, start=START, on_command=lambda command: None):
        command = {"argv": [tmp_path / "run.sh"], "cwd": tmp_path}
        await app.add("typed", every("1h"), command=command, **options)
        await app.add(
            "written", every("1h"), command={"argv": [str(tmp_path / "run.sh")], "cwd": str(tmp_path)}, **text
        )
        await app.add("short", every("1h"), command=[tmp_path / "run.sh"])
        await app.add("changed", every("1h"), command=["true"])
        await app.update("changed", timeout=timedelta(minutes=10))
        typed, written = [(await app.get(slug)).to_json() for slug in ("typed", "written")]
        assert {name: typed[name] for name in typed if name not in ("slug", "nextRun", "dueAt")} == {
            name: written[name] for name in written if name not in ("slug", "nextRun", "dueAt")
        }
        assert (await app.get("short")).to_json()["command"]["argv"] == [str(tmp_path / "run.sh")]
        assert (await app.get("changed")).to_json()["timeout"] == "10m"


async def test_an_error_names_the_option(app: Wakeful) -> None:
    async with virtual(app, start=START):
        for options, cure in (
            ({"timeout": timedelta(-1)}, "timeout: .* is not between zero"),
            ({"retry": {"times": 1, "delay": timedelta(-1)}}, "retry.delay: .* is not between zero"),
            ({"expires_at": NAIVE}, "expires_at: .* has no offset"),
        ):
            with pytest.raises(Invalid, match=cure):
                await app.add("it", every("1h"), call=jobs.note, **options)


async def test_values_for_a_function_are_not_changed_silently(app: Wakeful) -> None:
    """`args` are stored as JSON, so the function would get text where the program passed a date."""
    async with virtual(app, start=START):
        with pytest.raises(Invalid, match="is not a JSON value"):
            await app.add("it", every("1h"), call=jobs.echo_over_tcp, args={"port": timedelta(1)})


async def test_an_update_takes_what_add_takes(app: Wakeful) -> None:
    """A timing replaces the whole schedule; text is read as when it is added."""
    async with virtual(app, start=START):
        await app.add("it", every("2h", anchor="2026-03-28T00:00Z"), call=jobs.note)
        for given, schedule in (
            (every(timedelta(hours=3)), {"type": "every", "every": "3h"}),
            (
                cron("0 9 * * *", tz=BERLIN),
                {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"},
            ),
            ("every 2h", {"type": "every", "every": "2h"}),
            (once(timedelta(hours=1)), {"type": "once", "at": "2026-03-28T13:00:00.000Z"}),
            (manual(), {"type": "manual"}),
        ):
            await app.update("it", schedule=given)
            assert (await app.get("it")).to_json()["schedule"] == schedule
        with pytest.raises(Invalid, match="is not a timing"):
            await app.update("it", schedule=timedelta(hours=1))


async def test_settings_of_an_app(tmp_path: Path) -> None:
    """The constructor, changes while it runs, and the heartbeat."""
    app = Wakeful(
        tmp_path / "wakeful.db",
        timezone=BERLIN,
        shutdown_grace=timedelta(seconds=5),
        every_min=timedelta(seconds=1),
        agent_interval_min=timedelta(minutes=5),
        exclude={"dates": [date(2026, 12, 25)]},
        home=tmp_path,
        heartbeat=Heartbeat(
            every=timedelta(minutes=45),
            spacing_min=timedelta(seconds=20),
            active_hours={"start": time(9), "end": time(18), "timezone": BERLIN},
        ),
    )
    async with virtual(app, start=START):
        assert app._open.conditions.default_zone == "Europe/Berlin"
        view, _ = await app.turns.heartbeat()
        assert view.every == 45 * MINUTE
        await app._change(timezone=ZoneInfo("Asia/Tokyo"), every_min=timedelta(seconds=2))
        assert app._open.conditions.default_zone == "Asia/Tokyo"


async def test_waiting_for_a_run(app: Wakeful) -> None:
    app.job(manual(), "it")(jobs.note)
    async with app:
        assert (await app.run_now("it", wait=True, within=timedelta(minutes=1))).outcome == "succeeded"


async def test_what_is_ahead_until_a_datetime(app: Wakeful) -> None:
    """`upcoming` and `today` take what `next_times` takes."""
    until = datetime(2026, 3, 28, 15, tzinfo=UTC)
    async with virtual(app, start=START):
        await app.add("it", every("1h"), call=jobs.note)
        ahead = [
            await app.schedules.upcoming(given) for given in (until, until.isoformat(), int(until.timestamp() * 1000))
        ]
        assert [len(page.instants) for page in ahead] == [3, 3, 3]
        assert (await app.schedules.timeline(since=START, until=until)).others == []
        today = await app.people.today(since=datetime(2026, 3, 28, 11, tzinfo=UTC))
        assert today.happened.since == int(datetime(2026, 3, 28, 11, tzinfo=UTC).timestamp() * 1000)


async def test_the_handlers_of_a_workflow() -> None:
    """Their timeouts, and the zone of a producer."""
    inbox = Workflow("inbox")
    inbox.producer(cron("0 9 * * *", tz=BERLIN), timeout=timedelta(minutes=3))(jobs.note)
    inbox.consumer(subscribe=["mail"], timeout=timedelta(minutes=4))(jobs.flaky)
    definition = inbox.definition
    assert [handler.timeout for handler in (*definition.producers, *definition.consumers)] == [180_000, 240_000]
