"""`why`: one sentence of cause for any schedule and any instant, past, present or to come."""

import pytest

from features.kit import Bench, Bot, World, instant, virtual
from features.voice import Voice, beating
from wakeful import cron, every, once, times
from wakeful.core.refusals import NotFound
from wakeful.core.run.results import Busy, Done, Failed, Throttled, Unconfirmed
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.core.time.timing import AfterReset, Manual
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.schedules.why import Why, why
from wakeful.ports.store import Tx

BROKEN = RuntimeError("no route to host")


async def asked(app: Bench, slug: str, at: str | None = None, **circumstances: object) -> Why:
    """The answer, in one consistent read."""
    wanted = None if at is None else instant(at)
    now = app.clock.read().now
    return await app.store.read(lambda tx: why(tx, slug, at=wanted, now=now, **circumstances))  # type: ignore[arg-type]


async def told(app: Bench, slug: str, at: str | None = None, **circumstances: object) -> str:
    return (await asked(app, slug, at, **circumstances)).sentence


# --- it ran ----------------------------------------------------------------------------------------------------------


@virtual
async def test_it_ran_and_succeeded(world: World) -> None:
    """When it started and how long it took."""
    app = await world.open(Bot(world, usual=5 * SECOND))
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    answer = await asked(app, "tick", "01-01 01:00:00")
    assert answer.sentence == ("The run of tick planned for 2026-01-01 01:00 (UTC) succeeded (started 01:00, took 5s).")
    facts = answer.facts
    assert (facts["cause"], facts["instant"], facts["run"]["outcome"]) == (
        "ran",
        "2026-01-01T01:00:00.000Z",
        "succeeded",
    )
    assert (facts["next"]["at"], facts["next"]["outcome"]) == ("2026-01-01T02:00:00.000Z", "succeeded")


@virtual
async def test_it_ran_as_far_as_can_be_proven(world: World) -> None:
    """Accepted is not finished, and is not called so."""
    app = await world.open(Bot(world, usual=Done("accepted")))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    assert (await told(app, "tick", "01-01 01:00:00")).endswith("proven as far as accepted.")


@virtual
async def test_it_ran_on_a_later_attempt(world: World) -> None:
    """How many it took."""
    bot = Bot(world)
    bot.script = [BROKEN]
    app = await world.open(bot)
    await app.add("tick", every("1h"), retry={"times": 1, "delay": "5m"})
    await world.until("01-01 01:30:00")
    assert await told(app, "tick", "01-01 01:00:00") == (
        "The run of tick planned for 2026-01-01 01:00 (UTC) succeeded on attempt 2 (started 01:00, took 5m)."
    )


@virtual
async def test_it_failed(world: World) -> None:
    """With the error, after how many attempts, and how far it got."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("1h"), retry={"times": 1, "delay": "5m"})
    await world.until("01-01 01:30:00")
    assert await told(app, "tick", "01-01 01:00:00") == (
        "The run of tick planned for 2026-01-01 01:00 (UTC) failed after 2 attempts (it got as far as started): "
        "RuntimeError: no route to host."
    )


@virtual
async def test_it_timed_out(world: World) -> None:
    """The end is proven, and so it is called a timeout."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", every("6h"), timeout="10m")
    await world.until("01-01 06:30:00")
    assert (await told(app, "tick", "01-01 06:00:00")).startswith(
        "The run of tick planned for 2026-01-01 06:00 (UTC) timed out after 10m"
    )


@virtual
async def test_it_is_unconfirmed(world: World) -> None:
    """It was accepted, and then there was no sign of life."""
    app = await world.open(Bot(world, usual=Unconfirmed("no sign of life within 5m")))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:30:00")
    assert (await told(app, "tick", "01-01 06:00:00")).endswith(
        "is unconfirmed (it got as far as started): no sign of life within 5m."
    )


