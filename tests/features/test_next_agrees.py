"""What happens next is the same wherever it is shown: `nextRun`, `nextWake`, `why` and the first entry of `/upcoming`.
It is not in the past, and not an instant that ran before the clock was set back."""

import pytest

from features.kit import AllTogether, Bench, Bot, World, as_ms, ledger, rfc, short, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import cron, every, once
from wakeful.core.time.instants import DAY, HOUR, MINUTE
from wakeful.features.schedules.why import why
from wakeful.stores.sqlite.store import SqliteStore


async def _first(app: Bench, name: str) -> str:
    """The first entry of `/upcoming` for a schedule or a slot."""
    ahead = await app.schedules.upcoming(world_end(app), limit=1000)
    return short(next((item.due_at for item in ahead.instants if item.slug == name), None))


def world_end(app: Bench) -> int:
    return app.clock.read().now + 7 * DAY


async def _sentence(app: Bench, slug: str) -> str:
    now = app.clock.read().now
    return (await app.store.read(lambda tx: why(tx, slug, at=None, now=now))).sentence


@virtual
async def test_the_next_wake_of_a_slot_is_one_that_will_be_sent(world: World) -> None:
    """A wake every hour, and a window that is open for three: those in between are not sent."""
    shop = Shop(world)
    shop.account("sk-main").warm("3h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h"}}))
    await world.until("01-01 00:01:00")
    slot = await opened.slot()
    upcoming = await _first(opened.app, "slot:main")
    assert slot["nextWake"][11:19] == upcoming[6:] == "03:00:00"


@virtual
async def test_a_second_wake_that_did_not_arrive_is_the_next_one(world: World) -> None:
    """The first had no effect, and the provider cannot be reached for the second: it is sent again, and says so."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}}))
    await world.until("01-01 00:10:00")
    account.wake_mood = "down"
    await world.until("01-01 00:16:30")
    slot = await opened.slot()
    upcoming = await _first(opened.app, "slot:main")
    assert slot["nextWake"][11:23] == upcoming[6:] == "00:18:00.600"
    told = await opened.app.why("slot:main")
    assert "it will be sent again at 2026-01-01T00:18:00" in told.sentence


@virtual
async def test_an_instant_that_ran_before_the_clock_was_set_back_is_not_next(world: World) -> None:
    """While its run is open, and afterwards."""
    world.sleep_max = MINUTE
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    await app.add("hourly", every("1h"))
    await world.until("01-01 03:05:00")
    world.clock.step(-HOUR)
    for at in ("01-01 02:08:00", "01-01 02:30:00"):
        await world.until(at)
        assert short((await app.get("hourly")).next_run) == await _first(app, "hourly") == "01-01 04:00:00"
        assert "04:00" in await _sentence(app, "hourly")
    await world.until("01-01 04:30:00")
    assert bot.planned == ["01-01 01:00:00", "01-01 02:00:00", "01-01 03:00:00", "01-01 04:00:00"]


@pytest.mark.parametrize("length", [MINUTE, 30 * MINUTE], ids=["ended before", "open meanwhile"])
@virtual
async def test_a_one_shot_that_ran_is_done_although_its_time_lies_ahead_again(world: World, length: int) -> None:
    """It is not idle, and has no next run; and it does not run again."""
    world.sleep_max = MINUTE
    bot = Bot(world, usual=length)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-01 03:00:00")))
    await world.until("01-01 03:05:00")
    world.clock.step(-HOUR)
    await world.until("01-01 02:50:00")
    view = await app.get("shot")
    assert (view.status, view.next_run, view.enabled, view.is_finished) == ("done", None, False, True)
    assert await _first(app, "shot") == "never"
    await world.until("01-01 04:00:00")
    assert await ledger(app, "shot") == ["01-01 03:00:00 succeeded"]
    assert (await app.get("shot")).status == "done"


@virtual
async def test_a_one_shot_that_was_only_missed_out_there_still_runs(world: World) -> None:
    """A clock that was ahead for a while takes nothing away."""
    world.sleep_max = MINUTE
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("shot", once(rfc("01-02 03:00:00")), catch_up="skip")
    world.clock.step(3 * DAY)
    await world.sleep("5m")
    assert (await app.get("shot")).status == "done"
    world.clock.step(-3 * DAY)
    await world.sleep("5m")
    assert short((await app.get("shot")).next_run) == "01-02 03:00:00"
    await world.until("01-02 04:00:00")
    assert bot.planned == ["01-02 03:00:00"]


@virtual
async def test_what_waits_or_is_held_back_agrees_too(world: World) -> None:
    """A retry, active hours, a pause with an end, a run parked behind a lane."""
    bot = Bot(world, RuntimeError("no"))
    app = await world.open(bot)
    await app.add("retried", every("1h"), retry={"times": 3, "delay": "20m"})
    hours = {"start": "09:00", "end": "10:00", "timezone": "UTC"}
    await app.add("office", every("10s"), call=Bot(world), active_hours=hours)
    await app.add("paused", every("1h"), call=Bot(world), stagger="30m")
    await app.add("holder", once(rfc("01-01 00:59:00")), call=Bot(world, usual=5 * HOUR), lane="x")
    await app.add("parked", cron("0 * * * *"), call=Bot(world), lane="x")
    await app.pause("paused", until=rfc("01-01 05:00:00"))
    await world.until("01-01 01:10:00")
    shown = {slug: short((await app.get(slug)).next_run) for slug in ("retried", "office", "paused", "parked")}
    assert shown == {slug: await _first(app, slug) for slug in shown}
    assert shown["retried"] == "01-01 01:20:00" and shown["office"] == "01-01 09:00:00"
    assert shown["paused"] > "01-01 05:00:00" and shown["parked"] == "01-01 02:00:00"
    assert all(as_ms(view.next_run) > world.now for view in await app.list() if view.next_run is not None)


@virtual
async def test_the_reference_of_why_is_now(world: World) -> None:
    """Five days later, a time has its date; and while nothing ticks, what comes next is not in the past."""
    app = await world.open(Bot(world))
    await app.add("off", every("1h"))
    await app.add("on", every("1h"))
    await world.until("01-01 08:30:00")
    await app.update("off", enabled=False)
    await world.until("01-06 09:10:00")
    assert "has been disabled since 2026-01-01 08:30: " in await _sentence(app, "off")
    await app.stop()
    await world.until("01-09 09:10:00")
    store = SqliteStore.open_inline(world.path, hook=AllTogether())
    said = await store.read(lambda tx: why(tx, "on", at=None, now=world.now))
    await store.close()
    assert said.sentence.startswith("No process is ticking (last seen at 2026-01-06 ")
    assert said.sentence.endswith(
        "2026-01-06 10:00 was due, and has not started; the next planned time after now is 10:00."
    )
