"""Quota slots without network: nothing is disabled, nothing is polled less often, and the wake is sent in the end."""

import pytest

from features.kit import World, instant, short, virtual
from features.quota_kit import Account, Shop, config, open_quota
from wakeful.core.time.instants import MINUTE

# The world begins at 2026-01-01 00:00:00 UTC.


def at_minutes(instants: list[int]) -> list[str]:
    return [short(at)[6:11] for at in instants]


@pytest.mark.parametrize("how", ["no connection", "HTTP 500"])
@virtual
async def test_an_hour_without_the_provider_at_a_wake_time_costs_at_most_one_backoff_step(
    world: World, how: str
) -> None:
    """Reads and sends both fail from 00:55 to 02:00; the wake of 01:00 is sent within 15 minutes of the return."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00"]}}))
    await world.until("01-01 00:55:00")
    if how == "no connection":
        shop.is_unreachable = True
    else:
        account.mood = "down"
    await world.until("01-01 01:59:00")
    slot = await opened.slot()
    assert (slot["disabled"], slot["wakeDisabled"], slot["quotaErrors"], slot["wakeErrors"]) == (False, False, 0, 0)
    assert (slot["status"], slot["unsent"]) == ("waking", 7)
    assert slot["unreachableSince"] == "2026-01-01T01:00:00.300Z"
    assert slot["nextWake"][:16] == "2026-01-01T02:00"
    assert "resent automatically" in slot["cure"]
    await world.until("01-01 02:00:30")  # the network is back half a minute after the try of 02:00
    shop.is_unreachable, account.mood = False, "normal"
    await world.until("01-01 02:15:30")
    assert len(account.woken) == 1
    assert account.woken[0] - instant("01-01 02:00:30") <= 15 * MINUTE
    await world.until("01-01 02:20:00")
    slot = await opened.slot()
    assert (slot["warm"], slot["unsent"], slot["unreachableSince"], slot["lastError"]) == (True, 0, None, None)
    assert await opened.rows() == ["01-01 01:00:00 succeeded"]
    assert opened.app.alerted == []


@virtual
async def test_sends_are_repeated_with_a_growing_pause_by_one_run(world: World) -> None:
    """1, 2, 4, 8, 15, 15 minutes apart, all under one key."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.wake_mood = "down"
    await open_quota(world, shop, config(world, {"main": {"times": ["01:00"], "poll": "24h"}}))
    await world.until("01-01 01:50:00")
    assert at_minutes(account.tried) == ["01:00", "01:01", "01:03", "01:07", "01:15", "01:30", "01:45"]
    assert len(set(account.keys)) == 1


@virtual
async def test_a_restart_neither_loses_the_repeated_wake_nor_starts_its_pauses_again(world: World) -> None:
    """Killed in the middle: the next send is when it would have been."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.wake_mood = "down"
    given = config(world, {"main": {"times": ["01:00"], "poll": "24h"}})
    opened = await open_quota(world, shop, given)
    await world.until("01-01 01:10:00")
    await opened.app.kill()
    await world.until("01-01 01:12:00")
    opened = await open_quota(world, shop, given)
    await world.until("01-01 01:50:00")
    assert at_minutes(account.tried) == ["01:00", "01:01", "01:03", "01:07", "01:15", "01:30", "01:45"]
    account.wake_mood = None
    await world.until("01-01 02:01:00")
    assert at_minutes(account.woken) == ["02:00"]
    assert await opened.rows() == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_person_who_asks_for_the_wake_does_not_wait_for_the_next_try(world: World) -> None:
    """`wake` and `resume` send what waits at once."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.wake_mood = "down"
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00"], "poll": "24h"}}))
    await world.until("01-01 01:20:00")
    await opened.app.slots.resume("main")
    await world.sleep("1s")
    assert at_minutes(account.tried)[-1] == "01:20"
    account.wake_mood = None
    await opened.app.slots.wake("main")
    await world.sleep("10s")
    assert at_minutes(account.woken) == ["01:20"]
    assert await opened.rows() == ["01-01 01:00:00 succeeded"]