@virtual
async def test_nobody_knows_how_it_ended(world: World) -> None:
    """Two crashes of the same run."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:00:30")
    for _ in range(2):
        await app.kill()
        app = await world.open(Bot(world, usual=HOUR))
        await world.sleep("30s")
    assert "ended with an unknown result on attempt 2" in await told(app, "tick", "01-01 06:00:00")


@virtual
async def test_it_ran_late_as_a_catch_up(world: World) -> None:
    """By how much, and why."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", cron("0 9 * * *"))
    await world.until("01-01 08:00:00")
    app = await world.reopen(app, bot, off="3h")
    await world.settle()
    assert (await told(app, "tick", "01-01 09:00:00")).endswith(
        "it was caught up 2h late because its planned time was missed."
    )


@virtual
async def test_a_manual_run(world: World) -> None:
    """A person asked for it; people name the minute."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 00:20:17")
    await app.run_now("tick")
    await world.settle()
    assert (await told(app, "tick", "01-01 00:20:00")).startswith(
        "The manual run of tick requested at 2026-01-01 00:20:17 (UTC) succeeded"
    )


# --- it is under way -------------------------------------------------------------------------------------------------


@virtual
async def test_it_is_running(world: World) -> None:
    """Since when, how far, until when it may."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:30:00")
    sentence = (
        "The run of tick planned for 2026-01-01 06:00 (UTC) has been running since 06:00, has got as far as started, "
        "and must finish by 08:00"
    )
    assert await told(app, "tick", "01-01 06:00:00") == f"{sentence}."
    assert await told(app, "tick") == f"{sentence}; it runs next at 12:00."


@virtual
async def test_it_is_stuck(world: World) -> None:
    """It could not be ended, and what it keeps because of that."""

    async def never_ends() -> None:
        while True:
            try:
                await world.clock.sleep(24 * HOUR)
            except BaseException:
                if world.now > instant("01-02 00:00:00"):
                    raise

    app = await world.open(Bot(world, usual=never_ends), limits={"ending_grace": SECOND})
    await app.add("tick", every("6h"), timeout="10m", lane="car")
    await world.until("01-01 06:30:00")
    answer = await asked(app, "tick")
    assert answer.facts["cause"] == "stuck"
    assert "is stuck: did not end within 600 s" in answer.sentence
    assert "blocks its schedule and the queue of lane car and takes up capacity" in answer.sentence
    await world.until("01-02 00:00:01")


@virtual
async def test_it_waits_for_a_retry(world: World) -> None:
    """When it is tried again, and what went wrong."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("6h"), retry={"times": 3, "delay": "30m"})
    await world.until("01-01 06:10:00")
    assert await told(app, "tick", "01-01 06:00:00") == (
        "The run of tick planned for 2026-01-01 06:00 (UTC) is waiting to be retried at 06:30, because attempt 1 "
        "failed: RuntimeError: no route to host."
    )


@virtual
async def test_it_waits_for_a_busy_target(world: World) -> None:
    """409 waits an hour."""
    app = await world.open(Bot(world, usual=Busy("Session busy")))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:10:00")
    assert (await told(app, "tick")).startswith(
        "The run of tick planned for 2026-01-01 06:00 (UTC) is waiting until 07:00, because its target is busy: "
        "Session busy; it runs next at 12:00"
    )


@virtual
async def test_it_waits_because_it_was_throttled(world: World) -> None:
    """Until when the target said."""
    until = instant("01-01 06:20:00")
    app = await world.open(Bot(world, usual=Throttled("429 slow down", until)))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:10:00")
    assert "is waiting until 06:20, because its target asked for a later retry: 429 slow down" in await told(
        app, "tick", "01-01 06:00:00"
    )


@virtual
async def test_it_waits_for_a_lane_that_another_run_holds(world: World) -> None:
    """Which run of which schedule."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("first", every("6h"), lane="car")
    await world.sleep(SECOND)
    await app.add("second", every("6h"), lane="car")
    await world.until("01-01 06:10:00")
    answer = await asked(app, "second")
    assert "is waiting in the queue of lane car, behind run 1 of first" in answer.sentence
    assert answer.facts["laneHolder"]["slug"] == "first"


@virtual
async def test_it_waits_in_the_queue(world: World) -> None:
    """Behind which run."""
    app = await world.open(Bot(world, usual=90 * MINUTE))
    await app.add("tick", every("1h"), overlap="queue")
    await world.until("01-01 02:10:00")
    assert "is waiting in the queue behind run 1" in await told(app, "tick", "01-01 02:00:00")


