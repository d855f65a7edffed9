"""Restart recovery: stale runs cleared, at most one catch-up, nothing settled runs again."""

import asyncio

import pytest

from features.kit import Bot, World, as_ms, instant, ledger, rfc, short, virtual
from wakeful import cron, every, once
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND


@virtual
async def test_a_run_interrupted_by_a_crash_is_tried_once_more_at_the_first_start(world: World) -> None:
    """OC#60495, L2: the same run, the same key, a second attempt; what crashed is on record."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 01:03:00")
    await app.kill()
    await world.sleep("1m")
    app = await world.open(bot)
    await world.until("01-01 01:30:00")
    assert bot.began == ["01-01 01:00:00", "01-01 01:04:00"]
    assert [fire.attempt for fire in bot.fires] == [1, 2]
    assert len(set(bot.keys)) == 1
    (run,) = await app.runs("job")
    assert [(a.attempt, a.outcome) for a in run.attempts] == [(1, "crashed"), (2, "succeeded")]


@virtual
async def test_a_second_crash_of_the_same_run_is_unknown_with_an_alert(world: World) -> None:
    """§4: a job that kills its process must not do so for ever; the schedule goes on."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await world.until("01-01 01:03:00")
    for _ in range(4):
        await app.kill()
        app = await world.open(bot)
        await world.sleep("1m")
    assert len(bot.fires) == 2
    assert await ledger(app, "job") == ["01-01 01:00:00 unknown (crash)"]
    await world.until("01-01 02:30:00")
    assert (await ledger(app, "job"))[-1] == "01-01 02:00:00 succeeded"


@virtual
async def test_on_crash_unknown_is_not_tried_again(world: World) -> None:
    """For whoever must not do it twice."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("pay", every("1h"), on_crash="unknown")
    await world.until("01-01 01:03:00")
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 01:30:00")
    assert len(bot.fires) == 1
    assert await ledger(app, "pay") == ["01-01 01:00:00 unknown (crash)"]
    await world.settle()
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]


@virtual
async def test_a_manual_run_that_crashed_is_reported_and_not_repeated(world: World) -> None:
    """§4: a manual run is one attempt."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("job", every("5h"))
    run = await app.run_now("job")
    await world.sleep("1m")
    await app.kill()
    app = await world.open(bot)
    await world.sleep("10m")
    assert len(bot.fires) == 1
    assert (await app.ledger.get(run.run_id)).outcome == "unknown"
    assert short((await app.get("job")).next_run) == "01-01 05:00:00"


@virtual
async def test_what_is_settled_never_runs_again(world: World) -> None:
    """OC#42640, L2: ten restarts on the day of a daily job."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"))
    await world.until("01-01 09:00:00")
    for _ in range(10):
        await app.kill()
        app = await world.open(bot)
        await world.sleep("10m")
    assert bot.planned == ["01-01 09:00:00"]


@pytest.mark.parametrize("off", ["2s", "59s", "5m"])
@virtual
async def test_a_restart_around_the_due_minute_loses_nothing(world: World, off: str) -> None:
    """OC#10596: down for seconds or minutes at nine; the daily job still runs, once."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"))
    await world.until("01-01 08:59:59")
    app = await world.reopen(app, bot, off=off)
    await world.sleep("1h")
    assert bot.planned == ["01-01 09:00:00"]
    (run,) = await app.runs("daily")
    assert run.trigger == ("catchUp" if off == "5m" else "schedule")


