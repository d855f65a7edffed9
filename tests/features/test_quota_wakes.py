"""Waking slots: modes, pre-check, confirmation and errors, with the real engine on virtual time."""

import pytest

from features.kit import World, instant, short, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful.core.time.instants import HOUR, MINUTE

# The world begins at 2026-01-01 00:00:00 UTC.


@virtual
async def test_the_initial_wake_warms_a_cold_key_and_is_confirmed(world: World) -> None:
    """Read at once, woken at once, read again: one wake, one run, and nothing pending."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m"}}))
    await world.sleep("30s")
    account = shop.account("sk-main")
    assert len(account.woken) == 1
    assert len(account.reads) == 2  # the poll at the start, and the one that confirms
    slot = await opened.slot()
    assert (slot["warm"], slot["wakePending"], slot["wakeErrors"], slot["status"]) == (True, False, 0, "warm")
    assert slot["windowStart"] is not None
    (row,) = await opened.app.runs("slot:main")
    assert (row.outcome, row.rung, row.trigger, row.slug) == ("succeeded", "finished", "wake", "slot:main")


@virtual
async def test_a_warm_key_is_not_woken_at_the_start(world: World) -> None:
    """The pre-check decides; a restart while it is warm does not wake it either."""
    shop = Shop(world)
    shop.account("sk-main").warm("4h")
    given = config(world, {"main": {"interval": "60m"}})
    opened = await open_quota(world, shop, given)
    await world.sleep("1m")
    await opened.app.stop()
    await open_quota(world, shop, given)
    await world.sleep("1m")
    assert shop.account("sk-main").tried == []


@virtual
async def test_interval_mode_wakes_when_the_window_has_ended(world: World) -> None:
    """Due each hour, not needed while it is warm; the first due one after the reset wakes."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m", "poll": "24h"}}))
    await world.until("01-01 05:30:00")
    assert shop.account("sk-main").wakes == ["01-01 00:00:00.200", "01-01 05:00:00.400"]
    assert await opened.rows() == [
        "01-01 00:00:00.100 succeeded",
        "01-01 01:00:00.200 skipped (warm) x4",
        "01-01 05:00:00.200 succeeded",
    ]


@virtual
async def test_times_mode_wakes_at_each_time_of_day_once(world: World) -> None:
    """A window of half an hour is cold at each of them."""
    shop = Shop(world)
    shop.account("sk-main").window = 30 * MINUTE
    shop.account("sk-main").warm("10m")
    await open_quota(world, shop, config(world, {"main": {"times": ["09:00", "14:00"]}}))
    await world.until("01-03 00:00:00")
    minutes = [at[:11] for at in shop.account("sk-main").wakes]
    assert minutes == ["01-01 09:00", "01-01 14:00", "01-02 09:00", "01-02 14:00"]


@virtual
async def test_times_are_on_the_wall_clock_of_the_slots_zone(world: World) -> None:
    """Berlin is an hour ahead in winter."""
    shop = Shop(world)
    shop.account("sk-main").warm("10m")
    await open_quota(world, shop, config(world, {"main": {"times": ["09:00"], "timezone": "Europe/Berlin"}}))
    await world.until("01-01 23:00:00")
    assert [at[:11] for at in shop.account("sk-main").wakes] == ["01-01 08:00"]


@virtual
async def test_after_reset_mode_wakes_once_at_reset_plus_offset(world: World) -> None:
    """The field has vanished by then: the last known reset is what counts. And so on with each window."""
    shop = Shop(world)
    shop.account("sk-main").warm("2h")
    await open_quota(world, shop, config(world, {"main": {"afterReset": "1m"}}))
    await world.until("01-01 13:00:00")
    assert [at[:14] for at in shop.account("sk-main").wakes] == ["01-01 02:01:00", "01-01 07:02:00", "01-01 12:03:00"]


@virtual
async def test_after_reset_works_after_downtime_and_sleep(world: World) -> None:
    """The daemon was down at that minute; the next time, the machine slept."""
    world.sleep_max = MINUTE
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("2h")
    given = config(world, {"main": {"afterReset": "10m"}})
    opened = await open_quota(world, shop, given)
    await world.until("01-01 01:00:00")
    await opened.app.stop()
    await world.until("01-01 04:00:00")
    opened = await open_quota(world, shop, given)
    await world.sleep("5m")
    assert [at[:14] for at in account.wakes] == ["01-01 04:00:00"]
    world.wall.step(9 * HOUR)  # asleep: the monotonic clock stood still
    await world.sleep("2m")
    assert len(account.wakes) == 2
    await world.sleep("1h")
    assert len(account.wakes) == 2