@virtual
async def test_it_waits_for_a_gate(world: World) -> None:
    """The gate's own words, and until when."""
    gate = Defer(instant("01-01 08:00:00"), "quota: the window is exhausted")
    app = await world.open(Bot(world), gates=[lambda tx, run, now: gate if now < gate.until else None])
    await app.add("tick", every("6h"))
    await world.until("01-01 06:10:00")
    assert "is waiting until 08:00, deferred by a gate: quota: the window is exhausted" in await told(app, "tick")


@virtual
async def test_it_waits_for_room(world: World) -> None:
    """One at a time on this node, and one is at it: first it is due and not rung, later it waits in the ledger."""
    limits = {"renew_every": 5 * SECOND, "lease": 30 * SECOND}
    app = await world.open(Bot(world, usual=HOUR), concurrency_max=1, limits=limits)
    await app.add("first", every("10m"))
    await world.sleep(SECOND)
    await app.add("second", every("10m"))
    await world.until("01-01 00:10:20")
    limit = "the concurrency limit is reached"
    assert f"is due and waits: {limit}" in await told(app, "second", "01-01 00:10:01")
    await world.until("01-01 00:12:00")
    assert f"is waiting to start: {limit}" in await told(app, "second")


@virtual
async def test_a_manual_run_waits_for_the_room_of_manual_runs(world: World) -> None:
    """One of two places is kept for schedules."""
    limits = {"renew_every": 5 * SECOND, "lease": 30 * SECOND}
    app = await world.open(Bot(world, usual=HOUR), concurrency_max=2, limits=limits)
    for slug in ("first", "second"):
        await app.add(slug, every("99h"))
        await app.run_now(slug)
    await world.until("01-01 00:01:00")
    kept = "the rest of the concurrency limit is reserved for scheduled runs"
    assert f"is waiting to start: {kept}" in await told(app, "second")


# --- it was skipped --------------------------------------------------------------------------------------------------


@virtual
async def test_skipped_because_an_earlier_run_was_still_open(world: World) -> None:
    """Which, and until when it was at it."""
    app = await world.open(Bot(world, usual=25 * MINUTE))
    await app.add("tick", every("10m"))
    await world.until("01-01 00:50:00")
    assert await told(app, "tick", "01-01 00:20:00") == (
        "tick at 2026-01-01 00:20 (UTC) was skipped, along with 1 other from 00:20 to 00:30, because run 1 was open "
        "until 00:35, and a schedule has one run at a time (overlap: skip)."
    )


@virtual
async def test_skipped_because_it_was_paused(world: World) -> None:
    """Decided when the pause ended; with how many others."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 00:30:00")
    await app.pause("tick")
    await world.until("01-01 04:30:00")
    await app.resume("tick")
    assert await told(app, "tick", "01-01 02:00:00") == (
        "tick at 2026-01-01 02:00 (UTC) was skipped, along with 3 others from 01:00 to 04:00, because the schedule "
        "was paused."
    )


@virtual
async def test_skipped_because_of_errors_before_it(world: World) -> None:
    """Backoff, with the error that caused it."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("1m"))
    await world.until("01-01 00:30:00")
    assert await told(app, "tick", "01-01 00:04:00") == (
        "tick at 2026-01-01 00:04 (UTC) was skipped, along with 3 others from 00:04 to 00:07, because earlier runs had "
        "failed, and the schedule was in backoff: RuntimeError: no route to host."
    )


@virtual
async def test_skipped_outside_active_hours(world: World) -> None:
    """Past and future say so alike."""
    app = await world.open(Bot(world))
    hours = {"start": "09:00", "end": "22:00", "timezone": "UTC"}
    await app.add("tick", every("1h"), active_hours=hours)
    await world.until("01-01 03:30:00")
    assert (await told(app, "tick", "01-01 02:00:00")).endswith("because it is outside the active hours.")
    assert await told(app, "tick", "01-01 23:00:00") == (
        "tick will be skipped at 2026-01-01 23:00 (UTC) because it is outside the active hours."
    )