@pytest.mark.parametrize("policy", ["once", "skip", "all"])
@virtual
async def test_being_late_by_up_to_a_minute_is_never_a_misfire(world: World, policy: str) -> None:
    """orca#11299: whatever the policy."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"), catch_up=policy, max_lateness="1m")
    await world.until("01-01 08:59:30")
    app = await world.reopen(app, bot, off="85s")
    await world.settle()
    assert bot.planned == ["01-01 09:00:00"]


@virtual
async def test_catch_up_policies_after_an_outage(world: World) -> None:
    """OC#73644: once, skip, all oldest first and bounded, and a limit of lateness."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("once", every("1h"))
    await app.add("skip", every("1h"), catch_up="skip")
    await app.add("all", every("1h"), catch_up="all", catch_up_max=3)
    await app.add("fresh", every("1h"), max_lateness="20m")
    app = await world.reopen(app, bot, off="5h30m")
    await world.until("01-01 06:30:00")
    assert await ledger(app, "once") == [
        "01-01 01:00:00 missed (outage) x4",
        "01-01 05:00:00 succeeded",
        "01-01 06:00:00 succeeded",
    ]
    assert await ledger(app, "skip") == ["01-01 01:00:00 missed (outage) x5", "01-01 06:00:00 succeeded"]
    assert await ledger(app, "all") == [
        "01-01 01:00:00 missed (outage) x2",
        "01-01 03:00:00 succeeded",
        "01-01 04:00:00 succeeded",
        "01-01 05:00:00 succeeded",
        "01-01 06:00:00 succeeded",
    ]
    assert await ledger(app, "fresh") == ["01-01 01:00:00 missed (outage) x5", "01-01 06:00:00 succeeded"]
    assert [run.trigger for run in reversed(await app.runs("all"))][1:] == ["catchUp"] * 3 + ["schedule"]


@virtual
async def test_catch_up_all_goes_one_by_one_and_survives_a_crash_in_the_middle(world: World) -> None:
    """Each instant once or, for the one that was interrupted, one attempt more."""
    bot = Bot(world, usual=4 * MINUTE)
    app = await world.open(bot)
    await app.add("all", every("1h"), catch_up="all")
    app = await world.reopen(app, bot, off="5h30m")
    await world.sleep("10m")
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 06:30:00")
    assert bot.planned == [f"01-01 0{hour}:00:00" for hour in (1, 2, 3, 3, 4, 5, 6)]
    assert bot.running_max == 1
    assert [row.split()[2] for row in await ledger(app, "all")] == ["succeeded"] * 6


@virtual
async def test_catch_up_is_once_per_missed_instant_not_per_restart(world: World) -> None:
    """CC#88408: restarting does not fire anything that is already covered."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("six-hourly", every("6h"))
    for _ in range(8):
        app = await world.reopen(app, bot, off="40m")
        await world.sleep("20m")
    assert bot.planned == ["01-01 06:00:00"]


@virtual
async def test_forty_five_jobs_after_a_power_loss_do_not_stampede(world: World) -> None:
    """OC#19455: paced under the cap, and the control plane answers meanwhile."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot, concurrency_max=4)
    for number in range(45):
        await app.add(f"job-{number:02}", every("1h"))
    await app.kill()
    await world.sleep("9h5m")
    app = await world.open(bot, concurrency_max=4)
    await world.sleep("1s")
    assert bot.running == 4
    await app.update("job-44", enabled=False)
    assert len(await app.list()) == 45
    await world.sleep("15m")
    assert bot.running_max == 4
    assert len({fire.slug for fire in bot.fires}) == len(bot.fires) == 44
    assert set(bot.planned) == {"01-01 09:00:00"}