@virtual
async def test_all_modes_together_send_one_wake_when_they_are_due_together(world: World) -> None:
    """And that one serves them all."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("59m")
    opened = await open_quota(
        world, shop, config(world, {"main": {"interval": "60m", "times": ["01:00"], "afterReset": "1m"}})
    )
    await world.until("01-01 01:30:00")
    assert len(account.tried) == 1
    assert await opened.rows() == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_missed_time_of_day_is_served_within_the_hour_and_missed_after_it(world: World) -> None:
    """Down from 08:50 to 09:40: served once. Down from 13:50 to 15:10: missed, on record."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.window = 20 * MINUTE
    account.warm("10m")
    given = config(world, {"main": {"times": ["09:00", "14:00"], "poll": "24h"}})
    opened = await open_quota(world, shop, given)
    await world.until("01-01 08:50:00")
    await opened.app.stop()
    await world.until("01-01 09:40:00")
    account.warm("1m")  # no initial wake: the pre-check finds it warm, and the time of day too late to be needed
    opened = await open_quota(world, shop, given)
    await world.sleep("5m")
    assert await opened.rows() == ["01-01 09:00:00 skipped (warm)"]
    await world.until("01-01 13:50:00")
    await opened.app.stop()
    await world.until("01-01 15:10:00")
    account.warm("1m")
    opened = await open_quota(world, shop, given)
    await world.sleep("5m")
    assert await opened.rows() == ["01-01 09:00:00 skipped (warm)", "01-01 14:00:00 missed (outage)"]


@virtual
async def test_an_unreadable_quota_wakes_anyway(world: World) -> None:
    """Fail open: a wake too many costs little, a cold window costs the morning."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood, account.wake_mood = "broken", "normal"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m"}}))
    await world.sleep("30s")
    assert len(account.woken) == 1
    slot = await opened.slot()
    assert (slot["wakePending"], slot["quotaErrors"] > 0) == (True, True)
    assert "not JSON" in slot["lastError"]


@pytest.mark.parametrize("when", ["start", "later"])
@virtual
async def test_a_refused_key_is_reported_and_not_woken(world: World, when: str) -> None:
    """401: a clear status on that slot, no wake, and the key is not in it."""
    shop = Shop(world)
    account = shop.account("sk-main")
    if when == "later":
        account.warm("30m")
    else:
        account.mood = "refused"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m", "poll": "24h"}}))
    await world.sleep("10m")
    account.mood = "refused"
    await world.until("01-01 02:30:00")
    assert account.tried == []
    slot = await opened.slot()
    said = str(slot)
    assert "the key was refused" in said
    assert "sk-main" not in said
    if when == "later":
        assert [row.partition(" failed")[1] for row in await opened.rows()] == [" failed", " failed"]


# --- confirmation --------------------------------------------------------------------------------------------------


@virtual
async def test_a_wake_that_never_shows_is_looked_for_every_minute_then_sent_once_more_then_ends_waking(
    world: World,
) -> None:
    """Fifteen minutes of polls, one forced retry under its own key, a new count: at ten, waking ends for this slot."""
    shop = Shop(world)
    account, other = shop.account("sk-main"), shop.account("sk-other")
    account.mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}, "other": {"interval": "4h"}}))
    await world.until("01-01 00:14:30")
    slot = await opened.slot()
    assert (slot["wakePending"], slot["wakeDisabled"], len(account.woken)) == (True, False, 1)
    assert 14 <= slot["wakeErrors"] <= 16
    assert 15 <= len(account.reads) <= 17
    await world.until("01-01 00:17:00")
    slot = await opened.slot()
    assert [at[:11] for at in account.wakes] == ["01-01 00:00", "01-01 00:15"]
    assert (slot["wakeDisabled"], slot["wakePending"], slot["wakeErrors"]) == (False, True, 1)
    assert account.keys[1] == f"{account.keys[0]}-forced"
    await world.until("01-01 04:50:00")
    slot = await opened.slot()
    assert (slot["wakeDisabled"], slot["wakePending"], slot["disabled"]) == (True, False, False)
    assert "had no effect" in slot["lastError"]
    count = len(account.woken)
    assert count == 4  # one more wake and its forced retry, after four hours
    await world.until("01-01 23:00:00")
    assert len(account.woken) == count
    assert len(account.reads) > 50  # polls go on
    assert len(other.woken) == 3
    assert await opened.rows() == ["01-01 00:00:00.100 unconfirmed", "01-01 04:15:00.400 unconfirmed"]


@virtual
async def test_a_confirmation_that_comes_late_is_taken(world: World) -> None:
    """The second wake showed: its run succeeded after all, and errors are forgotten."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}}, errors_max=100))
    await world.until("01-01 00:20:00")
    assert await opened.rows() == ["01-01 00:00:00.100 unconfirmed"]
    account.mood = "normal"
    account.warm("4h")
    await world.until("01-01 00:50:00")
    slot = await opened.slot()
    assert (slot["wakePending"], slot["wakeErrors"]) == (False, 0)
    assert await opened.rows() == ["01-01 00:00:00.100 succeeded"]


