"""Schedules that are due in the same moment are decided together; each still has its own fate."""

from typing import Any

import pytest

from features.kit import Bot, World, ledger, rfc, short, virtual
from wakeful import every, once
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.schedules import alarms
from wakeful.features.schedules.plain import plain_batches
from wakeful.ports.claims import Batch
from wakeful.ports.plain import DueSchedule
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


@virtual
async def test_timeouts_of_their_own_are_kept_in_one_batch(world: World, decided: list[list[int]]) -> None:
    """All hang: each is ended when its own time is over, and the cadence of each goes on."""
    bot = Bot(world, usual=10 * HOUR)
    app = await world.open(bot)
    slugs = [f"job-{n}" for n in range(9)]
    for n, slug in enumerate(slugs):
        await app.add(slug, every("1d"), timeout=f"{10 + n % 3}m")
    await world.until("01-02 00:30:00")
    assert decided == [[9]]
    for n, slug in enumerate(slugs):
        (row,) = await app.runs(slug)
        assert (row.outcome, short(row.ended_at)) == ("timedOut", f"01-02 00:{10 + n % 3}:00")
        assert row.error == f"did not end within {60 * (10 + n % 3)} s and was ended"


@virtual
async def test_lanes_of_their_own_are_kept_in_one_batch(world: World, decided: list[list[int]]) -> None:
    """Those that share a lane run after one another, also with one that calls something else; the others at once."""
    bot, other = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    for slug, lane in (("a", "one"), ("b", "two"), ("c", "one"), ("free", None)):
        await app.add(slug, every("1d"), **({"lane": lane} if lane else {}))
    await app.add("other", every("1d"), lane="two", call=other.__call__)
    await world.until("01-02 00:30:00")
    assert decided == [[4, 1]]
    began = {slug: short((await app.runs(slug))[0].started_at) for slug in ("a", "b", "c", "free", "other")}
    at_once, after = "01-02 00:00:00", "01-02 00:10:00"
    assert began == {"a": at_once, "b": at_once, "c": after, "free": at_once, "other": after}
    assert world.query("SELECT * FROM lanes") == []


@virtual
async def test_what_does_other_work_is_not_decided_with_the_others(world: World, decided: list[list[int]]) -> None:
    """Another function, another rule for crashes, and arguments that are equal and not the same value."""
    bot, other = Bot(world), Bot(world)
    app = await world.open(bot)
    for slug, options in (
        ("same-1", {}), ("same-2", {"timeout": "1m"}), ("other", {"call": other.__call__}),
        ("unknown", {"on_crash": "unknown"}),
        ("one", {"call": take, "args": {"x": 1}}), ("true", {"call": take, "args": {"x": True}}),
    ):  # fmt: skip
        await app.add(slug, every("1d"), **options)
    await world.until("01-02 00:30:00")
    assert decided == [[2, 1, 1, 1, 1]]
    assert [fire.slug for fire in other.fires] == ["other"]
    assert [(await app.runs(slug))[0].output for slug in ("one", "true")] == ["int", "bool"]


async def take(x: object) -> str:
    return type(x).__name__


@virtual
async def test_equal_instants_of_two_zones_are_excluded_each_by_its_own_day(world: World) -> None:
    """11:00 in Tokyo on Saturday is Friday evening in New York."""
    bot = Bot(world)
    app = await world.open(bot)
    for slug, zone in (("new-york", "America/New_York"), ("tokyo", "Asia/Tokyo"), ("boston", "America/New_York")):
        await app.add(slug, once("2026-01-03T02:00:00Z", tz=zone))
    await app._change(exclude={"dates": ["2026-01-03"]})
    await world.until("01-03 03:00:00")
    assert [fire.slug for fire in bot.fires] == ["new-york", "boston"]


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """How many runs were in each batch, for each time that something was decided."""
    sizes: list[list[int]] = []

    def spied(*args: Any, **options: Any) -> tuple[list[Batch], list[DueSchedule]]:
        batches, others = plain_batches(*args, **options)
        sizes.append([len(batch.claims) for batch in batches])
        return batches, others

    monkeypatch.setattr(alarms, "plain_batches", spied)
    return sizes