@virtual
async def test_skipped_by_a_gate(world: World) -> None:
    """In the gate's words."""
    gate = Skip("minimum interval is 1h")
    app = await world.open(Bot(world), gates=[lambda tx, run, now: gate])
    await app.add("tick", every("10m"))
    await world.until("01-01 00:15:00")
    assert (await told(app, "tick", "01-01 00:10:00")).endswith("because a gate refused it: minimum interval is 1h.")


@virtual
async def test_skipped_because_the_timing_was_changed(world: World) -> None:
    """The clock was off, the owner edited the timing: what the old one left undecided is skipped(edited)."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await app.stop()
    await world.sleep("90m")
    app = await world.open(bot, tick=False)
    await app.update("tick", schedule={"type": "every", "every": "2h"})
    sentence = await told(app, "tick", "01-01 01:00:00")
    assert sentence == ("tick at 2026-01-01 01:00 (UTC) was skipped because its timing was changed before it started.")


@virtual
async def test_skipped_in_standby(world: World) -> None:
    """Schedules are switched off as a whole."""
    app = await world.open(Bot(world), standby=True)
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    assert "because schedules were switched off (standby)" in await told(app, "tick", "01-01 01:00:00")
    assert await told(app, "tick", "01-01 05:00:00", terms=app.parts.terms.value) == (
        "tick will not run at 2026-01-01 05:00 (UTC) because schedules are switched off (standby)."
    )


@virtual
async def test_skipped_because_a_later_one_was_due_in_the_same_moment(world: World) -> None:
    """A stall of half a minute: two instants at once, the newer runs."""
    app = await world.open(Bot(world))
    await app.add("tick", every("10s"))
    await world.until("01-01 00:01:05")
    app.store.is_down = True
    await world.sleep("25s")
    app.store.is_down = False
    await world.sleep("5s")
    assert "because a later time was due at the same moment, and that one ran" in await told(
        app, "tick", "01-01 00:01:10"
    )


# --- it was missed ---------------------------------------------------------------------------------------------------


@virtual
async def test_missed_because_nothing_ticked(world: World) -> None:
    """From when to when, how many, and what was caught up instead."""
    bot = Bot(world)
    app = await world.open(bot, limits={"renew_every": 20 * MINUTE})
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    app = await world.reopen(app, bot, off="4h")
    await world.settle()
    answer = await asked(app, "tick", "01-01 03:00:00")
    assert answer.sentence == (
        "tick at 2026-01-01 03:00 (UTC) was missed, along with 2 others from 02:00 to 04:00, because no process was "
        "ticking between 01:20 and 05:30."
    )
    assert answer.facts["outage"] == {"from": "2026-01-01T01:20:00.000Z", "until": "2026-01-01T05:30:00.000Z"}
    assert (await told(app, "tick", "01-01 04:00:00")).endswith("and 05:00 was caught up for all of them at 05:30.")


@virtual
async def test_missed_because_the_clock_jumped(world: World) -> None:
    """Or the machine slept: the wall went on and nothing could ring."""
    world.sleep_max = 5 * MINUTE
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 00:30:00")
    world.wall.step(5 * HOUR)
    await world.sleep("2m")
    sentence = await told(app, "tick", "01-01 02:00:00")
    assert "was missed, along with 3 others from 01:00 to 04:00" in sentence
    assert "because the clock jumped past it, or the machine was asleep" in sentence


# --- no planned time -------------------------------------------------------------------------------------------------


@virtual
async def test_not_an_instant_of_this_schedule(world: World) -> None:
    """The nearest before and after, and how they ended."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    assert await told(app, "tick", "01-01 01:17:00") == (
        "tick had no planned time at 2026-01-01 01:17 (UTC), because it runs every hour, aligned to "
        "2026-01-01T00:00:00.000Z; the previous one, 01:00, succeeded; the next was 02:00, which succeeded."
    )
    assert (await told(app, "tick", "01-01 05:17:00")).endswith("the previous one is 05:00; the next is 06:00.")


@virtual
async def test_a_run_that_was_under_way_at_that_moment_is_named(world: World) -> None:
    """No planned time, but not nothing either."""
    app = await world.open(Bot(world, usual=30 * MINUTE))
    await app.add("tick", every("1h"))
    await world.until("01-01 02:45:00")
    assert "run 1, planned for 01:00, was in progress at that time" in await told(app, "tick", "01-01 01:17:00")


