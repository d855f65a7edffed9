"""What users of other schedulers reported, a row each; those not here are told in the files beside this one."""

import itertools
import sqlite3

import pytest

from features.kit import Bot, World, as_ms, instant, ledger, rfc, short, virtual
from wakeful import Conflict, cron, every, once
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.core.time.timing import Every, tally


@virtual
async def test_reading_never_changes_what_is_planned(world: World) -> None:
    """1, OC#12440: every question, asked while an instant is overdue and nobody ticks."""
    bot = Bot(world)
    app = await world.open(bot, tick=False)
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    before = (
        world.query("SELECT * FROM cadences"),
        world.query("SELECT * FROM alarms"),
        world.query("SELECT * FROM runs"),
    )
    for _ in range(3):
        await app.get("tick")
        await app.list(status="idle", contains="t")
        await app.runs("tick")
        await app.stats("tick")
        await app.next_times("tick", 50)
    after = (
        world.query("SELECT * FROM cadences"),
        world.query("SELECT * FROM alarms"),
        world.query("SELECT * FROM runs"),
    )
    assert before == after
    assert short((await app.get("tick")).next_run) == "01-01 01:00:00"


@virtual
async def test_every_instant_ends_in_the_ledger_whatever_happens(world: World) -> None:
    """2 and 10, OC#10812, HA#113603, L1: a hard day, and the rows add up to its instants, in order, each once."""
    bot = Bot(world)
    bot.script = [25 * MINUTE, RuntimeError("no"), RuntimeError("no"), RuntimeError("no"), None, 2 * HOUR]
    app = await world.open(bot)
    await app.add("tick", every("10m"), timeout="50m")
    await world.until("01-01 02:05:00")
    await app.pause("tick")
    await world.until("01-01 03:05:00")
    await app.resume("tick")
    await world.until("01-01 05:00:00")
    await app.kill()
    await world.sleep("90m")
    app = await world.open(bot)
    await world.until("01-01 09:00:01")
    app = await world.reopen(app, bot, off="3h")
    await world.until("01-02 00:00:01")
    rows = list(reversed(await app.runs("tick", limit=1000)))
    spans = [(row.planned_at, row.planned_until or row.planned_at, row.count) for row in rows]
    timing = Every(10 * MINUTE, instant("01-01 00:00:00"))
    assert sum(count for _, _, count in spans) == 144
    assert all(tally(timing, as_ms(first) - 1, as_ms(last)).count == count for first, last, count in spans)
    assert all(earlier[1] < later[0] for earlier, later in itertools.pairwise(spans))
    assert all(row.reason for row in rows if row.outcome in ("skipped", "missed"))


@virtual
async def test_an_edited_instant_is_planned_at_once(world: World) -> None:
    """3, OC#127691: earlier or later, the next run follows in the same transaction."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-01 10:00:00")))
    await app.update("shot", schedule={"at": rfc("01-01 08:00:00")})
    assert short((await app.get("shot")).next_run) == "01-01 08:00:00"
    await app.update("shot", schedule={"at": rfc("01-01 09:00:00")})
    await world.until("01-01 12:00:00")
    assert bot.began == ["01-01 09:00:00"]


@virtual
async def test_an_edit_while_an_instant_is_overdue_does_not_run_the_old_time(world: World) -> None:
    """3: what was due under the old timing is on record as edited away."""
    bot = Bot(world)
    editor = await world.open(bot, tick=False, name="editor")
    await editor.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    await editor.add("tick", cron("45 * * * *"))
    app = await world.open(bot)
    await world.until("01-01 03:00:00")
    assert await ledger(app, "tick") == ["01-01 01:00:00 skipped (edited) x2", "01-01 02:45:00 succeeded"]


@virtual
async def test_after_an_edit_and_a_missed_tick_the_grid_still_matches(world: World) -> None:
    """6, N8#23711: due is "now or earlier", never "exactly now"."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("3h"))
    await world.until("01-01 01:17:23")
    await app.add("tick", every("2d"))
    app = await world.reopen(app, bot, off="2d1h")
    await world.until("01-05 02:00:00")
    assert bot.planned == ["01-03 01:17:23", "01-05 01:17:23"]


@virtual
async def test_a_beat_goes_on_for_days_without_dying_or_bursting(world: World) -> None:
    """7, OC#45772: three days every half hour with a restart a day: 144 runs, never two within a minute."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("beat", every("30m"))
    for _ in range(3):
        await world.sleep("23h59m50s")
        app = await world.reopen(app, bot, off="20s")
    await world.until("01-04 00:10:00")
    assert len(bot.fires) == 144
    began = [instant(text) for text in bot.began]
    assert min(later - earlier for earlier, later in itertools.pairwise(began)) > 29 * MINUTE


@virtual
async def test_claimed_is_not_started_and_the_last_success_is_a_fact_of_its_own(world: World) -> None:
    """8, CC#72195: a run that failed is not a run that worked, and the ladder says how far it got."""
    bot = Bot(world)
    bot.script = [None, RuntimeError("no session"), RuntimeError("no session")]
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 03:30:00")
    schedule = await app.get("job")
    assert (short(schedule.last_run), schedule.last_result) == ("01-01 03:00:00", "error")
    assert world.query("SELECT last_success_at FROM cadences") == [(instant("01-01 01:00:00"),)]
    assert [run.rung for run in await app.runs("job")] == ["started", "started", "finished"]


