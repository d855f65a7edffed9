"""Errors: the ladder only ever delays, five in a row disable, resume starts afresh."""

import pytest

from features.kit import Bot, World, ledger, rfc, short, virtual
from wakeful import cron, every, once
from wakeful.core.run.results import Busy, Failed, Throttled
from wakeful.core.time.instants import MINUTE, SECOND

BROKEN = RuntimeError("no route to host")


@virtual
async def test_the_run_after_an_error_is_at_the_later_of_regular_and_error_plus_delay(world: World) -> None:
    """Every minute and always failing: 30 s never shows, then 1, 5 and 15 minutes after each error, then the end."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("1m"))
    await world.until("01-01 02:00:00")
    assert bot.began == ["01-01 00:01:00", "01-01 00:02:00", "01-01 00:03:00", "01-01 00:08:00", "01-01 00:23:00"]
    assert await ledger(app, "tick") == [
        "01-01 00:01:00 failed",
        "01-01 00:02:00 failed",
        "01-01 00:03:00 failed",
        "01-01 00:04:00 skipped (backoff) x4",
        "01-01 00:08:00 failed",
        "01-01 00:09:00 skipped (backoff) x14",
        "01-01 00:23:00 failed",
    ]


@virtual
async def test_the_delay_counts_from_the_error_not_from_the_start(world: World) -> None:
    """A run that fails after 50 s is followed 30 s after its error, and its planned time is the latest grid instant."""
    bot = Bot(world)
    bot.script = [lambda: fail_after(world, 50 * SECOND)]
    app = await world.open(bot)
    await app.add("tick", every("1m"))
    await world.until("01-01 00:04:30")
    assert bot.began == ["01-01 00:01:00", "01-01 00:02:20", "01-01 00:03:00", "01-01 00:04:00"]
    assert bot.planned == ["01-01 00:01:00", "01-01 00:02:00", "01-01 00:03:00", "01-01 00:04:00"]


@virtual
async def test_the_ladder_never_advances_a_run(world: World) -> None:
    """After one error of an hourly schedule the next run is in an hour, not in 30 s."""
    bot = Bot(world)
    bot.script = [BROKEN]
    app = await world.open(bot)
    await app.add("tick", every("1h"))
    await world.until("01-01 02:30:00")
    assert bot.began == ["01-01 01:00:00", "01-01 02:00:00"]


@virtual
async def test_a_success_ends_the_row_of_errors(world: World) -> None:
    """Four errors, a success, four errors: never five in a row."""
    bot = Bot(world)
    bot.script = [BROKEN] * 4 + [None] + [BROKEN] * 4
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 08:30:00")
    assert (await app.get("tick")).consecutive_errors == 4
    await world.until("01-01 19:00:00")
    schedule = await app.get("tick")
    assert (schedule.status, schedule.consecutive_errors) == ("idle", 4)
    assert len(bot.fires) == 9


@virtual
async def test_five_errors_in_a_row_disable_with_reason_and_alert(world: World) -> None:
    """And a disabled schedule stays silent."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-02 12:30:00")
    schedule = await app.get("tick")
    assert len(bot.fires) == 5
    assert (schedule.status, schedule.enabled, schedule.next_run) == ("disabled", False, None)
    assert schedule.status_reason == "5 errors in a row, the last: RuntimeError: no route to host"
    assert [name.partition(":")[0] for name in world.reported()] == ["failing"]


@virtual
async def test_the_limit_of_errors_is_a_setting_of_the_schedule(world: World) -> None:
    """`maxConsecutiveErrors`: two end it, zero never does."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("two", every("2h"), max_consecutive_errors=2)
    await app.add("never", every("2h"), max_consecutive_errors=0)
    await world.until("01-02 00:30:00")
    assert (await app.get("two")).status == "disabled"
    assert (await app.get("never")).consecutive_errors == 12


@virtual
async def test_resume_begins_the_row_of_errors_anew(world: World) -> None:
    """An explicit resume is a signal to try again fresh; what fell into the halt is one row."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 15:00:00")
    assert (await app.get("tick")).status == "disabled"
    await app.resume("tick")
    schedule = await app.get("tick")
    assert (schedule.status, schedule.consecutive_errors, short(schedule.next_run)) == ("idle", 0, "01-01 16:00:00")
    assert (await ledger(app, "tick"))[-1] == "01-01 12:00:00 skipped (disabled) x2"
    bot.usual = None
    await world.until("01-01 16:30:00")
    assert (await ledger(app, "tick"))[-1] == "01-01 16:00:00 succeeded"


