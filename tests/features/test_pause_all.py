"""`pause --all` and `resume --all`: everything stops at once, and only that comes back."""

from features.kit import Bot, World, ledger, virtual
from wakeful import cron, every
from wakeful.core.run.results import Failed


@virtual
async def test_resume_brings_back_only_what_was_paused_together(world: World) -> None:
    """What was paused or disabled by itself, before or since, stays so."""
    bot = Bot(world)
    app = await world.open(bot)
    for slug in ("a", "b", "before", "off", "since"):
        await app.add(slug, every("1h"))
    await app.pause("before")
    await app.update("off", enabled=False)
    assert (await app.schedules.pause_all()).slugs == ["a", "b", "since"]
    assert (await app.schedules.pause_all()).slugs == []
    await app.pause("since")
    await world.sleep("3h")
    assert bot.fires == []
    assert (await app.schedules.resume_all()).slugs == ["a", "b"]
    await world.sleep("1h")
    assert [(await app.get(slug)).status for slug in ("a", "b", "before", "off", "since")] == [
        "idle",
        "idle",
        "paused",
        "disabled",
        "paused",
    ]
    assert await ledger(app, "a") == ["01-01 01:00:00 skipped (paused) x3", "01-01 04:00:00 succeeded"]
    assert (await app.schedules.resume_all()).slugs == []


@virtual
async def test_it_is_one_commit_and_gives_up_what_waits(world: World) -> None:
    """A retry that waits is given up, as with a single pause; what runs finishes."""
    bot = Bot(world, usual=Failed("no"))
    app = await world.open(bot)
    await app.add("waits", cron("0 1 * * *", tz="UTC"), retry={"times": 5, "delay": "30m"})
    for number in range(30):
        await app.add(f"s{number:02}", every("2h"))
    await world.until("01-01 01:10:00")
    writes = app.store.writes
    assert len((await app.schedules.pause_all(until="2026-01-02T00:00:00Z")).slugs) == 31
    assert app.store.writes == writes + 1
    assert (await app.runs("waits"))[0].reason == "paused"
    fired = len(bot.fires)
    await world.until("01-01 23:59:00")
    assert len(bot.fires) == fired
    await world.until("01-02 02:00:01")
    assert (await app.get("s00")).status == "idle", "the pause had an end"
    assert len(bot.fires) > fired
