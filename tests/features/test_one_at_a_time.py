"""One at a time and stuck runs (L5, L6): nothing overlaps, nothing hangs for ever unseen."""

import asyncio
from typing import Any

import pytest

from features.kit import Bot, World, ledger, short, virtual
from wakeful import Conflict, cron, every
from wakeful.core.time.instants import HOUR, MINUTE, SECOND


@virtual
async def test_an_instant_that_falls_on_an_open_run_is_skipped_and_says_which(world: World) -> None:
    """A job of 35 minutes every ten: three instants are blocked by it, in one row."""
    bot = Bot(world, usual=35 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("10m"))
    await world.until("01-01 00:49:00")
    assert bot.began == ["01-01 00:10:00"]
    newest, oldest = await app.runs("long")
    assert (newest.outcome, newest.reason, newest.count) == ("skipped", "blocked", 3)
    assert newest.blocked_by == oldest.run_id
    await world.until("01-01 00:51:00")
    assert bot.began == ["01-01 00:10:00", "01-01 00:50:00"]
    assert bot.running_max == 1


@virtual
async def test_a_job_is_shown_running_while_it_runs(world: World) -> None:
    """Status, the open run and the ladder's rung, as anyone may read them."""
    bot = Bot(world, usual=35 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("1h"))
    await world.until("01-01 01:05:00")
    schedule = await app.get("long")
    assert (schedule.status, short(schedule.next_run)) == ("running", "01-01 02:00:00")
    (row,) = await app.runs("long")
    assert (row.run_id, row.outcome, row.rung) == (schedule.open_run_id, "running", "started")
    assert short(row.started_at) == "01-01 01:00:00"
    await world.until("01-01 01:40:00")
    (row,) = await app.runs("long")
    assert (row.outcome, row.rung, short(row.ended_at)) == ("succeeded", "finished", "01-01 01:35:00")


@virtual
async def test_a_run_past_its_deadline_is_ended_and_recorded(world: World) -> None:
    """OC#18120: the default is two hours; the end is proven, so it is `timedOut`, and the next instant runs."""
    bot = Bot(world)
    bot.script = [10 * HOUR]
    app = await world.open(bot)
    await app.add("hang", every("1h"))
    await world.until("01-01 04:30:00")
    assert bot.running == 0
    assert await ledger(app, "hang") == [
        "01-01 01:00:00 timedOut",
        "01-01 02:00:00 skipped (blocked) x2",
        "01-01 04:00:00 succeeded",
    ]
    run = (await app.runs("hang"))[-1]
    assert short(run.ended_at) == "01-01 03:00:00"
    assert run.error == "did not end within 7200 s and was ended"


@virtual
async def test_the_timeout_is_a_setting_and_holds_for_manual_runs_too(world: World) -> None:
    """OC#100471: per job, always enforced."""
    bot = Bot(world, usual=HOUR)
    app = await world.open(bot)
    await app.add("hang", cron("0 0 1 6 *"), timeout="90s")
    run = await app.run_now("hang", wait=True, within="10m")
    assert (run.outcome, run.trigger) == ("timedOut", "manual")
    assert short(run.ended_at) == "01-01 00:01:30"


@virtual
async def test_what_cannot_be_ended_is_unknown_keeps_its_place_and_is_freed_when_it_ends(world: World) -> None:
    """L6, OC#137215: no second run beside one that may still be at it; visible as stuck; then all goes on."""
    leave = asyncio.Event()
    bot = Bot(world)
    bot.script = [lambda: ignore_cancellation(leave)]
    app = await world.open(bot, concurrency_max=2)
    await app.add("stuck", every("1h"), timeout="10m", lane="one")
    await app.add("neighbour", every("1h", anchor="2026-01-01T01:30:00Z"), lane="one")
    await app.add("other", every("1h"))
    await world.until("01-01 03:15:00")
    stuck = (await app.runs("stuck"))[-1]
    assert (stuck.outcome, stuck.is_stuck, stuck.rung) == ("unknown", True, "started")
    schedule = await app.get("stuck")
    assert schedule.status == "running"
    assert schedule.status_reason == f"stuck: run {stuck.run_id} could not be stopped"
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]
    assert app.engine.running == [stuck.run_id]  # its share of the capacity
    assert world.query("SELECT holder FROM lanes WHERE lane = 'one'") == [(stuck.run_id,)]
    assert (await app.get("neighbour")).status == "waiting"
    assert [row.partition(" ")[2] for row in await ledger(app, "stuck")][1:] == ["02:00:00 skipped (blocked) x2"]
    assert len(await ledger(app, "other")) == 3  # everyone else goes on

    leave.set()
    await world.settle()
    assert await ledger(app, "stuck") == [
        "01-01 01:00:00 timedOut (ended after its deadline)",
        "01-01 02:00:00 skipped (blocked) x2",
    ]
    assert app.engine.running == []
    assert (await ledger(app, "neighbour"))[0] == "01-01 01:30:00 succeeded"
    await world.until("01-01 04:15:00")
    assert (await ledger(app, "stuck"))[-1] == "01-01 04:00:00 succeeded"


@virtual
async def test_pause_and_resume_of_a_stuck_job_do_not_start_a_second_one(world: World) -> None:
    """HH#298: status says stuck all along; when the leftover ends, it fires again without a restart."""
    leave = asyncio.Event()
    bot = Bot(world)
    bot.script = [lambda: ignore_cancellation(leave)]
    app = await world.open(bot)
    await app.add("stuck", every("1h"), timeout="10m")
    await world.until("01-01 01:30:00")
    await app.pause("stuck")
    await app.resume("stuck")
    assert (await app.get("stuck")).status_reason is not None
    await world.until("01-01 02:30:00")
    assert len(bot.fires) == 1
    leave.set()
    await world.until("01-01 03:30:00")
    assert len(bot.fires) == 2
    assert (await ledger(app, "stuck"))[-1] == "01-01 03:00:00 succeeded"


