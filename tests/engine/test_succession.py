"""Succession: the commit that settles a run in a lane claims the run that waits for its place."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from conformance.rows import a_claim
from features.kit import Bench, Bot, World, instant, ledger, virtual
from wakeful import every
from wakeful.core.run.results import Done
from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.time.instants import HOUR, MINUTE, format_instant
from wakeful.engine import claiming
from wakeful.engine.settling import Ended, Succession, settle_and_claim
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.runs import ScheduleRuns
from wakeful.ports.plain import NO_LANES
from wakeful.ports.store import Tx
from wakeful.stores.sqlite.plain import SqlitePlainPath
from worlds.plain_law import watch_plain_path


def _slugs(bot: Bot) -> list[str]:
    return [fire.slug for fire in bot.fires]


@virtual
async def test_the_next_in_line_is_claimed_in_the_commit_that_settles(world: World) -> None:
    """One write from the end of a run to the start of its successor, and the next in line is the one due first."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot, limits={"sleep_max": HOUR})
    for number in range(3):
        await app.add(f"job-{number}", every("1h"), lane="desk")
    await world.until("01-01 01:05:00")
    assert bot.running == 1
    writes = app.store.writes
    await world.until("01-01 01:15:00")
    assert app.store.writes == writes + 1
    await world.until("01-01 01:25:00")
    assert (_slugs(bot), bot.running_max) == (["job-0", "job-1", "job-2"], 1)
    assert bot.began == ["01-01 01:00:00", "01-01 01:10:00", "01-01 01:20:00"]


@virtual
async def test_failures_pass_the_lane_on_as_well(world: World) -> None:
    """The general path: a run that failed, one that is retried, and one that has a lane of its own."""
    bot = Bot(world)
    bot.script = [ValueError("no"), 10 * MINUTE]
    app = await world.open(bot)
    for slug in ("first", "second"):
        await app.add(slug, every("1h"), lane="desk", retry={"times": 1, "delay": "1s"})
    await world.until("01-01 01:05:00")
    assert _slugs(bot) == ["first", "second"]  # its retry waits for the lane
    await world.until("01-01 01:15:00")
    assert _slugs(bot) == ["first", "second", "first"]
    assert bot.running_max == 1


@virtual
async def test_a_person_comes_before_the_plan_and_earlier_before_later(world: World) -> None:
    """Among those that wait for the same lane."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    for slug, minute in (("first", 0), ("late", 3), ("early", 2)):
        await app.add(slug, every("24h", anchor=f"2026-01-01T01:0{minute}:00Z"), lane="desk")
    await app.add("asked", every("99h"), lane="desk")
    await world.until("01-01 01:05:00")
    await app.run_now("asked")
    await world.until("01-01 02:00:00")
    assert _slugs(bot) == ["first", "asked", "early", "late"]
    assert bot.running_max == 1


@virtual
async def test_capacity_is_never_exceeded(world: World) -> None:
    """Lanes that pass on their place, and schedules outside of lanes, on three places."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot, concurrency_max=3)
    for number in range(12):
        await app.add(f"lane-{number}", every("1h"), lane=f"lane-{number % 4}")
    for number in range(6):
        await app.add(f"free-{number}", every("1h"))
    await world.until("01-01 01:59:00")
    assert bot.running_max == 3
    assert sorted(set(_slugs(bot))) == sorted({f"lane-{n}" for n in range(12)} | {f"free-{n}" for n in range(6)})
    assert len(bot.fires) == 18


@virtual
async def test_a_run_that_cannot_be_ended_hands_on_no_capacity(world: World) -> None:
    """It still uses its own, so a run that waits for capacity goes on waiting (seed 10045)."""
    released = asyncio.Event()

    async def ignore_cancellation() -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    bot = Bot(world)
    bot.script = [ignore_cancellation, 5 * HOUR]
    app = await world.open(bot, concurrency_max=2)
    await app.add("stuck", every("24h", anchor="2026-01-01T01:00:00Z"), lane="desk", timeout="10m")
    await app.add("long", every("24h", anchor="2026-01-01T01:01:00Z"), timeout="8h")
    await app.add("late", every("24h", anchor="2026-01-01T01:02:00Z"), catch_up="all")
    await world.until("01-01 02:00:00")
    (run,) = await app.runs("stuck")
    assert (run.outcome, run.is_stuck, _slugs(bot)) == ("unknown", True, ["stuck", "long"])
    released.set()
    await world.until("01-01 02:01:00")
    assert (_slugs(bot), bot.running_max) == (["stuck", "long", "late"], 2)


