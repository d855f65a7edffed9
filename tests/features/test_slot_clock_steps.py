"""Slots and a clock that goes back: a time of day that was served is not served again, and none is forgotten."""

from features.kit import World, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful.core.time.instants import DAY, MINUTE


@virtual
async def test_a_time_of_day_is_served_once_although_the_clock_goes_back_over_it(world: World) -> None:
    """By 20 minutes, ten minutes after it: the window is over by then, and it is not woken again."""
    world.sleep_max = MINUTE
    shop = Shop(world)
    account = shop.account("sk-main")
    account.window = 2 * MINUTE
    account.warm("10m")
    shop.go_by_true_time()
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["09:00", "14:00"]}}))
    await world.until("01-01 09:10:00")
    assert await opened.rows() == ["01-01 09:00:00 succeeded"]
    world.wall.step(-20 * MINUTE)
    await world.until("01-01 14:05:00")
    assert len(account.woken) == 2
    assert await opened.rows() == ["01-01 09:00:00 succeeded", "01-01 14:00:00 succeeded"]


@virtual
async def test_times_that_were_missed_on_a_clock_that_was_ahead_are_served(world: World) -> None:
    """Two days ahead for ten minutes: their rows are voided, and each time of day is served when it comes."""
    world.sleep_max = MINUTE
    shop = Shop(world)
    account = shop.account("sk-main")
    account.window = 2 * MINUTE
    account.warm("10m")
    shop.go_by_true_time()
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["09:00"]}}))
    await world.until("01-01 04:00:00")
    world.wall.step(2 * DAY)
    await world.sleep("10m")
    world.wall.step(-2 * DAY)
    await world.until("01-03 10:00:00")
    assert await opened.rows() == [f"01-0{day} 09:00:00 succeeded" for day in (1, 2, 3)]
