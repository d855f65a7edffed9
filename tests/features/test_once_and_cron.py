"""`once`, `cron` and `times`: exact, in their zone, strictly ahead."""

import pytest

from features.kit import Bot, World, ledger, rfc, short, virtual
from wakeful import Invalid, cron, manual, once, times
from wakeful.core.time.instants import MINUTE


@virtual
async def test_once_runs_at_its_instant_and_never_again(world: World) -> None:
    """To the millisecond, and not at any later start."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once("2026-01-02T10:00:00.250Z"))
    await world.until("01-03 00:00:00")
    assert bot.began == ["01-02 10:00:00.250"]
    await world.reopen(app, bot, off="1d")
    await world.sleep("1d")
    assert len(bot.fires) == 1


@virtual
async def test_once_may_be_a_length_from_now(world: World) -> None:
    """`+5m` counts from when it is written, and is kept as the instant it became."""
    bot = Bot(world)
    app = await world.open(bot)
    soon = once("+5m")
    await world.sleep("1h")
    await app.add("soon", soon)
    assert short((await app.get("soon")).next_run) == "01-01 01:05:00"
    assert (await app.get("soon")).to_json()["schedule"] == {"type": "once", "at": rfc("01-01 01:05:00")}
    await world.sleep("6m")
    assert bot.began == ["01-01 01:05:00"]


@pytest.mark.parametrize("text", ["+", "+5", "+soon"])
def test_a_length_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is not a duration"):
        once(text)


@virtual
async def test_once_that_was_missed_is_caught_up_once(world: World) -> None:
    """OC#9655: down at its instant, it runs at the next start, and only then."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-02 10:00:00")))
    app = await world.reopen(app, bot, off="3d")
    app = await world.reopen(app, bot, off="1h")
    await world.sleep("1h")
    assert bot.planned == ["01-02 10:00:00"]
    assert [row.trigger for row in await app.runs("shot")] == ["catchUp"]
    assert (await app.get("shot")).status == "done"


@virtual
async def test_once_that_may_not_be_late_is_missed_and_done(world: World) -> None:
    """`catchUp: skip`: the row says missed, the schedule is over."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-02 10:00:00")), catch_up="skip")
    app = await world.reopen(app, bot, off="3d")
    await world.settle()
    assert bot.fires == []
    assert await ledger(app, "shot") == ["01-02 10:00:00 missed (outage)"]
    assert (await app.get("shot")).status == "done"


@virtual
async def test_once_in_the_past_is_refused(world: World) -> None:
    """It would never happen; the message says what now is."""
    app = await world.open(Bot(world))
    with pytest.raises(Invalid, match=r"schedule.at: is in the past .*give a later time"):
        await app.add("shot", once("2025-12-31T23:59:59Z"))
    with pytest.raises(LookupError):
        await app.get("shot")


@virtual
async def test_once_registered_again_after_it_ran_is_left_alone(world: World) -> None:
    """Registering at each start is harmless, also when the instant has gone by."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-02 10:00:00")))
    await world.until("01-03 00:00:00")
    await app.add("shot", once(rfc("01-02 10:00:00")))
    await world.sleep("1d")
    assert len(bot.fires) == 1
    assert (await app.get("shot")).status == "done"


@virtual
async def test_once_that_is_done_lives_again_with_a_later_time(world: World) -> None:
    """OC#127691: the edit plans in the same transaction."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-02 10:00:00")))
    await world.until("01-03 00:00:00")
    await app.add("shot", once(rfc("01-04 10:00:00")))
    assert short((await app.get("shot")).next_run) == "01-04 10:00:00"
    await world.until("01-05 00:00:00")
    assert bot.planned == ["01-02 10:00:00", "01-04 10:00:00"]


@virtual
async def test_once_that_went_by_while_halted_is_done_when_resumed(world: World) -> None:
    """Nothing of it is left, and its status says so."""
    app = await world.open(Bot(world))
    await app.add("shot", once(rfc("01-02 10:00:00")))
    await app.pause("shot")
    await world.until("01-03 00:00:00")
    await app.resume("shot")
    assert await ledger(app, "shot") == ["01-02 10:00:00 skipped (paused)"]
    assert (await app.get("shot")).status == "done"


@virtual
async def test_once_that_fell_on_a_manual_run_is_done_when_that_ends(world: World) -> None:
    """Its only instant was blocked; nothing is left."""
    app = await world.open(Bot(world, usual=20 * MINUTE))
    await app.add("shot", once(rfc("01-02 10:00:00")))
    await world.until("01-02 09:50:00")
    await app.run_now("shot")
    await world.until("01-02 11:00:00")
    assert [row.partition(" ")[2] for row in await ledger(app, "shot")] == [
        "09:50:00 succeeded",
        "10:00:00 skipped (blocked)",
    ]
    assert (await app.get("shot")).status == "done"


@virtual
async def test_cron_is_read_in_its_zone(world: World) -> None:
    """Nine in Shanghai is one in UTC, on weekdays only."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("standup", cron("0 9 * * 1-5", tz="Asia/Shanghai"))
    await world.until("01-06 12:00:00")
    assert bot.began == ["01-01 01:00:00", "01-02 01:00:00", "01-05 01:00:00", "01-06 01:00:00"]