@virtual
async def test_a_time_by_the_minute_means_the_instant_in_it(world: World) -> None:
    """An hourly grid that begins at 00:00:12.345."""
    app = await world.open(Bot(world))
    await world.sleep(12_345)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    assert (await told(app, "tick", "01-01 01:00:00")).startswith(
        "The run of tick planned for 2026-01-01 01:00:12.345 (UTC) succeeded"
    )


@virtual
async def test_a_manual_schedule_has_no_times_of_its_own(world: World) -> None:
    """It runs only when asked."""
    app = await world.open(Bot(world))
    await app.add("by-hand", Manual())
    await world.until("01-01 02:30:00")
    assert "because it runs only on request" in await told(app, "by-hand", "01-01 01:00:00")
    assert await told(app, "by-hand") == "by-hand has not run yet; nothing is planned: it runs only on request."


@virtual
async def test_a_schedule_after_a_reset_that_nobody_knows(world: World) -> None:
    """No due time until the slot reports one."""
    app = await world.open(Bot(world))
    await app.add("warm", AfterReset("main", MINUTE))
    assert (await told(app, "warm")).endswith("nothing is planned: no reset of quota slot 'main' is known yet.")


# --- beginnings and ends ---------------------------------------------------------------------------------------------


@virtual
async def test_before_it_existed(world: World) -> None:
    """When it was created."""
    app = await world.open(Bot(world))
    await world.until("01-01 05:00:00")
    await app.add("tick", every("1h"))
    assert await told(app, "tick", "01-01 03:00:00") == (
        "tick did not exist at 2026-01-01 03:00 (UTC): it was created at 05:00."
    )


@virtual
async def test_after_it_was_removed(world: World) -> None:
    """The past is still known, and since when there is no future."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    await app.remove("tick")
    await world.until("01-01 04:30:00")
    assert "succeeded" in await told(app, "tick", "01-01 02:00:00")
    assert await told(app, "tick", "01-01 03:00:00") == (
        "tick did not run at 2026-01-01 03:00 (UTC) because it had been removed at 02:30."
    )
    assert await told(app, "tick") == (
        "tick was removed at 02:30, so it no longer runs; its last run, 02:00, succeeded."
    )


@virtual
async def test_one_of_the_same_name_that_was_removed_answers_for_its_time(world: World) -> None:
    """A slug may live twice; the ledger of the first is kept."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    await app.remove("tick")
    await world.until("01-01 04:30:00")
    await app.add("tick", every("2h"))
    assert "succeeded" in await told(app, "tick", "01-01 02:00:00")
    assert (await told(app, "tick")).startswith("tick has not run yet")


@virtual
async def test_a_slug_that_never_was(world: World) -> None:
    """Is refused like everywhere."""
    app = await world.open(Bot(world))
    with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
        await told(app, "nobody")


@virtual
async def test_pruned_from_the_ledger(world: World) -> None:
    """It was decided, and is forgotten by now."""
    app = await world.open(Bot(world), ledger_days=2)
    await app.add("tick", every("6h"))
    await world.until("01-06 00:30:00")
    assert await told(app, "tick", "01-01 06:00:00", ledger_days=2) == (
        "The result of tick at 2026-01-01 06:00 (UTC) is no longer in the ledger, which keeps 2 days."
    )


@virtual
async def test_a_one_shot_that_failed_names_the_cause(world: World) -> None:
    """Not that nothing of it is left: what went wrong, after how many attempts, and how to try it again."""
    bot = Bot(world, usual=Failed("the disk is full"))
    app = await world.open(bot)
    await app.add("tick", once("2026-01-01T01:00:00Z"), retry={"times": 2, "delay": "1m"})
    await world.until("01-01 03:00:00")
    answer = await asked(app, "tick")
    assert answer.sentence == (
        "The run of tick planned for 2026-01-01 01:00 (UTC) failed after 3 attempts (it got as far as started): the "
        "disk is full; it has no planned times left, so it will not be retried; to run it now: wakeful run tick."
    )
    assert (answer.facts["state"], answer.facts["cause"]) == ("done", "ran")
    bot.usual = None
    await app.run_now("tick")
    await world.settle()
    assert "does not run because it finished at" in await told(app, "tick")


