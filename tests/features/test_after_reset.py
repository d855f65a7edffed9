"""Schedules and quota slots: the afterReset kind, and runs that wait for a window that is used up."""

import pytest

from features.kit import Bot, World, instant, ledger, short, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import Invalid, after_reset, every, once
from wakeful.app.action_forms import ON_DUE
from wakeful.core.run.results import Throttled


@virtual
async def test_it_has_no_time_until_the_slot_reports_a_reset(world: World) -> None:
    """Then it is the reset plus the offset, and each reset fires once."""
    shop = Shop(world)
    account = shop.account("sk-main")
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}), on_due=bot)
    await opened.app.add("digest", after_reset("main", "5m"))
    await world.sleep("30m")
    assert (await opened.app.get("digest")).next_run is None
    assert "no reset of quota slot 'main' is known yet" in (await opened.app.why("digest")).sentence
    account.warm("2h")  # its owner began to work at 00:30
    await world.sleep("45m")
    assert short((await opened.app.get("digest")).next_run) == "01-01 02:35:00"
    assert [short(at) for at in await opened.app.next_times("digest")] == ["01-01 02:35:00"]
    await world.until("01-01 06:00:00")
    assert bot.planned == ["01-01 02:35:00"]
    account.warm("3h")
    await world.until("01-01 12:00:00")
    assert bot.planned == ["01-01 02:35:00", "01-01 09:05:00"]
    assert (await opened.app.get("digest")).status == "idle"


@virtual
async def test_a_schedule_written_later_knows_the_reset_at_once(world: World) -> None:
    """The newest reset of every slot is kept; one that has passed is not owed."""
    shop = Shop(world)
    shop.account("sk-main").warm("2h")
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {}}), on_due=bot)
    await world.sleep("10m")
    await opened.app.add("digest", after_reset("main", "5m"))
    assert short((await opened.app.get("digest")).next_run) == "01-01 02:05:00"
    await world.until("01-01 03:00:00")
    await opened.app.add("late", after_reset("main", "5m"))
    assert (await opened.app.get("late")).next_run is None
    await world.sleep("3h")
    assert bot.planned == ["01-01 02:05:00"]


@pytest.mark.parametrize(
    ("catch_up", "expected"), [("once", ["01-01 02:05:00 succeeded"]), ("skip", ["01-01 02:05:00 missed (outage)"])]
)
@virtual
async def test_a_reset_during_downtime_is_caught_up_by_its_policy(
    world: World, catch_up: str, expected: list[str]
) -> None:
    """Once, also when a newer reset is reported before the old one rang; restarts change nothing."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("2h")
    bot = Bot(world)
    given = config(world, {"main": {"poll": "10m"}})
    opened = await open_quota(world, shop, given, on_due=bot)
    await opened.app.add("digest", after_reset("main", "5m"), catch_up=catch_up)
    await world.sleep("10m")
    await opened.app.stop()
    await world.until("01-01 08:00:00")
    account.warm("4h")
    opened = await open_quota(world, shop, given, on_due=bot)
    await world.sleep("1m")
    assert await ledger(opened.app, "digest") == expected
    assert short((await opened.app.get("digest")).next_run) == "01-01 12:05:00"
    await opened.app.stop()
    opened = await open_quota(world, shop, given, on_due=bot)
    await world.until("01-01 13:00:00")
    assert await ledger(opened.app, "digest") == [*expected, "01-01 12:05:00 succeeded"]


@virtual
async def test_a_reset_that_falls_into_a_pause_is_skipped_and_the_next_one_counts(world: World) -> None:
    """Pause is not an outage."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("1h")
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}), on_due=bot)
    await opened.app.add("digest", after_reset("main", "5m"))
    await world.sleep("10m")
    await opened.app.pause("digest")
    await world.until("01-01 02:00:00")
    account.warm("2h")
    await world.sleep("45m")
    await opened.app.resume("digest")
    assert short((await opened.app.get("digest")).next_run) == "01-01 04:05:00"
    await world.until("01-01 05:00:00")
    assert await ledger(opened.app, "digest") == ["01-01 01:05:00 skipped (paused)", "01-01 04:05:00 succeeded"]


@virtual
async def test_an_edited_offset_moves_what_is_planned(world: World) -> None:
    """Of the same reset."""
    shop = Shop(world)
    shop.account("sk-main").warm("2h")
    opened = await open_quota(world, shop, config(world, {"main": {}}), on_due=Bot(world))
    await opened.app.add("digest", after_reset("main", "5m"))
    await world.sleep("10m")
    await opened.app.add("digest", after_reset("main", "30m"))
    assert short((await opened.app.get("digest")).next_run) == "01-01 02:30:00"
    await opened.app.add("digest", every("1h"))
    assert short((await opened.app.get("digest")).next_run) == "01-01 01:10:00"


