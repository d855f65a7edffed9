"""Replay and backfill: past instants run on request, outside the plan, and never in the way of a regular instant."""

import pytest

from features.kit import Bot, World, ledger, short, virtual
from features.money_kit import Spender, estimate_of, open_spending
from wakeful import Conflict, Invalid, NotFound, Wakeful, cron, every, manual, once
from wakeful.core.run.results import Failed
from wakeful.core.time.instants import MINUTE, SECOND


async def _outside(app: Wakeful, slug: str) -> list[str]:
    rows = [row for row in reversed(await app.runs(slug, limit=1000)) if row.trigger in ("backfill", "replay")]
    return [f"{short(row.planned_at)} {row.trigger} {row.outcome}" for row in rows]


@virtual
async def test_a_backfill_runs_what_did_not_succeed_oldest_first(world: World) -> None:
    """It is only counted until it is applied; what succeeded is left out, and a second request finds nothing."""
    bot = Bot(world, usual=30_000)
    app = await world.open(bot)
    await app.add("report", cron("0 * * * *", tz="UTC"), overlap="skip")
    await world.until("01-01 02:30:00")
    app = await world.reopen(app, bot, off="3h")
    await world.sleep("1m")
    rows = await ledger(app, "report")
    assert rows[2:] == ["01-01 03:00:00 missed (outage) x2", "01-01 05:00:00 succeeded"]
    window = ("2025-12-31T22:00:00Z", "2026-01-01T05:00:00Z")
    assert await app.backfill("report", *window) == 5
    await world.sleep("10m")
    assert await _outside(app, "report") == []
    before = await app.get("report")
    assert await app.backfill("report", *window, apply=True, by="ops") == 5
    assert await app.backfill("report", *window, apply=True) == 0, "each instant is requested once"
    await world.sleep("10m")
    assert await _outside(app, "report") == [
        "12-31 22:00:00 backfill succeeded",
        "12-31 23:00:00 backfill succeeded",
        "01-01 00:00:00 backfill succeeded",
        "01-01 03:00:00 backfill succeeded",
        "01-01 04:00:00 backfill succeeded",
    ]
    assert bot.running_max == 1
    assert len(set(bot.keys)) == len(bot.keys), "each has a key of its own"
    assert await app.backfill("report", *window) == 0
    after = await app.get("report")
    assert (after.next_run, after.last_run, after.consecutive_errors) == (before.next_run, before.last_run, 0)


@virtual
async def test_an_instant_that_succeeds_while_it_waits_in_a_backfill_is_left_out(world: World) -> None:
    """It had failed when the backfill was requested (seed 10099)."""
    bot = Bot(world)
    bot.script = [Failed("no"), Failed("no"), 10 * MINUTE]
    app = await world.open(bot)
    await app.add("report", cron("0 * * * *", tz="UTC"))
    window = ("2025-12-31T21:00:00Z", "2025-12-31T22:00:00Z")
    assert await app.backfill("report", *window, apply=True) == 2
    await world.sleep("5m")
    failed = next(run for run in await app.runs("report") if short(run.planned_at) == "12-31 22:00:00")
    assert await app.backfill("report", *window, apply=True) == 2
    await world.sleep("1m")
    await app.replay(failed.run_id)
    await world.sleep("20m")
    assert await _outside(app, "report") == [
        "12-31 21:00:00 backfill failed",
        "12-31 22:00:00 backfill failed",
        "12-31 21:00:00 backfill succeeded",
        "12-31 22:00:00 replay succeeded",
    ]


