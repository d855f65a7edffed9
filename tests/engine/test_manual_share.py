"""Manual runs have most of the capacity, but not all of it: schedules keep a part."""

import pytest

from features.kit import Bot, World, virtual
from wakeful import every
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.engine.limits import manual_max


@pytest.mark.parametrize(("capacity", "manual"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (64, 48)])
def test_a_quarter_is_kept_and_at_least_one_place(capacity: int, manual: int) -> None:
    """A capacity of one cannot be divided."""
    assert manual_max(capacity) == manual


@virtual
async def test_scheduled_runs_start_on_time_however_many_manual_runs_wait(world: World) -> None:
    """Twelve manual runs of three minutes each, on four places: three run at a time, and the fourth stays free."""
    bot = Bot(world, usual=3 * MINUTE)
    app = await world.open(bot, concurrency_max=4)
    await app.add("planned", every("6m"), lane="own")
    for number in range(12):
        await app.add(f"asked-{number}", every("999h"))
        await app.run_now(f"asked-{number}")
    await world.until("01-01 00:17:50")
    planned = [began for fire, began in zip(bot.fires, bot.began, strict=True) if fire.slug == "planned"]
    assert planned == ["01-01 00:06:00", "01-01 00:12:00"]
    asked = [began for fire, began in zip(bot.fires, bot.began, strict=True) if fire.slug != "planned"]
    assert asked == [f"01-01 00:{3 * (n // 3):02}:00" for n in range(12)]  # the next as soon as one ends
    assert bot.running_max == 4


@virtual
async def test_scheduled_runs_may_use_all_of_it(world: World) -> None:
    """Only manual runs are limited; one that is asked for meanwhile comes next."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot, concurrency_max=4)
    for number in range(8):
        await app.add(f"planned-{number}", every("3h"))
    await app.add("asked", every("999h"))
    await world.until("01-01 03:05:00")
    assert bot.running == 4
    await app.run_now("asked")
    await world.until("01-01 03:15:00")
    assert [fire.slug for fire in bot.fires].index("asked") == 4


@virtual
async def test_lanes_pass_on_no_more_than_the_share(world: World) -> None:
    """A run in a lane that ends makes room for one of its kind only."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot, concurrency_max=2)
    await app.add("planned", every("8m"), lane="desk")
    for number in range(6):
        await app.add(f"asked-{number}", every("999h"), lane=f"lane-{number % 2}")
    await world.until("01-01 00:08:30")
    for number in range(6):
        await app.run_now(f"asked-{number}")
    await world.until("01-01 00:18:00")
    asked = [began for fire, began in zip(bot.fires, bot.began, strict=True) if fire.slug != "planned"]
    assert asked == [f"01-01 00:{8 + n:02}:30" for n in range(6)]


@virtual
async def test_a_manual_run_hands_its_part_of_the_share_to_the_next_one_in_its_lane(world: World) -> None:
    """It is free before the run that ended is settled. Otherwise a retry that is due would go first."""
    bot = Bot(world, usual=MINUTE)
    bot.script = [ValueError("no"), HOUR, 4 * MINUTE]
    app = await world.open(bot, concurrency_max=2)
    await app.add("retried", every("24h", anchor="2026-01-01T00:01:00Z"), retry={"times": 1, "delay": "2m"})
    await app.add("long", every("24h", anchor="2026-01-01T00:02:00Z"))
    for slug in ("first", "second"):
        await app.add(slug, every("999h"), lane="desk")
    await world.until("01-01 00:02:10")
    for slug in ("first", "second"):
        await app.run_now(slug)
    await world.until("01-01 00:09:00")
    assert [fire.slug for fire in bot.fires] == ["retried", "long", "first", "second", "retried"]
    assert bot.began[3:] == ["01-01 00:06:10", "01-01 00:07:10"]