@virtual
async def test_a_run_queues_for_its_agent_behind_a_message(world: World) -> None:
    """In the words of the settings: which agent, and what it is busy with; no names of ours."""
    voice = Voice(world, HOUR)
    app = await beating(world, voice, HeartbeatTerms(enabled=False), said=[])
    await app.add("tick", every("6h"), prompt="How is it?")
    await world.until("01-01 05:59:59")
    await app.people.receive("phone", "ann", "hi")
    await world.sleep("10m")
    (message,) = await app.runs("message:phone:ann")
    sentence = await told(app, "tick")
    assert f"in the queue of agent default, behind run {message.run_id}, which answers a message on phone" in sentence
    assert "agent:" not in sentence


@virtual
async def test_it_is_done(world: World) -> None:
    """Its single instant is over."""
    app = await world.open(Bot(world))
    await app.add("tick", once("2026-01-01T01:00:00Z"))
    await world.until("01-01 03:00:00")
    assert await told(app, "tick") == (
        "tick does not run because it finished at 01:00: it has no planned times left; its last run, 01:00, succeeded."
    )


# --- halted ----------------------------------------------------------------------------------------------------------


@virtual
async def test_it_is_paused(world: World) -> None:
    """Since when and until when, for what went by, for now, and for what comes."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    await app.pause("tick", until="2026-01-01T05:30:00Z")
    await world.until("01-01 03:30:00")
    halt = "has been paused since 01:30 (resumes at 05:30)"
    assert await told(app, "tick", "01-01 02:00:00") == f"tick did not run at 2026-01-01 02:00 (UTC) because it {halt}."
    assert await told(app, "tick") == f"tick does not run because it {halt}; its last run, 01:00, succeeded."
    assert await told(app, "tick", "01-01 05:00:00") == (
        f"tick will not run at 2026-01-01 05:00 (UTC) because it {halt}, unless it is resumed before then."
    )
    assert await told(app, "tick", "01-01 06:00:00") == (
        "tick will run at 2026-01-01 06:00 (UTC), after its pause ends at 05:30."
    )


@virtual
async def test_it_was_disabled_by_its_errors(world: World) -> None:
    """With the count and the last error."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("1h"))
    await world.until("01-01 09:00:00")
    answer = await asked(app, "tick")
    assert answer.sentence.startswith(
        "tick does not run because it has been disabled since 05:00: 5 errors in a row, the last: RuntimeError"
    )
    assert (answer.facts["cause"], answer.facts["consecutiveErrors"]) == ("disabled", 5)
    assert "did not run at 2026-01-01 07:00 (UTC) because it has been disabled" in await told(
        app, "tick", "01-01 07:00:00"
    )


@virtual
async def test_it_was_disabled_by_a_person(world: World) -> None:
    """`enabled: false`."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await app.update("tick", enabled=False)
    assert (await told(app, "tick")).startswith(
        "tick does not run because it has been disabled since 00:00: by a person"
    )


@virtual
async def test_it_is_invalid(world: World) -> None:
    """A stored definition that can no longer be read, and what to do."""
    app = await world.open(Bot(world))
    await app.add("tick", cron("0 9 * * *", tz="Europe/Berlin"))
    world.tamper("UPDATE schedules SET definition = replace(definition, 'Europe/Berlin', 'Europe/Nowhere')")
    answer = await asked(app, "tick", "01-01 09:00:00")
    assert answer.facts["cause"] == "invalid"
    assert answer.sentence.startswith("tick cannot run because its definition cannot be read: ")
    assert "Europe/Nowhere" in answer.sentence


# --- to come ---------------------------------------------------------------------------------------------------------


@virtual
async def test_it_will_run(world: World) -> None:
    """A future instant, with what could still prevent it."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", cron("0 9 * * *", tz="Europe/Berlin"))
    assert await told(app, "tick", "2026-01-05T08:00:00Z") == "tick will run at 2026-01-05 09:00 (Europe/Berlin)."
    await world.until("01-01 08:30:00")
    assert (await told(app, "tick", "2026-01-02T08:00:00Z")).endswith("unless run 1 is still open: then it is skipped.")