@virtual
async def test_times_of_day_during_the_outage_have_their_row(world: World) -> None:
    """Two more times pass while the wake of 01:00 is repeated: it serves them, on record."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    account.wake_mood = "down"
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "01:20", "01:40"]}}))
    await world.until("01-01 01:50:00")
    account.wake_mood = None
    await world.until("01-01 02:10:00")
    assert await opened.rows() == ["01-01 01:00:00 succeeded", "01-01 01:20:00 skipped (pending) x2"]


@virtual
async def test_a_quota_endpoint_that_fails_for_an_hour_is_read_at_its_regular_interval(world: World) -> None:
    """As before, during and after it."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("40h")
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}))
    await world.until("01-01 00:05:00")
    account.mood = "down"
    await world.until("01-01 01:05:00")
    assert at_minutes(account.reads) == ["00:00", "00:10", "00:20", "00:30", "00:40", "00:50", "01:00"]
    assert (await opened.slot())["unreachableSince"] == "2026-01-01T00:10:00.200Z"
    account.mood = "normal"
    await world.until("01-01 01:11:00")
    slot = await opened.slot()
    assert (slot["status"], slot["unreachableSince"]) == ("warm", None)


@virtual
async def test_a_quota_endpoint_that_fails_during_confirmation_does_not_disable_the_slot(world: World) -> None:
    """Eight minutes of nonsense after a wake: the forced retry is still tried, and the next poll is a regular one."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00"]}}, errors_max=5))
    await world.until("01-01 00:59:00")
    account.mood, account.wake_mood = "broken", "never"
    await world.until("01-01 01:08:30")
    slot = await opened.slot()
    assert (slot["disabled"], slot["quotaErrors"], slot["wakePending"]) == (False, 0, True)
    assert "not JSON" in slot["lastError"]
    account.mood = "never"
    await world.until("01-01 01:17:00")
    assert at_minutes(account.woken) == ["01:00", "01:15"]
    slot = await opened.slot()
    assert (slot["disabled"], slot["wakeDisabled"]) == (False, False)
    account.mood, account.wake_mood = "normal", None
    account.warm("4h")
    await world.until("01-01 01:46:00")
    assert (await opened.slot())["status"] == "warm"


@virtual
async def test_a_forced_retry_that_does_not_arrive_is_repeated_under_its_own_key(world: World) -> None:
    """It is not given up; a due wake in the meantime is suppressed, with one row."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "01:30"], "poll": "24h"}}))
    await world.until("01-01 00:59:00")
    account.mood = "never"
    await world.until("01-01 01:14:00")
    account.wake_mood = "down"
    await world.until("01-01 01:36:00")
    assert at_minutes(account.tried) == ["01:00", "01:15", "01:16", "01:18", "01:22", "01:30"]
    assert len(set(account.keys)) == 2
    account.mood, account.wake_mood = "normal", None
    await world.until("01-01 01:50:00")
    assert at_minutes(account.woken) == ["01:00", "01:45"]
    assert await opened.rows() == ["01-01 01:00:00 succeeded", "01-01 01:30:00 skipped (pending)"]


@virtual
async def test_one_instant_has_one_row_while_an_older_wake_is_unconfirmed(world: World) -> None:
    """The wake of 01:00 never showed; that of 02:00 is a run, and nothing else."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "02:00"]}}))
    await world.until("01-01 00:59:00")
    account.mood = "never"
    await world.until("01-01 02:30:00")
    assert await opened.rows() == ["01-01 01:00:00 unconfirmed", "01-01 02:00:00 unconfirmed"]


@virtual
async def test_a_manual_wake_that_does_not_arrive_is_told_at_once(world: World) -> None:
    """A person asked: it is not repeated behind their back."""
    shop = Shop(world)
    account: Account = shop.account("sk-main")
    account.warm("9h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h"}}))
    await world.sleep("1m")
    shop.is_unreachable = True
    run = await opened.app.wait_for((await opened.app.slots.wake("main")).run_id)
    assert (run.outcome, run.reason) == ("failed", "unreachable")
    assert "connection refused" in (run.error or "")