@pytest.mark.torture
@virtual
async def test_a_month_of_backfill_never_delays_a_regular_instant(world: World) -> None:
    """Regular instants of this and other schedules start on time, also if only two can run at a time."""
    slow, quick = Bot(world, usual=45_000), Bot(world)
    app = await world.open(None, limits={"concurrency_max": 2})
    app.on_due(slow)
    await app.add("slow", cron("0 * * * *", tz="UTC"))
    await app.add("quick", every("1m"), call=quick)
    assert await app.backfill("slow", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z", apply=True) > 700
    await world.until("01-01 06:00:30")
    assert quick.began == quick.planned
    assert len(quick.fires) == 360
    regular = [row for row in await app.runs("slow", limit=1000) if row.trigger == "schedule"]
    assert [short(row.started_at) for row in regular] == [short(row.planned_at) for row in regular]
    assert len(regular) == 6
    assert {row.outcome for row in regular} <= {"succeeded", "running"}
    assert len(await _outside(app, "slow")) > 200
    assert (await app.ledger.stop_backfill("slow")).left > 0
    count = len(await _outside(app, "slow"))
    await world.sleep("30m")
    assert len(await _outside(app, "slow")) == count


@virtual
async def test_a_backfill_in_a_lane_hands_on_no_capacity(world: World) -> None:
    """It used none. The run that waits at its lane starts when there is room for it, and not beside another one."""
    past, regular = Bot(world, usual=30 * SECOND), Bot(world, usual=2 * MINUTE)
    app = await world.open(past, limits={"concurrency_max": 1})
    await app.add("past", cron("0 12 * * *", tz="UTC"), lane="kitchen")
    await app.add("next", once("2026-01-01T00:00:10Z"), call=regular, lane="kitchen")
    await app.add("busy", once("2026-01-01T00:00:20Z"), call=regular)
    assert await app.backfill("past", "2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z", apply=True) == 1
    await world.sleep("10m")
    assert (len(past.fires), len(regular.fires), regular.running_max) == (1, 2, 1)


@virtual
async def test_errors_of_a_backfill_change_nothing_of_its_schedule(world: World) -> None:
    """No error is counted, nobody is told, and a failed instant may be requested again."""
    bot = Bot(world, usual=Failed("no"))
    app = await world.open(bot)
    await app.add("report", cron("0 12 * * *", tz="UTC"), max_consecutive_errors=2)
    window = ("2025-12-20T00:00:00Z", "2025-12-25T00:00:00Z")
    assert await app.backfill("report", *window, apply=True) == 5
    await world.sleep("5m")
    view = await app.get("report")
    assert (view.status, view.consecutive_errors, view.health, view.last_outcome) == ("idle", 0, "ok", None)
    assert world.reported() == []
    assert await app.backfill("report", *window) == 5
    assert await ledger(app, "report") == [f"12-{day} 12:00:00 failed" for day in range(20, 25)]


@virtual
async def test_a_crash_at_every_commit_neither_loses_nor_repeats_an_instant(world: World) -> None:
    """The cursor moves in the transaction that writes the run (L2)."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("report", cron("0 * * * *", tz="UTC"))
    assert await app.backfill("report", "2025-12-31T00:00:00Z", "2025-12-31T09:00:00Z", apply=True) == 10
    for _ in range(60):
        app.store.last = app.store.writes + 1
        await world.sleep("10s")
        await app.kill()
        app = await world.open(bot)
    await world.sleep("2m")
    rows = await _outside(app, "report")
    assert [row.split(" backfill")[0] for row in rows] == [f"12-31 {hour:02}:00:00" for hour in range(10)]
    assert {row.rpartition(" ")[2] for row in rows} <= {"succeeded", "unknown"}


@virtual
async def test_one_run_is_replayed(world: World) -> None:
    """Its instant runs once more under another key; the new run names the old one."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("report", every("1h"))
    await world.sleep("1h")
    (old,) = await app.runs("report")
    new = await app.replay(old.run_id)
    await world.sleep("1s")
    new = await app.ledger.get(new.run_id)
    assert (new.outcome, new.trigger, new.planned_at, new.replay_of) == (
        "succeeded",
        "replay",
        old.planned_at,
        old.run_id,
    )
    assert new.to_json()["replayOf"] == str(old.run_id)
    assert bot.keys[0] != bot.keys[1]
    with pytest.raises(NotFound):
        await app.replay(4711)


@pytest.mark.parametrize("commits", range(4))
@virtual
async def test_a_crash_at_every_commit_of_a_replay_leaves_one_run_or_none(world: World, commits: int) -> None:
    """L2 and L7: the request, the claim, the settlement. Before the first commit nothing was asked for."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("report", every("1h"))
    await world.sleep("1h1s")
    (old,) = await app.runs("report")
    app.store.last = app.store.writes + commits
    app.machine.start(app.replay(old.run_id))
    await world.sleep("10s")
    await app.kill()
    app = await world.open(bot)
    await world.sleep("1m")
    rows = await _outside(app, "report")
    assert rows == ([] if commits == 0 else ["01-01 01:00:00 replay succeeded"])
    assert len(set(bot.keys)) == (1 if commits == 0 else 2), "every attempt of it has its key"
    assert len(bot.fires) <= 3, "a crash costs one more attempt"
    assert (await app.get("report")).consecutive_errors == 0


@virtual
async def test_missed_instants_are_replayed(world: World) -> None:
    """Of one schedule, or of all."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("a", every("1h"), catch_up="skip")
    await app.add("b", every("30m"), catch_up="skip")
    await app.pause("b")
    await app.resume("b")
    app = await world.reopen(app, bot, off="3h10m")
    await world.sleep("1s")
    assert (await app.ledger.replay_missed("2026-01-01T00:00:00Z", dry_run=True)).by_slug == {"a": 3, "b": 6}
    assert (await app.ledger.replay_missed("2026-01-01T02:30:00Z", "b", dry_run=True)).by_slug == {"b": 2}
    assert (await app.ledger.replay_missed("2026-01-01T00:00:00Z", "a")).by_slug == {"a": 3}
    await world.sleep("1m")
    assert await _outside(app, "a") == [f"01-01 0{hour}:00:00 replay succeeded" for hour in (1, 2, 3)]
    assert (await app.ledger.replay_missed("2026-01-01T00:00:00Z", dry_run=True)).by_slug == {"b": 6}


@virtual
async def test_what_cannot_be_backfilled_is_refused(world: World) -> None:
    """With the field and the cure."""
    app = await world.open(Bot(world))
    await app.add("hand", manual())
    await app.add("often", every("10s"))
    with pytest.raises(Conflict, match="run it by hand"):
        await app.backfill("hand", "2025-12-01T00:00:00Z", "2025-12-02T00:00:00Z")
    with pytest.raises(Invalid, match="in the future"):
        await app.backfill("often", "2025-12-01T00:00:00Z", "2027-12-02T00:00:00Z")
    with pytest.raises(Invalid, match="after `until`"):
        await app.backfill("often", "2025-12-03T00:00:00Z", "2025-12-02T00:00:00Z")
    with pytest.raises(NotFound):
        await app.backfill("nobody", "2025-12-01T00:00:00Z", "2025-12-02T00:00:00Z")


@virtual
async def test_the_price_of_past_instants_is_estimated_from_recorded_costs(world: World) -> None:
    """The mean of the schedule's own, else of its agent's; unknown if there is none; what is no prompt is free."""
    agent = Spender(world, None)
    app = await open_spending(world, agent)
    app.on_due(Bot(world))
    await app.add("report", every("1h"), prompt="report")
    await app.add("other", every("1h"), prompt="other")
    await app.add("tidy", every("1h"))
    await world.until("01-01 01:30:00")
    assert await estimate_of(app, {"report": 10}) is None
    agent.cost = lambda fire: {"report": 0.10, "other": 0.50}[fire.slug]
    await world.until("01-01 02:30:00")
    agent.cost = lambda fire: {"report": 0.30, "other": None}[fire.slug]
    await world.until("01-01 03:30:00")
    assert await estimate_of(app, {"report": 10}) == 2.0
    assert await estimate_of(app, {"report": 10, "other": 2, "tidy": 100}) == 3.0
    assert await estimate_of(app, {"tidy": 100}) == 0
    await app.add("new", every("1h"), prompt="new")
    assert await estimate_of(app, {"new": 10}) == 3.0, "the mean of 0.10, 0.50 and 0.30 of its agent"
