"""Excluded days: nothing runs on them, everything says so, and nothing is lost."""

from typing import Any

import pytest

from features.kit import Bench, Bot, World, instant, short, virtual
from wakeful import cron, every, once, times
from wakeful.core.errors import Invalid
from wakeful.core.schedule.exclude import Exclude

# The world begins on Thursday, 1 January 2026, at midnight.
FRIDAY, SATURDAY = "2026-01-02", "2026-01-03"


def days(*dates: str) -> dict[str, Any]:
    return {"dates": list(dates)}


def told(runs: list[Any]) -> list[tuple[str, str, str | None, int]]:
    """Oldest first: when, how, why, how many."""
    return [(short(run.planned_at), run.outcome, run.reason, run.count) for run in reversed(runs)]


@virtual
async def test_instants_on_an_excluded_day_are_one_skipped_row(world: World) -> None:
    """The day before and the day after run as ever."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("6h"), exclude=days(FRIDAY))
    await world.until("01-03 07:00:00")
    assert bot.planned == ["01-01 06:00:00", "01-01 12:00:00", "01-01 18:00:00", "01-03 00:00:00", "01-03 06:00:00"]
    skipped = [run for run in await app.runs("tick") if run.outcome == "skipped"]
    assert told(skipped) == [("01-02 00:00:00", "skipped", "excluded", 4)]


@virtual
async def test_days_of_the_settings_hold_for_plain_schedules_too(world: World) -> None:
    """And a change takes effect at once, without a new plan."""
    bot = Bot(world)
    app = await world.open(bot, exclude=days(FRIDAY))
    await app.add("tick", every("12h"))
    await world.until("01-02 13:00:00")
    assert bot.planned == ["01-01 12:00:00"]
    await app._change(exclude=None)
    await world.until("01-03 13:00:00")
    assert bot.planned == ["01-01 12:00:00", "01-03 00:00:00", "01-03 12:00:00"]
    await app._change(exclude=days("2026-01-04"))
    await world.until("01-05 01:00:00")
    assert bot.planned[3:] == ["01-05 00:00:00"]


@virtual
async def test_a_day_is_one_of_the_schedules_zone(world: World) -> None:
    """09:00 in Tokyo on the third is midnight in UTC."""
    bot = Bot(world)
    app = await world.open(bot, exclude=days(SATURDAY))
    await app.add("tokyo", cron("0 9 * * *", tz="Asia/Tokyo"))
    await app.add("london", cron("0 0 * * *", tz="Europe/London"))
    await app.add("late", cron("30 23 * * *", tz="America/New_York"))
    await world.until("01-04 23:00:00")
    ran = [(fire.slug, short(fire.planned_at)) for fire in bot.fires]
    assert ("tokyo", "01-03 00:00:00") not in ran
    assert ("london", "01-03 00:00:00") not in ran
    assert ("late", "01-03 04:30:00") in ran, "that is still Friday in New York"
    assert ("late", "01-04 04:30:00") not in ran


@virtual
async def test_a_schedule_without_a_zone_stores_the_default_one(world: World) -> None:
    """So that another default later does not move its days."""
    app = await world.open(Bot(world), timezone="Asia/Tokyo")
    await app.add("tick", every("6h"), exclude=days(FRIDAY))
    await app.add("daily", times("09:00"), exclude=days(FRIDAY))
    ticking, daily = (await app.get("tick")).definition, (await app.get("daily")).definition
    assert ticking is not None and ticking.exclude == Exclude((FRIDAY,), None, "Asia/Tokyo")
    assert daily is not None and daily.exclude == Exclude((FRIDAY,))
    assert [short(at) for at in await app.next_times("tick", 3)] == [
        "01-01 06:00:00",
        "01-01 12:00:00",
        "01-02 18:00:00",
    ]


@virtual
async def test_after_an_outage_the_latest_instant_that_is_not_excluded_runs(world: World) -> None:
    """What was missed on other days is missed; what fell on excluded days is not."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("6h"), exclude=days(FRIDAY, SATURDAY))
    app = await world.reopen(app, bot, off="3d1h")
    await world.settle()
    assert bot.planned == ["01-04 00:00:00"]
    assert told(await app.runs("tick")) == [
        ("01-01 06:00:00", "missed", "outage", 3),
        ("01-02 00:00:00", "skipped", "excluded", 8),
        ("01-04 00:00:00", "succeeded", None, 1),
    ]
    later = await world.reopen(app, bot, off="2h")
    await later.update("tick", exclude=days("2026-01-04", "2026-01-05"))
    later = await world.reopen(later, bot, off="2d")
    await world.settle()
    assert bot.planned == ["01-04 00:00:00", "01-06 00:00:00"]