@virtual
async def test_a_restart_frees_what_was_stuck(world: World) -> None:
    """HA#79244: the process that hung is gone, and so is its mark."""
    bot = Bot(world)
    bot.script = [lambda: ignore_cancellation(asyncio.Event())]
    app = await world.open(bot)
    await app.add("stuck", every("1h"), timeout="10m", lane="one")
    await world.until("01-01 01:30:00")
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 02:30:00")
    assert (await ledger(app, "stuck"))[-1] == "01-01 02:00:00 succeeded"
    assert world.query("SELECT * FROM lanes") == []
    assert world.query("SELECT count(*) FROM runs WHERE stuck = 1") == [(0,)]


@virtual
async def test_a_long_job_does_not_hold_up_the_others(world: World) -> None:
    """OC#132952: looking for what is due is never in the way of running it."""
    slow, quick = Bot(world, usual=100 * MINUTE), Bot(world)
    app = await world.open(quick)
    await app.add("slow", every("2h"), call=slow.__call__)
    await app.add("quick", every("10m"))
    await world.until("01-01 03:45:00")
    assert len(quick.fires) == 22
    assert quick.began == quick.planned


@virtual
async def test_overlap_queue_keeps_one_instant_waiting_behind_the_open_run(world: World) -> None:
    """§4: one open and one queued, the rest are blocked; the queued one starts when the open one ends."""
    bot = Bot(world, usual=35 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("10m"), overlap="queue")
    await world.until("01-01 00:44:00")
    assert await ledger(app, "long") == [
        "01-01 00:10:00 running",
        "01-01 00:20:00 waiting (queued)",
        "01-01 00:30:00 skipped (blocked) x2",
    ]
    await world.until("01-01 00:46:00")
    assert bot.began == ["01-01 00:10:00", "01-01 00:45:00"]
    assert bot.planned == ["01-01 00:10:00", "01-01 00:20:00"]
    assert bot.running_max == 1


@virtual
async def test_a_queued_run_does_not_outlive_its_schedules_disabling(world: World) -> None:
    """L2: the error that disables the schedule gives up what was queued behind it."""
    bot = Bot(world, usual=lambda: fail_after(world, 15 * MINUTE))
    app = await world.open(bot)
    await app.add("long", every("10m"), overlap="queue", max_consecutive_errors=1)
    await world.until("01-01 02:00:00")
    assert len(bot.fires) == 1
    assert await ledger(app, "long") == ["01-01 00:10:00 failed", "01-01 00:20:00 skipped (disabled)"]
    assert world.query("SELECT count(*) FROM alarms WHERE kind = 'run'") == [(0,)]
    await app.resume("long")
    await world.until("01-01 02:11:00")
    assert len(bot.fires) == 2


@virtual
async def test_a_queued_run_survives_a_crash_of_the_open_one(world: World) -> None:
    """The open one is tried again first, then the queued one; each once more at most."""
    bot = Bot(world, usual=15 * MINUTE)
    app = await world.open(bot)
    await app.add("long", every("10m"), overlap="queue", catch_up="skip")
    await world.until("01-01 00:24:00")
    await app.kill()
    app = await world.open(bot)
    await world.until("01-01 00:41:00")
    assert bot.planned[:3] == ["01-01 00:10:00", "01-01 00:10:00", "01-01 00:20:00"]
    assert bot.running_max == 1
    assert (await ledger(app, "long"))[0] == "01-01 00:10:00 succeeded"


async def ignore_cancellation(leave: asyncio.Event) -> None:
    while not leave.is_set():
        try:
            await leave.wait()
        except asyncio.CancelledError:
            continue


async def fail_after(world: World, duration: int) -> None:
    await world.clock.sleep(duration)
    raise RuntimeError("no")


@pytest.mark.promise
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


async def never_let_go(world: World) -> None:
    """Swallow the first cancellation, and go on for an hour."""
    try:
        await world.clock.sleep(HOUR)
    except BaseException:
        await world.clock.sleep(HOUR - SECOND)


@pytest.mark.promise
@virtual
async def test_run_now_from_inside_a_run_of_the_same_lane_does_not_deadlock(world: World) -> None:
    """26, OC#43008: an agent that starts another schedule of its own lane gets its answer; waiting for the end of what
    can only begin after it is given up in time, and the other run starts when the lane is free."""
    bot, inner = Bot(world), Bot(world)
    app = await world.open(bot)
    answers: list[Any] = []

    async def nested() -> None:
        answers.append(await app.run_now("second"))
        try:
            await app.run_now("third", wait=True, within="30s")
        except Conflict as conflict:
            answers.append(str(conflict))

    bot.script = [nested]
    await app.add("first", every("1h"), lane="agent")
    for slug in ("second", "third"):
        await app.add(slug, every("1d"), lane="agent", call=inner)
    await world.until("01-01 01:05:00")
    assert [(fire.slug, began) for fire, began in zip(inner.fires, inner.began, strict=True)] == [
        ("second", "01-01 01:00:30"),
        ("third", "01-01 01:00:30"),
    ]
    assert "waiting" in answers[1]
    assert await ledger(app, "first") == ["01-01 01:00:00 succeeded"]
