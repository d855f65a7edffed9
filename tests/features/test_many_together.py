"""Schedules that are due in the same moment are decided together; each still has its own fate."""

from features.kit import Bot, World, ledger, rfc, short, virtual
from wakeful import every, once
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.ports.store import Tx


@virtual
async def test_schedules_alike_each_run_once_under_their_own_name(world: World) -> None:
    """Thirty with the same rules: thirty runs, and each goes on to its own next instant."""
    bot = Bot(world)
    app = await world.open(bot)
    slugs = [f"job-{n:02}" for n in range(30)]
    for slug in slugs:
        await app.add(slug, every("1h"))
    await world.until("01-01 01:30:00")
    assert sorted(fire.slug for fire in bot.fires) == slugs
    for slug in slugs:
        (row,) = await app.runs(slug)
        assert (row.slug, row.outcome, row.count) == (slug, "succeeded", 1)
        assert short((await app.get(slug)).next_run) == "01-01 02:00:00"


@virtual
async def test_one_that_stands_otherwise_is_decided_for_itself(world: World) -> None:
    """Among some that are alike: one still runs, one is paused, one keeps hours, one rings for the last time."""
    bot, slow = Bot(world), Bot(world, usual=90 * MINUTE)
    app = await world.open(bot)
    for slug in ("a", "b", "c", "paused"):
        await app.add(slug, every("1h"))
    await app.add("hours", every("1h"), active_hours={"start": "09:00", "end": "17:00"})
    await app.add("slow", every("1h"), call=slow)
    await app.add("last", once(rfc("01-01 02:00:00")))
    await world.until("01-01 01:30:00")
    await app.pause("paused")
    await world.until("01-01 02:20:00")
    for slug in ("a", "b", "c"):
        assert await ledger(app, slug) == ["01-01 01:00:00 succeeded", "01-01 02:00:00 succeeded"]
    assert await ledger(app, "paused") == ["01-01 01:00:00 succeeded"]
    assert await ledger(app, "slow") == ["01-01 01:00:00 running", "01-01 02:00:00 skipped (blocked)"]
    assert await ledger(app, "hours") == ["01-01 01:00:00 skipped (outside active hours) x2"]
    assert (await app.get("last")).status == "done"
    assert short((await app.get("a")).next_run) == short((await app.get("slow")).next_run) == "01-01 03:00:00"


@virtual
async def test_what_ran_on_a_clock_that_came_back_does_not_run_again(world: World) -> None:
    """Of two that stand alike, one has had this instant: only the other runs."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("fresh", every("1h"))
    await app.add("ran", every("1h"))
    await world.until("01-01 01:30:00")

    def come_back(tx: Tx) -> None:
        """As if the clock had been an hour ahead when both ran, and the row of one were lost."""
        cadences = tx.cadences.lock([1, 2])
        back = [_turned_back(cadence) for cadence in cadences.values()]
        tx.cadences.save_many(sorted(back))
        tx.alarms.move_many("schedule", [(cadence.schedule_id, cadence.next_at) for cadence in back])
        tx.runs.remove_many([run.run_id for run in tx.runs.page(schedule_id=1, limit=9)])

    await app.store.write(come_back)
    app.engine.ring_bell()
    await world.until("01-01 01:31:00")
    assert sorted(fire.slug for fire in bot.fires) == ["fresh", "fresh", "ran"]


def _turned_back(cadence: Cadence) -> Cadence:
    through = cadence.planned_through
    return cadence._replace(planned_through=through - HOUR, next_at=through, ran_through=through)