@virtual
async def test_previews_leave_out_what_will_not_run(world: World) -> None:
    """The next times, what is to come, nextRun, and a rehearsal."""
    app = await world.open(Bot(world), exclude=days(FRIDAY))
    written = await app.schedules.put(
        "daily",
        {"schedule": {"type": "times", "times": ["09:00"], "timezone": "UTC"}, "call": {"target": "on_due"}}
        | {"exclude": days(SATURDAY)},
        dry_run=True,
    )
    assert [short(at) for at in written.next_times][:2] == ["01-01 09:00:00", "01-04 09:00:00"]
    await app.add("daily", times("09:00"), exclude=days(SATURDAY))
    await world.until("01-01 10:00:00")
    assert (await app.get("daily")).next_run == (await app.next_times("daily", 1))[0]
    assert [short(at) for at in await app.next_times("daily", 2)] == ["01-04 09:00:00", "01-05 09:00:00"]
    ahead = await app.schedules.upcoming(instant("01-06 00:00:00"))
    assert [short(one.due_at) for one in ahead.instants] == ["01-04 09:00:00", "01-05 09:00:00"]
    await app.pause("daily", until="2026-01-01T12:00:00Z")
    assert [short(at) for at in await app.next_times("daily", 1)] == ["01-04 09:00:00"]


@virtual
async def test_why_names_the_excluded_day(world: World) -> None:
    """Of the past, of the future, and of what comes next."""
    app = await world.open(Bot(world))
    await app.add("daily", times("09:00"), exclude=days(FRIDAY))
    await world.until("01-01 10:00:00")
    ahead = await app.why("daily", at="2026-01-02T09:00:00Z")
    assert "daily will be skipped at 2026-01-02 09:00 (UTC) because 2026-01-02 is excluded" in ahead.sentence
    now = await app.why("daily")
    assert (
        "2026-01-02 09:00 will be skipped because 2026-01-02 is excluded; it runs next at 2026-01-03 09:00"
        in now.sentence
    )
    await world.until("01-02 10:00:00")
    behind = await app.why("daily", at="2026-01-02T09:00:00Z")
    assert "was skipped because 2026-01-02 is excluded" in behind.sentence
    assert behind.facts["cause"] == "skipped"


@virtual
async def test_a_one_shot_on_an_excluded_day_is_refused_when_it_is_written(world: World) -> None:
    """With the cure; moving it there is refused as well, and anything else about it can be changed."""
    app = await world.open(Bot(world), exclude=days(FRIDAY))
    with pytest.raises(Invalid, match="2026-01-02 is excluded, so it would not run; give a time on another day"):
        await app.add("party", once("2026-01-02T20:00:00Z"))
    await app.add("party", once("2026-01-03T20:00:00Z"))
    with pytest.raises(Invalid, match="is excluded"):
        await app.update("party", schedule={"type": "once", "at": "2026-01-02T20:00:00Z"})
    with pytest.raises(Invalid, match="2026-01-03 is excluded"):
        await app.update("party", exclude=days(SATURDAY))