@virtual
async def test_stagger_is_explained(world: World) -> None:
    """The planned time, and when it is due by its stagger; asking for the due time finds it too."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"), stagger="30m")
    await world.until("01-01 01:45:00")
    answer = await asked(app, "tick", "01-01 02:00:00")
    assert "with its stagger" in answer.sentence
    due = answer.facts["next"]["dueAt"]
    assert (await asked(app, "tick", due)).facts["instant"] == answer.facts["next"]["at"]
    assert ", due at 01:" in await told(app, "tick", "01-01 01:00:00")
    await world.until("01-01 02:00:01")
    assert "and has not started yet" in await told(app, "tick", "01-01 02:00:00")


@virtual
async def test_backoff_is_explained(world: World) -> None:
    """The next run is held off, and why."""
    app = await world.open(Bot(world, usual=BROKEN))
    await app.add("tick", every("1m"))
    await world.until("01-01 00:05:30")
    expected = "is delayed until 00:08 by backoff after 3 errors in a row, the last: RuntimeError: no route to host."
    assert await told(app, "tick", "01-01 00:05:00") == f"tick at 2026-01-01 00:05 (UTC) {expected}"
    assert await told(app, "tick", "01-01 00:07:00") == f"tick at 2026-01-01 00:07 (UTC) {expected}"
    now = await told(app, "tick")
    assert now.endswith("the next run is delayed until 00:08 by backoff after 3 errors in a row.")
    assert now.count("no route to host") == 1


@virtual
async def test_a_backlog_is_explained(world: World) -> None:
    """`catchUp: all` runs one by one: what is still to come of it says so."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("tick", every("1h"), catch_up="all")
    app = await world.reopen(app, bot, off="5h30m")
    await world.sleep("1m")
    assert await told(app, "tick", "01-01 03:00:00") == (
        "tick at 2026-01-01 03:00 (UTC) has yet to be caught up: missed times run one at a time, and run 1 is "
        "in progress."
    )


# --- nothing ticks ---------------------------------------------------------------------------------------------------


@virtual
async def test_that_nothing_ticks_is_said_first(world: World) -> None:
    """No live lease: whatever is planned, nothing will ring."""
    app = await world.open(Bot(world), limits={"renew_every": 20 * MINUTE})
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    await app.stop()
    await world.sleep("1h")
    app = await world.open(Bot(world), tick=False)
    first = "No process is ticking (last seen at 01:20), so nothing will run until one is started; "
    assert (
        await told(app, "tick", "01-01 02:00:00")
        == f"{first}tick at 2026-01-01 02:00 (UTC) is due and has not started."
    )
    assert await told(app, "tick", "01-01 09:00:00") == f"{first}tick will run at 2026-01-01 09:00 (UTC)."
    assert (await told(app, "tick")).startswith(first)
    settled = await asked(app, "tick", "01-01 01:00:00")
    assert settled.sentence.startswith("The run of tick")
    assert settled.facts["isTicking"] is False


@virtual
async def test_a_clock_that_was_never_held(world: World) -> None:
    """A schedule was added, and nobody was ever there to ring it (field note 53)."""
    app = await world.open(Bot(world), tick=False)
    await app.add("tick", every("1h"))
    assert await told(app, "tick") == (
        "No process is ticking (no process has ever ticked), so nothing will run until one is started; "
        "tick has not run yet; it runs next at 01:00."
    )


# --- daylight saving -------------------------------------------------------------------------------------------------


@virtual
async def test_a_time_that_does_not_exist_runs_right_after_the_gap(world: World) -> None:
    """02:30 in Berlin on the night the clock is put forward."""
    world.clock.set(instant("2027-03-27T12:00:00Z"))
    app = await world.open(Bot(world))
    await app.add("nightly", cron("30 2 * * *", tz="Europe/Berlin"))
    assert await told(app, "nightly", "2027-03-28T01:00:00Z") == (
        "nightly will run at 2027-03-28 03:00 (Europe/Berlin); 02:30 does not exist on 2027-03-28 in Europe/Berlin, so "
        "it is due right after the gap."
    )
    await world.sleep("14h")
    assert (await told(app, "nightly", "2027-03-28T01:00:00Z")) == (
        "The run of nightly planned for 2027-03-28 03:00 (Europe/Berlin) succeeded (started 03:00, took 0s); "
        "02:30 does not exist on 2027-03-28 in Europe/Berlin, so it is due right after the gap."
    )