@virtual
async def test_backoff_survives_a_restart(world: World) -> None:
    """The delay is a stored fact, not a timer."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("1m"))
    await world.until("01-01 00:04:00")
    app = await world.reopen(app, bot, off="10s")
    await world.until("01-01 00:09:00")
    assert bot.began[3:] == ["01-01 00:08:00"]


@virtual
async def test_a_retry_is_the_same_instant_under_the_same_key(world: World) -> None:
    """OC#49740, L2: attempts of one run; the ladder counts the instant once, when it closes."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"), retry={"times": 2, "delay": "10m"})
    await world.until("01-01 09:15:00")
    schedule = await app.get("daily")
    assert (schedule.status, schedule.status_reason, short(schedule.next_run)) == ("waiting", "retry", "01-01 09:20:00")
    assert schedule.consecutive_errors == 0
    await world.until("01-01 12:00:00")
    assert bot.began == ["01-01 09:00:00", "01-01 09:10:00", "01-01 09:20:00"]
    assert len(set(bot.keys)) == 1
    assert [fire.attempt for fire in bot.fires] == [1, 2, 3]
    (run,) = await app.runs("daily")
    assert (run.outcome, run.attempt, [a.outcome for a in run.attempts]) == ("failed", 3, ["failed"] * 3)
    assert (await app.get("daily")).consecutive_errors == 1
    assert short((await app.get("daily")).next_run) == "01-02 09:00:00"


@virtual
async def test_a_retry_that_works_is_a_success(world: World) -> None:
    """OC#49740: a transient outage does not cost the day."""
    bot = Bot(world)
    bot.script = [BROKEN]
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"), retry={"times": 2, "delay": "10m"})
    await world.until("01-01 10:00:00")
    assert await ledger(app, "daily") == ["01-01 09:00:00 succeeded"]
    assert (await app.get("daily")).consecutive_errors == 0


@virtual
async def test_retries_without_a_number_go_on_until_the_next_regular_instant(world: World) -> None:
    """Only if the schedule asks for it."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("2h"), retry={"times": None, "delay": "30m"})
    await world.until("01-01 04:10:00")
    assert bot.began[:4] == ["01-01 02:00:00", "01-01 02:30:00", "01-01 03:00:00", "01-01 03:30:00"]
    assert bot.planned[:5] == ["01-01 02:00:00"] * 4 + ["01-01 04:00:00"]


@virtual
async def test_a_permanent_error_is_not_retried(world: World) -> None:
    """What cannot work the second time is not tried a second time."""
    bot = Bot(world, usual=Failed("the account is closed", permanent=True))
    app = await world.open(bot)
    await app.add("tick", every("1h"), retry={"times": 3, "delay": "1m"})
    await world.until("01-01 01:30:00")
    assert len(bot.fires) == 1


@virtual
async def test_a_busy_target_waits_an_hour_and_is_no_error(world: World) -> None:
    """OC#148874: a deferral is visible and counts nothing."""
    bot = Bot(world)
    bot.script = [Busy("Session busy"), Busy("Session busy")]
    app = await world.open(bot)
    await app.add("daily", cron("0 9 * * *"))
    await world.until("01-01 09:30:00")
    schedule = await app.get("daily")
    assert (schedule.status, schedule.status_reason, short(schedule.next_run)) == ("waiting", "busy", "01-01 10:00:00")
    await world.until("01-01 12:00:00")
    assert bot.began == ["01-01 09:00:00", "01-01 10:00:00", "01-01 11:00:00"]
    assert await ledger(app, "daily") == ["01-01 09:00:00 succeeded"]
    assert (await app.get("daily")).consecutive_errors == 0