@virtual
async def test_a_one_shot_that_is_excluded_later_is_skipped_with_the_reason(world: World) -> None:
    """Registering it again changes nothing, and is no error."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("party", once("2026-01-02T20:00:00Z"))
    await app._change(exclude=days(FRIDAY))
    await app.add("party", once("2026-01-02T20:00:00Z"))
    await app.update("party", timeout="5m")
    assert (await app.get("party")).next_run is None
    await world.until("01-03 00:00:00")
    assert bot.fires == []
    assert told(await app.runs("party")) == [("01-02 20:00:00", "skipped", "excluded", 1)]
    assert (await app.get("party")).status == "done"
    assert "its last run, 2026-01-02 20:00, was skipped (excluded)" in (await app.why("party")).sentence
    assert "because 2026-01-02 is excluded" in (await app.why("party", at="2026-01-02T20:00:00Z")).sentence


@virtual
async def test_a_manual_run_and_a_retry_are_not_concerned(world: World) -> None:
    """Excluded are planned instants; what a person asks for runs."""
    bot = Bot(world)
    app = await world.open(bot, exclude=days("2026-01-01"))
    await app.add("tick", every("6h"))
    await app.run_now("tick")
    await world.sleep("1m")
    assert len(bot.fires) == 1


@virtual
async def test_a_backfill_leaves_excluded_days_out(world: World) -> None:
    """They would not have run either."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("6h"), exclude=days(FRIDAY))
    app = await world.reopen(app, bot, off="3d")
    count = await app.backfill("tick", "2026-01-01T01:00:00Z", "2026-01-03T23:00:00Z")
    assert count == 3 + 4


@virtual
async def test_a_pause_is_one_row_whatever_is_excluded(world: World) -> None:
    """Nothing would have run: the days inside it do not matter."""
    app = await world.open(Bot(world), exclude=days(FRIDAY))
    await app.add("tick", every("6h"))
    await app.pause("tick")
    await world.until("01-03 01:00:00")
    await app.resume("tick")
    assert told(await app.runs("tick")) == [("01-01 06:00:00", "skipped", "paused", 8)]


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1@example
DTSTART;VALUE=DATE:20250102
DTEND;VALUE=DATE:20250104
RRULE:FREQ=YEARLY
END:VEVENT
END:VCALENDAR
"""


async def opened_in(world: World, bot: Bot, **settings: Any) -> Bench:
    return await world.open(bot, home=str(world.path.parent), **settings)


@virtual
async def test_a_calendar_file_is_read_again_when_it_changes(world: World) -> None:
    """Every year on the second and third of January; then the file says otherwise."""
    file = world.path.parent / "holidays.ics"
    file.write_text(CALENDAR)
    bot = Bot(world)
    app = await opened_in(world, bot, exclude={"calendar": "holidays.ics"})
    await app.add("daily", times("09:00"))
    assert [short(at) for at in await app.next_times("daily", 2)] == ["01-01 09:00:00", "01-04 09:00:00"]
    await world.until("01-02 10:00:00")
    assert bot.planned == ["01-01 09:00:00"]
    file.write_text(CALENDAR.replace("20250102", "20250110").replace("20250104", "20250111"))
    await world.until("01-11 10:00:00")
    assert [at[:5] for at in bot.planned] == ["01-01", *(f"01-{day:02}" for day in range(3, 10)), "01-11"]


@virtual
async def test_a_calendar_that_cannot_be_read_excludes_nothing_and_is_a_finding(world: World) -> None:
    """It is refused when a schedule names it first; if it is lost later, doctor says so."""
    bot = Bot(world)
    app = await opened_in(world, bot)
    with pytest.raises(Invalid, match=r"exclude\.calendar.*holidays\.ics cannot be read: No such file"):
        await app.add("daily", times("09:00"), exclude={"calendar": "holidays.ics"})
    file = world.path.parent / "holidays.ics"
    file.write_text(CALENDAR)
    await app.add("daily", times("09:00"), exclude={"calendar": "holidays.ics"})
    assert [one for one in (await app.system.health()).findings if one.name == "calendars"] == []
    file.write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nRRULE:FREQ=SECONDLY\n")
    (finding,) = [one for one in (await app.system.health()).findings if one.name == "calendars"]
    assert finding.level == "warn"
    assert "ends before END:VEVENT; daily names it, and it excludes nothing" in finding.sentence
    await world.until("01-03 10:00:00")
    assert [at[:5] for at in bot.planned] == ["01-01", "01-02", "01-03"]