@virtual
async def test_a_reset_that_differs_by_seconds_fires_once(world: World) -> None:
    """A provider whose answers jitter tells of one window."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.mood = "stale"
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "1m"}}), on_due=bot)
    await opened.app.add("digest", after_reset("main", "1m"))
    for _ in range(50):
        await world.sleep("1m")
        account.reset_at = (account.reset_at or 0) + 700
    assert bot.planned == ["01-01 00:31:00"]


# --- slot on a schedule ----------------------------------------------------------------------------------------------


@virtual
async def test_a_run_that_falls_into_an_exhausted_window_waits_for_the_reset(world: World) -> None:
    """Reason quota, never lost, never run twice; `why` names the cause."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("3h")
    account.percentage = 100
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}), on_due=bot)
    await opened.app.add("job", every("1h"), slot="main")
    await opened.app.add("other", every("1h"))
    await world.until("01-01 01:30:00")
    view = await opened.app.get("job")
    assert (view.status, view.status_reason) == ("waiting", "quota")
    sentence = (await opened.app.why("job")).sentence
    assert "is waiting for quota until 03:00, because the quota of slot 'main' is used up until its reset" in sentence
    await world.until("01-01 03:30:00")
    assert bot.began == ["01-01 01:00:00", "01-01 02:00:00", "01-01 03:00:00", "01-01 03:00:00"]
    assert await ledger(opened.app, "job") == [
        "01-01 01:00:00 succeeded",
        "01-01 02:00:00 skipped (blocked) x2",
    ]


@virtual
async def test_waiting_for_quota_survives_a_restart(world: World) -> None:
    """Down across the reset: it runs once, when the daemon is back."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("2h")
    account.percentage = 100
    bot = Bot(world)
    given = config(world, {"main": {}})
    opened = await open_quota(world, shop, given, on_due=bot)
    await opened.app.add("job", once("2026-01-01T01:00:00Z"), slot="main")
    await world.until("01-01 01:30:00")
    await opened.app.kill()
    await world.until("01-01 04:00:00")
    account.percentage = 0
    opened = await open_quota(world, shop, given, on_due=bot)
    await world.sleep("1m")
    assert await ledger(opened.app, "job") == ["01-01 01:00:00 succeeded"]
    assert len(bot.fires) == 1


@virtual
async def test_a_manual_run_reports_an_exhausted_quota_at_once(world: World) -> None:
    """Nothing waits; the cadence stays as it is."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("2h")
    account.percentage = 100
    opened = await open_quota(world, shop, config(world, {"main": {}}), on_due=Bot(world))
    await opened.app.add("job", every("10h"), slot="main")
    await world.sleep("1m")
    run = await opened.app.run_now("job", wait=True)
    assert (run.outcome, run.reason) == ("skipped", "quota")


@pytest.mark.parametrize(("percentage", "is_cold"), [(99.9, False), (100, True), (0, False)])
@virtual
async def test_a_window_that_is_not_exhausted_holds_nobody_back(world: World, percentage: float, is_cold: bool) -> None:
    """Nor does a slot that is unknown, cold, or cannot be read."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.percentage = percentage
    if not is_cold:
        account.warm("3h")
    bot = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {}, "gone": {}}), on_due=bot)
    await opened.app.add("job", every("1h"), slot="main")
    await opened.app.add("nowhere", every("1h"), slot="gone")
    await opened.quota.change(config(world, {"main": {}}))
    await world.until("01-01 01:01:00")
    assert bot.began == ["01-01 01:00:00", "01-01 01:00:00"]


@virtual
async def test_a_slot_that_is_not_there_is_refused_with_the_names_there_are(world: World) -> None:
    """When a schedule is written or changed, by `slot` and by `afterReset`; slots made over REST count as well."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {"main": {}}), on_due=Bot(world))
    app = opened.app
    with pytest.raises(Invalid, match=r"slot: there is no slot 'mian'; write one of main, or add it under \[slots\]"):
        await app.add("job", every("1h"), slot="mian")
    with pytest.raises(Invalid, match=r"schedule\.slot: there is no slot 'mian'"):
        await app.schedules.put("job", {"schedule": {"type": "afterReset", "slot": "mian"}, "call": {"target": ON_DUE}})
    await app.add("job", every("1h"), slot="main")
    with pytest.raises(Invalid, match="there is no slot 'other'"):
        await app.update("job", slot="other")
    await opened.app.slots.put("other", {"provider": "glm", "apiKey": "sk-other"})
    await app.update("job", slot="other")
    assert (await app.get("job")).version == 2


@virtual
async def test_registering_again_what_names_a_slot_that_is_gone_is_harmless(world: World) -> None:
    """A program that writes the same at each start must start; only a change of it is refused."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {"main": {}, "gone": {}}), on_due=Bot(world))
    await opened.app.add("job", every("1h"), slot="gone")
    await opened.quota.change(config(world, {"main": {}}))
    await opened.app.add("job", every("1h"), slot="gone")
    with pytest.raises(Invalid, match="there is no slot 'gone'; write one of main"):
        await opened.app.update("job", timeout="5m")


@virtual
async def test_a_limit_that_an_agent_reports_reaches_its_slot(world: World) -> None:
    """The other schedules of the slot wait for the reset too, without asking the agent."""
    shop = Shop(world)
    agent = Bot(world)
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "12h"}}), on_due=agent)
    agent.script = [Throttled("used up", instant("01-01 03:00:00"), reason="quota")]
    await opened.app.add("first", once("2026-01-01T01:00:00Z"), slot="main")
    await opened.app.add("second", once("2026-01-01T01:10:00Z"), slot="main")
    await world.until("01-01 01:15:00")
    assert len(agent.fires) == 1
    waiting = (await opened.app.runs("second"))[0]
    assert (waiting.outcome, waiting.reason, short(waiting.next_attempt_at)) == ("waiting", "quota", "01-01 03:00:00")
    await world.until("01-01 03:05:00")
    assert len(agent.fires) == 3