@virtual
async def test_a_forced_retry_that_nobody_can_look_for_is_closed_and_not_sent_again(world: World) -> None:
    """The quota cannot be read after it: its run is unconfirmed, and a third wake is not sent for it."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}}, errors_max=1000))
    await world.until("01-01 00:14:50")
    account.mood, account.wake_mood = "down", "never"
    await world.until("01-01 00:19:00")
    assert await opened.rows() == ["01-01 00:00:00.100 waiting (confirming)"]
    await world.until("01-01 00:30:00")
    assert await opened.rows() == ["01-01 00:00:00.100 unconfirmed"]
    assert len(account.tried) == 2


@virtual
async def test_a_stale_reset_does_not_confirm(world: World) -> None:
    """It is present, and did not advance beyond the snapshot."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("10m")
    opened = await open_quota(world, shop, config(world, {"main": {"afterReset": "1m"}}))
    await world.until("01-01 00:05:00")
    account.mood = "stale"
    await world.until("01-01 00:13:30")
    slot = await opened.slot()
    assert (slot["wakePending"], slot["wakeErrors"]) == (True, 3)
    assert "did not advance" in slot["lastError"]


@virtual
async def test_a_wake_that_comes_due_while_one_is_pending_is_suppressed(world: World) -> None:
    """Deduplication: recorded as skipped, and the mode is served."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "5m"}}, errors_max=1000))
    await world.until("01-01 00:14:00")
    assert len(account.woken) == 1
    assert await opened.rows() == ["01-01 00:00:00.100 waiting (confirming)", "01-01 00:05:00.200 skipped (pending) x2"]
    await world.until("01-01 00:40:00")
    assert [at[:11] for at in account.wakes][:3] == ["01-01 00:00", "01-01 00:15", "01-01 00:20"]  # then normal flow


@virtual
async def test_a_refused_send_is_tried_again_each_minute_and_serves_no_mode(world: World) -> None:
    """One run, many attempts; when it works, everything is served."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.wake_mood = "wrong"
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00"], "poll": "24h"}}))
    await world.until("01-01 01:03:30")
    assert [short(at)[:11] for at in account.tried] == ["01-01 01:00", "01-01 01:01", "01-01 01:02", "01-01 01:03"]
    slot = await opened.slot()
    assert (slot["wakeErrors"], slot["wakePending"], slot["nextWake"][:19]) == (4, False, "2026-01-01T01:04:00")
    account.wake_mood = None
    await world.until("01-01 01:10:00")
    assert [at[:11] for at in account.wakes] == ["01-01 01:04"]
    assert await opened.rows() == ["01-01 01:00:00 succeeded"]
    slot = await opened.slot()
    assert (slot["wakeErrors"], slot["nextWake"]) == (0, "2026-01-02T01:00:00.000Z")


@virtual
async def test_ten_refused_sends_switch_waking_off_and_resume_switches_it_on(world: World) -> None:
    """`resume` clears the counts and reads at once; the wake that is still owed is sent."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.wake_mood = "wrong"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m"}}))
    await world.until("01-01 00:30:00")
    slot = await opened.slot()
    assert (len(account.tried), slot["wakeDisabled"], slot["wakeErrors"]) == (10, True, 10)
    assert world.reported() == ["slot:main"]
    ((text,),) = world.query("SELECT text FROM incidents")
    assert "HTTP 400: no such plan" in text
    assert "wakeful slots resume main" in text
    account.wake_mood = None
    await opened.app.slots.resume("main")
    await world.sleep("1m")
    slot = await opened.slot()
    assert (slot["wakeDisabled"], slot["wakeErrors"], slot["warm"]) == (False, 0, True)


@virtual
async def test_a_start_clears_what_was_disabled(world: World) -> None:
    """As resume does."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.wake_mood = "wrong"
    given = config(world, {"main": {"interval": "60m"}})
    opened = await open_quota(world, shop, given)
    await world.until("01-01 00:30:00")
    account.wake_mood = None
    await opened.app.stop()
    opened = await open_quota(world, shop, given)
    await world.sleep("1m")
    slot = await opened.slot()
    assert (slot["warm"], slot["wakeDisabled"], slot["wakeErrors"]) == (True, False, 0)