@virtual
async def test_cron_with_six_fields_has_seconds(world: World) -> None:
    """The first of six fields is the second."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("exact", cron("30 0 9 * * *"))
    await app.add("often", cron("*/20 * * * * *"))
    await world.until("01-01 00:01:10")
    assert bot.began == ["01-01 00:00:20", "01-01 00:00:40", "01-01 00:01:00"]
    assert short((await app.get("exact")).next_run) == "01-01 09:00:30"


@virtual
async def test_a_zone_left_out_is_resolved_when_written_and_stays(world: World) -> None:
    """HA PR#88581: the default is stored by name, so another process with another default changes nothing."""
    app = await world.open(Bot(world), timezone="America/New_York")
    await app.add("daily", cron("0 9 * * *"))
    assert (await app.get("daily")).to_json()["schedule"]["timezone"] == "America/New_York"
    app = await world.reopen(app, Bot(world), timezone="Asia/Tokyo")
    assert short((await app.get("daily")).next_run) == "01-01 14:00:00"


@virtual
async def test_daylight_saving_runs_a_daily_job_once_each_day(world: World) -> None:
    """HA#66436: 02:30 in Berlin exists not on 29 March and twice on 25 October; the job runs once on each."""
    bot = Bot(world)
    app = await world.open(bot)
    world.clock.set(1_774_648_800_000)  # 2026-03-27T22:00Z
    await world.sleep("1m")
    await app.add("daily", cron("30 2 * * *", tz="Europe/Berlin"))
    await world.until("03-31 00:00:00")
    assert bot.began == ["03-28 01:30:00", "03-29 01:00:00", "03-30 00:30:00"]
    app = await world.reopen(app, bot, off="207d")
    await world.until("10-27 00:00:00")
    assert [began for began in bot.began if began >= "10-24"][-3:] == [
        "10-24 00:30:00",
        "10-25 00:30:00",
        "10-26 01:30:00",
    ]


@virtual
async def test_times_of_day_run_in_their_zone(world: World) -> None:
    """Two times in New York."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("twice", times("09:00", "18:30", tz="America/New_York"))
    await world.until("01-02 15:00:00")
    assert bot.began == ["01-01 14:00:00", "01-01 23:30:00", "01-02 14:00:00"]


@virtual
async def test_manual_runs_only_when_asked(world: World) -> None:
    """No due time, ever."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("asked", manual())
    await world.sleep("3d")
    assert bot.fires == []
    assert (await app.get("asked")).next_run is None
    assert (await app.run_now("asked", wait=True)).outcome == "succeeded"
    assert (await app.get("asked")).status == "idle"


@virtual
async def test_a_catch_up_of_cron_after_an_outage_is_the_newest_instant(world: World) -> None:
    """No storm; what was missed is counted."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("quarter", cron("*/15 * * * *"))
    app = await world.reopen(app, bot, off="100d1m")
    await world.settle()
    assert bot.planned == ["04-11 00:00:00"]
    assert await ledger(app, "quarter") == [
        "01-01 00:15:00 missed (outage) x9599",
        "04-11 00:00:00 succeeded",
    ]


@pytest.mark.promise
@virtual
async def test_times_are_shown_in_utc_and_the_zone_stands_beside(world: World) -> None:
    """49, HA#103904: instants carry Z, the schedule its zone."""
    app = await world.open(Bot(world))
    await app.add("daily", cron("0 9 * * *", tz="America/New_York"))
    shown = (await app.get("daily")).to_json()
    assert shown["nextRun"] == "2026-01-01T14:00:00.000Z"
    assert shown["schedule"] == {"type": "cron", "expression": "0 9 * * *", "timezone": "America/New_York"}