@virtual
async def test_how_long_a_run_waited_for_room_is_on_record(world: World) -> None:
    """9, CC#87940: planned, due and started are three columns."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot, concurrency_max=1)
    await app.add("first", every("1h"))
    await app.add("second", every("1h"))
    await world.until("01-01 01:25:00")
    (second,) = await app.runs("second")
    assert (short(second.due_at), short(second.started_at)) == ("01-01 01:00:00", "01-01 01:10:00")
    assert second.outcome == "succeeded"


@virtual
async def test_a_past_next_run_fires_once_and_not_hundreds_of_times(world: World) -> None:
    """16, OC#5397: the stored alarm is put into the past by hand; one catch-up, then the grid."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.stop()
    world.tamper("UPDATE alarms SET due_at = 1")
    world.tamper("UPDATE cadences SET next_at = ?, planned_through = ?", instant("01-01 00:00:00") - DAY, 0)
    await world.sleep("1m")
    await app.start()
    await world.until("01-01 01:30:00")
    assert len(bot.fires) <= 2
    assert bot.planned[-1] == "01-01 01:00:00"


@virtual
async def test_the_store_itself_refuses_a_second_row_for_an_instant(world: World) -> None:
    """21, OC#1100, L2: the claim is unique in the database, whoever writes."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    columns = [row[1] for row in world.query("PRAGMA table_info(runs)")]
    copied = ", ".join("999" if name == "run_id" else name for name in columns)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        world.tamper(f"INSERT INTO runs SELECT {copied} FROM runs")


@virtual
async def test_a_burst_of_bells_does_not_run_an_instant_twice(world: World) -> None:
    """21: commands, bells and ticks at the very moment an instant is due."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 00:59:59")
    for _ in range(40):
        app.engine.ring_bell()
        await app.update("tick", timeout="9m")
        await app.update("tick", timeout="8m")
        await world.sleep(50)
    assert bot.planned == ["01-01 01:00:00"]


@virtual
async def test_a_run_that_ends_does_not_undo_a_pause(world: World) -> None:
    """23, HA PR#46604: paused by another process while a run is under way; settling keeps it paused."""
    bot = Bot(world, usual=20 * MINUTE)
    app = await world.open(bot)
    other = await world.open(bot, tick=False, name="cli")
    await app.add("job", every("1h"))
    await world.until("01-01 01:05:00")
    await other.pause("job")
    await world.until("01-01 03:30:00")
    assert len(bot.fires) == 1
    assert (await app.get("job")).status == (await other.get("job")).status == "paused"


@virtual
async def test_registering_everything_again_makes_no_second_schedule(world: World) -> None:
    """24, OC#86451: twenty-eight stay twenty-eight."""
    app = await world.open(Bot(world))
    for _ in range(3):
        for number in range(28):
            await app.add(f"job-{number}", every("1h"))
        app = await world.reopen(app, Bot(world), off="10m")
    assert len(await app.list()) == 28
    assert {view.version for view in await app.list()} == {1}


@virtual
async def test_a_timed_out_run_that_still_runs_is_not_retried(world: World) -> None:
    """28, OC#137215, L6: with retries allowed, nothing starts beside what cannot be ended."""
    bot = Bot(world)
    bot.script = [lambda: never_let_go(world)]
    app = await world.open(bot)
    await app.add("job", every("5h"), timeout="1m", retry={"times": 3, "delay": "1m"})
    await world.until("01-01 05:30:00")
    assert len(bot.fires) == 1
    assert await ledger(app, "job") == ["01-01 05:00:00 unknown (not proven to have ended)"]
    with pytest.raises(Conflict, match="open run"):
        await app.run_now("job")
    await world.until("01-01 06:30:00")
    assert (await ledger(app, "job"))[0].startswith("01-01 05:00:00 timedOut")


@virtual
async def test_times_are_shown_in_utc_and_the_zone_stands_beside(world: World) -> None:
    """49, HA#103904: instants carry Z, the schedule its zone."""
    app = await world.open(Bot(world))
    await app.add("daily", cron("0 9 * * *", tz="America/New_York"))
    shown = (await app.get("daily")).to_json()
    assert shown["nextRun"] == "2026-01-01T14:00:00.000Z"
    assert shown["schedule"] == {"type": "cron", "expression": "0 9 * * *", "timezone": "America/New_York"}


async def never_let_go(world: World) -> None:
    """Swallow the first cancellation, and go on for an hour."""
    try:
        await world.clock.sleep(HOUR)
    except BaseException:
        await world.clock.sleep(HOUR - SECOND)