@virtual
async def test_stop_waits_for_runs_within_the_grace_and_claims_nothing_new(world: World) -> None:
    """§4 shutdown: the run of twenty seconds ends; what comes due meanwhile waits for the next start."""
    bot = Bot(world, usual=20 * 1000)
    app = await world.open(bot)
    await app.add("job", every("1h"))
    await app.add("later", every("1h", anchor="2026-01-01T00:00:10Z"))
    await world.until("01-01 01:00:05")
    await app.stop()
    assert short(world.now) == "01-01 01:00:20"
    app = await world.open(bot)
    await world.sleep("1m")
    assert bot.planned[-2:] == ["01-01 01:00:00", "01-01 01:00:10"]
    assert await ledger(app, "job") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_what_outlasts_the_grace_is_ended_recorded_and_tried_again_at_the_next_start(world: World) -> None:
    """An interruption of ours is not an error of the job."""
    bot = Bot(world, usual=HOUR)
    app = await world.open(bot, shutdown_grace="10s")
    await app.add("long", every("3h"))
    await world.until("01-01 03:01:00")
    await app.stop()
    assert short(world.now) == "01-01 03:01:10"
    assert bot.running == 0
    app = await world.open(bot)
    (run,) = await app.runs("long")
    assert [(a.outcome, a.error) for a in run.attempts[:1]] == [("interrupted", "ended by shutdown")]
    await world.until("01-01 04:30:00")
    (run,) = await app.runs("long")
    assert (run.outcome, run.attempt, len(set(bot.keys))) == ("succeeded", 2, 1)
    assert (await app.get("long")).consecutive_errors == 0


@virtual
async def test_a_schedule_added_just_before_a_kill_is_there(world: World) -> None:
    """L7, OC#37605: what was acknowledged is kept."""
    app = await world.open(Bot(world))
    await asyncio.gather(*(app.add(f"job-{n}", every("1h")) for n in range(50)))
    await app.kill()
    app = await world.open(Bot(world))
    assert len(await app.list()) == 50


@virtual
async def test_a_crash_during_a_retry_wait_keeps_the_wait(world: World) -> None:
    """The wait is an alarm in the store: the restart neither hurries nor forgets it."""
    bot = Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"), retry={"times": 1, "delay": "1h"})
    await world.until("01-01 09:10:00")
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 09:50:00")
    assert len(bot.fires) == 1
    await world.until("01-01 10:10:00")
    assert bot.began == ["01-01 09:00:00", "01-01 10:00:00"]


@pytest.mark.parametrize("policy", ["once", "all"])
@virtual
async def test_nothing_is_caught_up_outside_the_active_hours(world: World, policy: str) -> None:
    """Asleep from eight in the evening on, awake at eleven: what lay inside the hours is missed, not run at night. Back
    before they close, it is caught up."""
    bot = Bot(world)
    hours = {"start": "09:00", "end": "22:00", "timezone": "UTC"}
    app = await world.open(bot)
    await app.add("evening", cron("0 21 * * *"), active_hours=hours, catch_up=policy)
    await world.until("01-01 20:00:00")
    app = await world.reopen(app, bot, off="3h")
    await world.until("01-02 20:00:00")
    assert bot.fires == []
    assert await ledger(app, "evening") == ["01-01 21:00:00 missed (outage)"]
    app = await world.reopen(app, bot, off="1h30m")
    await world.until("01-03 20:00:00")
    assert bot.began == ["01-02 21:30:00"]


@pytest.mark.promise
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


@pytest.mark.promise
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


@pytest.mark.promise
@pytest.mark.parametrize("off", [0, 1, 59, 90])
@virtual
async def test_a_start_at_any_moment_leaves_no_alarm_in_the_past(world: World, off: int) -> None:
    """5, OC#9655, OC#34432: after any start every alarm that is left lies ahead, and what was due has its row."""
    bot = Bot(world)
    app = await world.open(bot)
    for slug, timing in (
        ("hourly", every("1h")),
        ("nightly", cron("0 1 * * *")),
        ("shot", once(rfc("01-01 01:00:00"))),
    ):
        await app.add(slug, timing)
    await world.until("01-01 00:59:30")
    app = await world.reopen(app, bot, off=f"{30 + off}s")
    await world.sleep(SECOND)
    assert sorted(fire.slug for fire in bot.fires) == ["hourly", "nightly", "shot"]
    left = world.query("SELECT due_at FROM alarms WHERE due_at IS NOT NULL")
    assert left
    assert all(due_at > world.now for (due_at,) in left)
    view = await app.get("hourly")
    assert view.next_run is not None
    assert as_ms(view.next_run) > world.now