@virtual
async def test_a_target_that_is_always_busy_is_given_up_after_a_day(world: World) -> None:
    """At most 24 waits, then an error that says why."""
    bot = Bot(world, usual=Busy("Session busy"))
    app = await world.open(bot)
    await app.add("weekly", cron("0 9 * * 4"))
    await world.until("01-03 00:00:00")
    assert len(bot.fires) == 25
    assert await ledger(app, "weekly") == ["01-01 09:00:00 failed (busy)"]


@virtual
async def test_a_throttled_target_is_asked_again_when_it_said(world: World) -> None:
    """429 with a time: that time."""
    bot = Bot(world)
    bot.script = [lambda: Throttled("429", until=world.now + 17 * MINUTE)]
    app = await world.open(bot)
    await app.add("tick", every("2h"))
    await world.until("01-01 03:00:00")
    assert bot.began == ["01-01 02:00:00", "01-01 02:17:00"]


@virtual
async def test_instants_that_fall_on_a_waiting_retry_are_blocked_by_it(world: World) -> None:
    """At most one open run: a retry that outlasts the interval is what the next instant falls on."""
    bot = Bot(world, usual=BROKEN)
    app = await world.open(bot)
    await app.add("tick", every("10m"), retry={"times": 1, "delay": "25m"})
    await world.until("01-01 00:34:00")
    rows = list(reversed(await app.runs("tick")))
    assert [row.outcome for row in rows] == ["waiting", "skipped"]
    assert (rows[1].reason, rows[1].blocked_by, rows[1].count) == ("blocked", rows[0].run_id, 2)


@pytest.mark.parametrize("bad", [BROKEN, None])
@virtual
async def test_once_is_over_after_its_run_however_it_ended(world: World, bad: Exception | None) -> None:
    """Disabled after success and after error, with the state preserved."""
    bot = Bot(world, usual=bad)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-01 10:00:00")))
    await world.until("01-05 00:00:00")
    schedule = await app.get("shot")
    assert (schedule.status, schedule.enabled, schedule.next_run) == ("done", False, None)
    assert schedule.last_result == ("success" if bad is None else "error")
    assert schedule.last_error == (None if bad is None else "RuntimeError: no route to host")
    assert short(schedule.last_run) == "01-01 10:00:00"
    app = await world.reopen(app, bot, off="1h")
    await world.sleep("1h")
    assert len(bot.fires) == 1
    assert (await app.get("shot")).last_error == schedule.last_error


@virtual
async def test_a_retried_once_is_over_only_when_the_run_closes(world: World) -> None:
    """Between its attempts it waits; afterwards it is done."""
    bot = Bot(world)
    bot.script = [BROKEN]
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-01 10:00:00")), retry={"times": 3, "delay": "1h"})
    await world.until("01-01 10:30:00")
    assert (await app.get("shot")).status == "waiting"
    await world.until("01-01 11:30:00")
    assert (await app.get("shot")).status == "done"
    assert await ledger(app, "shot") == ["01-01 10:00:00 succeeded"]


async def fail_after(world: World, duration: int) -> None:
    await world.clock.sleep(duration)
    raise BROKEN


@pytest.mark.promise
@virtual
async def test_a_session_that_a_person_keeps_busy_delays_its_own_run_and_nothing_else(world: World) -> None:
    """9, CC#87940: from eight to half past twelve somebody talks to the agent. Its run waits, visibly and without an
    error; the other schedules keep their times, and tomorrow it is nine o'clock again."""
    agent, other = Bot(world), Bot(world)
    agent.script = [Busy("Session busy")] * 4
    app = await world.open(other)
    await app.add("standup", cron("0 9 * * *"), call=agent)
    await app.add("other", every("30m"))
    await world.until("01-01 12:45:00")
    waiting = await app.get("standup")
    assert (waiting.status, waiting.status_reason, waiting.consecutive_errors) == ("waiting", "busy", 0)
    await world.until("01-02 10:00:00")
    assert other.began == other.planned
    assert len(other.fires) == 68
    assert await ledger(app, "standup") == ["01-01 09:00:00 succeeded", "01-02 09:00:00 succeeded"]
    first = (await app.runs("standup"))[-1]
    assert first.started_at is not None
    assert [(a.outcome, short(a.ended_at)) for a in first.attempts[:-1]] == [
        ("busy", f"01-01 {hour:02}:00:00") for hour in (9, 10, 11, 12)
    ]