@virtual
async def test_a_time_that_comes_twice_runs_the_first_time(world: World) -> None:
    """02:30 in Berlin on the night the clock is put back: asked about either."""
    world.clock.set(instant("2026-10-24T12:00:00Z"))
    app = await world.open(Bot(world))
    await app.add("nightly", times("02:30", tz="Europe/Berlin"))
    twice = "02:30 occurs twice on 2026-10-25 in Europe/Berlin"
    assert (await told(app, "nightly", "2026-10-25T00:30:00Z")).endswith(f"{twice}, and only the first one counts.")
    assert f"because {twice}, and only the first one counted" in await told(app, "nightly", "2026-10-25T01:30:00Z")


# --- long ledgers and odd ones ---------------------------------------------------------------------------------------


@virtual
async def test_an_instant_in_the_middle_of_a_long_ledger_is_found(world: World) -> None:
    """Hundreds of rows among those of another schedule, a pause with a manual run in it; every fifth is asked about."""
    app = await world.open(Bot(world))
    await app.add("other", every("7m"))
    await app.add("tick", every("10m"))
    await world.until("01-02 00:05:00")
    await app.pause("tick")
    await world.until("01-02 03:05:00")
    await app.run_now("tick")
    await world.settle()
    await app.resume("tick")
    await world.until("01-02 12:05:00")

    def ask(tx: Tx) -> list[Why]:
        return [why(tx, "tick", at=at, now=world.now) for at in moments]

    moments = range(instant("01-01 00:10:00"), instant("01-02 12:00:00"), 50 * MINUTE)
    for at, answer in zip(moments, await app.store.read(ask), strict=True):
        is_paused = instant("01-02 00:05:00") < at < instant("01-02 03:05:00")
        assert answer.facts["cause"] == ("skipped" if is_paused else "ran"), answer.sentence
        assert answer.facts["run"]["slug"] == "tick"


@virtual
async def test_a_ledger_in_which_the_clock_came_back(world: World) -> None:
    """Ids and instants are out of order then, and everything is found all the same."""
    world.sleep_max = 5 * MINUTE
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-03 00:30:00")
    world.wall.step(10 * 24 * HOUR)
    await world.sleep("5h")
    world.wall.step(-10 * 24 * HOUR)
    await world.sleep("5h")
    asked_about = ("01-02 00:00:00", "01-03 02:00:00", "01-03 08:00:00", "01-13 03:00:00")
    answers = [await asked(app, "tick", at) for at in asked_about]
    assert [answer.facts["cause"] for answer in answers] == ["ran", "missed", "ran", "ran"]


@virtual
async def test_an_instant_under_an_older_timing(world: World) -> None:
    """Asked about the past, the timing of then counts, not today's."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await world.until("01-01 05:30:00")
    await app.update("tick", schedule={"type": "every", "every": "40m"})
    await world.until("01-01 10:00:00")
    assert (await asked(app, "tick", "01-01 03:00:00")).facts["cause"] == "ran"
    answer = await asked(app, "tick", "01-01 03:10:00")
    assert answer.facts["cause"] == "notAnInstant"
    assert "because it runs every hour" in answer.sentence
    assert "the previous one, 03:00, succeeded; the next was 04:00, which succeeded" in answer.sentence


@virtual
async def test_reading_why_changes_nothing(world: World) -> None:
    """L1: asking about anything leaves every row as it was."""
    app = await world.open(Bot(world, usual=HOUR))
    await app.add("tick", every("6h"))
    await world.until("01-01 06:30:00")
    tables = ("schedules", "cadences", "alarms", "runs", "lanes", "nodes")
    before = {table: world.query(f"SELECT * FROM {table}") for table in tables}
    for at in (None, "01-01 06:00:00", "01-01 07:00:00", "01-01 18:00:00", "2020-01-01T00:00:00Z"):
        await asked(app, "tick", at)
    assert {table: world.query(f"SELECT * FROM {table}") for table in tables} == before