@virtual
async def test_a_long_queue_does_not_displace_what_is_due_outside_of_it(world: World) -> None:
    """One place, and twenty runs that wait for one lane: an instant that is due meanwhile starts after those that were
    due before it, and before those that are due later."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot, concurrency_max=1)
    for number in range(20):
        await app.add(f"lane-{number}", every("3h", anchor=f"2026-01-01T01:00:{number:02}Z"), lane="desk")
    await app.add("outside", every("3h", anchor="2026-01-01T01:00:10.500Z"))
    await world.until("01-01 01:40:00")
    assert len(bot.fires) == 21
    assert _slugs(bot).index("outside") < 19


@pytest.mark.parametrize("seed", range(3))
@virtual
async def test_lanes_are_passed_on_as_comparing_all_that_is_due_would_choose(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of random length in three lanes and outside of them, on few places, and people who start some."""
    rng = Random(seed)
    bot = Bot(world)
    bot.script = [rng.randrange(1, 20) * MINUTE for _ in range(500)]
    app = await world.open(bot, concurrency_max=rng.randrange(3, 6))
    reports: list[str] = []
    terms = Terms(default_zone="UTC")
    watch_plain_path(app.store, reports.extend, lambda: terms, Counter())  # type: ignore[arg-type]  # by name
    passed_on: list[int] = []

    def claim(self: SqlitePlainPath, runs: Sequence[Run], lanes: Mapping[str, int] = NO_LANES) -> None:
        passed_on.extend(run.run_id for run in runs if lanes)
        real_claim(self, runs, lanes)

    real_claim = SqlitePlainPath.claim
    monkeypatch.setattr(SqlitePlainPath, "claim", claim)
    for number in range(24):
        at = f"2026-01-01T0{rng.randrange(1, 4)}:{rng.randrange(60):02}:00Z"
        await app.add(f"job-{number}", every("24h", anchor=at), lane=rng.choice(["a", "b", "c", None]))
    for hour in range(1, 20):
        await world.until(f"01-01 {hour:02}:30:00")
        await app.run_now(f"job-{rng.randrange(24)}")
    await world.until("01-01 23:00:00")
    assert reports == []
    assert passed_on
    rows = world.query("SELECT outcome, reason, count(*) FROM runs GROUP BY outcome, reason ORDER BY outcome")
    assert sum(n for _, _, n in rows) == 24 + 19
    assert {(outcome, reason) for outcome, reason, _ in rows} <= {("succeeded", None), ("skipped", "blocked")}


@virtual
async def test_a_row_that_cannot_be_claimed_does_not_keep_the_ending_from_being_settled(world: World) -> None:
    """The ending is settled without it, and the tick goes on with the others (L9)."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    for slug, lane in (("odd", "a"), ("well", "b")):
        for number in range(2):
            await app.add(f"{slug}-{number}", every("24h"), lane=lane)
    await world.until("01-02 00:05:00")
    waiting = "SELECT min(run_id) FROM runs WHERE outcome = 'waiting' AND lane = 'a'"
    world.tamper(f"UPDATE runs SET kind = 'unheard-of' WHERE run_id = ({waiting})")
    await world.until("01-02 00:15:00")
    assert await ledger(app, "odd-0") == ["01-02 00:00:00 succeeded"]
    assert _slugs(bot) == ["odd-0", "well-0", "well-1"]


@virtual
async def test_a_node_that_stops_claims_no_successor(world: World) -> None:
    """It settles what it holds, and that is all."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await _two_in_a_lane(world, bot)
    await app.stop()
    assert bot.fires[1:] == []
    assert world.query("SELECT outcome FROM runs ORDER BY run_id") == [("succeeded",), ("waiting",)]