@virtual
async def test_a_manual_wake_is_sent_even_to_a_warm_key(world: World) -> None:
    """A person asked; the cadence of the modes starts anew with it, as with any wake."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("4h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "60m"}}))
    await world.sleep("1m")
    run_id = (await opened.app.slots.wake("main")).run_id
    run = await opened.app.wait_for(run_id)
    assert (run.outcome, run.trigger, len(account.woken)) == ("succeeded", "manual", 1)


@virtual
async def test_slots_that_are_due_together_are_sent_together_and_a_shared_key_once(world: World) -> None:
    """Batching: three slots, two keys, two requests at the same time."""
    shop = Shop(world)
    for key in ("sk-a", "sk-b"):
        shop.account(key).warm("10m")
    slots = {
        "one": {"times": ["01:00"], "apiKey": "sk-a", "poll": "24h"},
        "two": {"times": ["01:00"], "apiKey": "sk-a", "poll": "24h"},
        "three": {"times": ["01:00"], "apiKey": "sk-b", "poll": "24h"},
    }
    opened = await open_quota(world, shop, config(world, slots))
    await world.until("01-01 00:30:00")
    shop.under_way_max = 0
    await world.until("01-01 01:05:00")
    assert (len(shop.account("sk-a").woken), len(shop.account("sk-b").woken)) == (1, 1)
    assert shop.under_way_max == 2
    for name in slots:
        assert (await opened.slot(name))["warm"]
        assert await opened.rows(name) == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_key_that_is_used_by_its_owner_is_left_alone(world: World) -> None:
    """Whoever works keeps it warm: hourly wakes are not needed, and cost no request."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("4h")
    await open_quota(world, shop, config(world, {"main": {"interval": "15m", "poll": "24h"}}))
    await world.until("01-01 03:59:00")
    assert (account.tried, len(account.reads)) == ([], 1)


@virtual
async def test_a_clock_that_comes_back_causes_one_wake_at_most_and_no_silence(world: World) -> None:
    """Two days ahead by mistake: afterwards the modes go on from now."""
    world.sleep_max = MINUTE
    shop = Shop(world)
    account = shop.account("sk-main")
    account.window = 30 * MINUTE
    await open_quota(world, shop, config(world, {"main": {"interval": "60m", "poll": "24h"}}))
    await world.until("01-01 03:10:00")
    shop.go_by_true_time()
    world.wall.step(48 * HOUR)
    await world.sleep("5m")
    world.wall.step(-48 * HOUR)
    await world.sleep("5m")
    before = len(account.woken)
    await world.sleep("3h")
    assert 2 <= len(account.woken) - before <= 4
    assert world.now < instant("01-02 00:00:00")


@virtual
async def test_restarts_more_frequent_than_the_interval_do_not_postpone_it(world: World) -> None:
    """Field notes 18: an interval that begins anew with each start never comes due; this one is on record."""
    shop = Shop(world)
    shop.account("sk-main").warm("9h")  # whatever is due is not needed, and says so
    given = config(world, {"main": {"interval": "60m"}})
    opened = await open_quota(world, shop, given)
    for _ in range(6):
        await world.sleep("25m")
        await opened.app.stop()
        opened = await open_quota(world, shop, given)
    await world.sleep("1m")
    assert await opened.rows() == ["01-01 01:00:00 skipped (warm) x2"]


@virtual
async def test_a_suspended_laptop_wakes_its_slot_once_when_it_is_back(world: World) -> None:
    """Field notes 19: the wall moved on and the monotonic clock did not; sleep is downtime, with the same rules."""
    world.sleep_max = MINUTE
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("1h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "2h", "times": ["03:00"]}}))
    await world.sleep("30m")
    world.wall.step(8 * HOUR)
    await world.sleep("2m")
    assert len(account.woken) == 1
    assert [row.partition(" ")[2].partition(" ")[2] for row in await opened.rows()] == ["missed (clock)", "succeeded"]