@pytest.mark.parametrize(
    ("decision", "began"),
    [
        (Defer(instant("01-01 03:00:00"), "quota"), ["01:00 job-0", "01:10 job-2", "03:00 job-1"]),
        (Skip("quota"), ["01:00 job-0", "01:10 job-2"]),
    ],
    ids=["deferred", "skipped"],
)
@virtual
async def test_a_successor_that_may_not_begin_leaves_its_lane_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, decision: Defer | Skip, began: list[str]
) -> None:
    """The lane is passed on to it, and a gate does not admit it: those behind it do not wait for it."""
    bot = Bot(world, usual=10 * MINUTE)
    app = await world.open(bot)
    for number in range(3):
        await app.add(f"job-{number}", every("24h", anchor="2026-01-01T01:00:00Z"), lane="desk")
    ((closed,),) = world.query("SELECT schedule_id FROM schedules WHERE slug = 'job-1'")
    admit = ScheduleRuns.admit

    def refuse(self: ScheduleRuns, tx: Tx, runs: Sequence[Run], *, now: int) -> list[Any]:
        is_open = now >= instant("01-01 03:00:00")
        admitted = admit(self, tx, runs, now=now)
        return [
            job if is_open or run.schedule_id != closed else decision for run, job in zip(runs, admitted, strict=True)
        ]

    monkeypatch.setattr(ScheduleRuns, "admit", refuse)
    await world.until("01-01 04:00:00")
    assert [f"{at[6:11]} {slug}" for at, slug in zip(bot.began, _slugs(bot), strict=True)] == began


@pytest.mark.parametrize("is_lost", [False, True])
@virtual
async def test_a_node_that_lost_its_lease_claims_no_successor(world: World, is_lost: bool) -> None:
    """The store has another end of the lease than this node wrote."""
    app = await _two_in_a_lane(world, Bot(world, usual=10 * MINUTE))
    hooks, request = app.parts.hooks, app.engine.claim_request(world.now, 9)
    assert request is not None

    def settle(tx: Tx) -> Succession:
        ended = [Ended(a_claim(run), Done()) for run in tx.runs.page(limit=9) if run.outcome == "running"]
        return settle_and_claim(tx, hooks, ended, request._replace(lease_until=request.lease_until + is_lost))

    succession = await app.store.write(settle)
    assert succession.settled.counted == [True]
    assert len(succession.claims) == (0 if is_lost else 1)
    await app.kill()


async def _two_in_a_lane(world: World, bot: Bot) -> Bench:
    """One runs, and one waits for it."""
    app = await world.open(bot, limits={"shutdown_grace": HOUR})
    for number in range(2):
        await app.add(f"job-{number}", every("24h"), lane="desk")
    await world.until("01-02 00:05:00")
    return app


@pytest.mark.parametrize("seed", range(3))
@virtual
async def test_limits_of_lateness_hold_alike_whether_lanes_are_passed_on_or_compared(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain path decides what the general path would decide (L4): the same runs are missed."""
    ledgers = []
    for is_passed_on in (True, False):
        with monkeypatch.context() as patch:
            if not is_passed_on:
                patch.setattr(claiming, "_successors", lambda *_: None)
            ledgers.append(await _strict(world, seed, f"{is_passed_on}"))
    assert ledgers[0] == ledgers[1]
    outcomes = {row.split(maxsplit=1)[1] for rows in ledgers[0].values() for row in rows}
    assert outcomes >= {"succeeded", "missed (lane)"}


async def _strict(world: World, seed: int, name: str) -> dict[str, list[str]]:
    """The ledgers of schedules that share lanes and capacity, most with a limit of lateness, on a day of their own."""
    rng = Random(seed)
    bot = Bot(world)
    bot.script = [rng.randrange(1, 20) * MINUTE for _ in range(100)]
    app = await world.open(bot, concurrency_max=4)
    day = world.now
    for number in range(24):
        at = day + rng.randrange(60, 180) * MINUTE
        limit = rng.choice(["1m", "5m", "30m", None])
        lane = rng.choice(["a", "b", "c", None])
        await app.add(f"job-{number}", every("24h", anchor=format_instant(at)), lane=lane, max_lateness=limit)
    await world.sleep("23h")
    ledgers = {f"job-{n}": [row[6:] for row in await ledger(app, f"job-{n}")] for n in range(24)}
    for number in range(24):
        await app.remove(f"job-{number}")
    await world.sleep("1h")
    await app.stop()
    return ledgers
