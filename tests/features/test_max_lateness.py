"""`maxLateness` holds until the first attempt begins: a run that waits too long for capacity, its lane, or the previous
run is missed, with what it waited for. Waits that have an end, such as a quota, are excused."""

import pytest

from features.kit import Bench, Bot, World, instant, ledger, rfc, short, virtual
from features.money_kit import Spender, open_spending
from features.test_alerts import reachable
from wakeful import every, once
from wakeful.app.money import Budgets
from wakeful.core.errors import Invalid
from wakeful.core.run.results import Busy
from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Decision, Defer
from wakeful.core.time.instants import MINUTE, SECOND, Instant
from wakeful.features.schedules.why import why
from wakeful.ports.store import Tx


async def _sentence(app: Bench, slug: str, at: str) -> str:
    now, asked = app.clock.read().now, instant(at)
    return (await app.store.read(lambda tx: why(tx, slug, at=asked, now=now))).sentence


@virtual
async def test_a_run_that_waits_too_long_for_its_lane_is_missed(world: World) -> None:
    """Also when it is the successor of a run that took the plain path. It has no attempt, and the next instant runs."""
    slow, fast = Bot(world, usual=80 * MINUTE), Bot(world)
    app = await world.open(None)
    await app.add("long", once(rfc("01-01 00:59:00")), call=slow, lane="x", timeout="3h")
    await app.add("strict", every("6h", anchor=rfc("01-01 01:00:00")), call=fast, lane="x", max_lateness="5m")
    await app.add("patient", every("6h", anchor=rfc("01-01 01:00:00")), call=fast, lane="x")
    await world.until("01-01 02:30:00")
    (run,) = await app.runs("strict")
    assert (run.outcome, run.reason, run.attempt, run.started_at) == ("missed", "lane", 0, None)
    assert await ledger(app, "patient") == ["01-01 01:00:00 succeeded"]
    assert [fire.slug for fire in fast.fires] == ["patient"]
    assert await _sentence(app, "strict", "01-01 01:00:00") == (
        "strict at 2026-01-01 01:00 (UTC) was missed because it could only begin 1h19m late: it waited in the queue "
        "of lane x, and maxLateness is 5m."
    )
    await world.until("01-01 07:30:00")
    assert await ledger(app, "strict") == ["01-01 01:00:00 missed (lane)", "01-01 07:00:00 succeeded"]


@virtual
async def test_a_run_that_waits_too_long_for_capacity_is_missed(world: World) -> None:
    """The one place is taken for 90 seconds."""
    slow, fast = Bot(world, usual=90 * SECOND), Bot(world)
    app = await world.open(None, limits={"concurrency_max": 1})
    await app.add("long", once(rfc("01-01 00:59:59")), call=slow)
    await app.add("strict", once(rfc("01-01 01:00:00")), call=fast, max_lateness="1m")
    await app.add("patient", once(rfc("01-01 01:00:00")), call=fast, max_lateness="2m")
    await world.until("01-01 01:30:00")
    assert await ledger(app, "strict") == ["01-01 01:00:00 missed (capacity)"]
    assert await ledger(app, "patient") == ["01-01 01:00:00 succeeded"]
    assert "29s late: it waited for capacity, and maxLateness is 1m" in await _sentence(app, "strict", "01-01 01:00:00")


@virtual
async def test_a_one_shot_that_is_missed_is_reported(world: World) -> None:
    """There is no next time, so people learn of it, as of one that an outage took."""
    app, people = await reachable(world, "phone")
    await app.add("long", once(rfc("01-01 00:59:59")), call=Bot(world, usual=90 * SECOND), lane="x")
    await app.add("strict", once(rfc("01-01 01:00:00")), call=Bot(world), max_lateness="1m", lane="x")
    await world.until("01-01 01:30:00")
    view = await app.get("strict")
    assert (view.status, view.health) == ("done", "failing")
    (told,) = people["phone"].got
    assert told.startswith("strict: its last planned time, 2026-01-01T01:00:00.000Z, was missed: lane. ")


@virtual
async def test_a_run_queued_behind_the_previous_one_is_missed(world: World) -> None:
    """It waited for the open run of its own schedule."""
    bot = Bot(world)
    bot.script = [25 * MINUTE]
    app = await world.open(bot)
    await app.add("long", every("10m"), overlap="queue", max_lateness="2m")
    await world.until("01-01 00:45:00")
    assert await ledger(app, "long") == [
        "01-01 00:10:00 succeeded",
        "01-01 00:20:00 missed (queued)",
        "01-01 00:30:00 skipped (blocked)",
        "01-01 00:40:00 succeeded",
    ]


@virtual
async def test_a_quota_is_excused_and_the_lane_after_it_is_not(world: World) -> None:
    """The reset of a quota is known: lateness counts from then."""
    opens_at = instant("01-01 03:00:00")

    def quota(_: Tx, run: Run, now: Instant) -> Decision:
        return Defer(opens_at, "quota") if now < opens_at and run.lane != "y" else None

    slow, fast = Bot(world, usual=20 * MINUTE), Bot(world)
    app = await world.open(None, gates=[quota])
    await app.add("waits", once(rfc("01-01 01:00:00")), call=fast, max_lateness="5m")
    await app.add("long", once(rfc("01-01 02:50:00")), call=slow, lane="y")
    await app.add("then-lane", once(rfc("01-01 02:00:00")), call=fast, lane="x", max_lateness="15m")
    await app.add("holds", once(rfc("01-01 01:00:00")), call=slow, lane="x")
    await world.until("01-01 04:00:00")
    assert await ledger(app, "waits") == ["01-01 01:00:00 succeeded"]
    assert await ledger(app, "then-lane") == ["01-01 02:00:00 missed (lane)"]


@virtual
async def test_a_budget_is_excused(world: World) -> None:
    """The second turn waits until the first, whose cost is not known yet, has ended."""
    app = await open_spending(world, Spender(world, 0.01, takes="10m"), budgets=Budgets(day=5.0))
    await app.add("first", once(rfc("01-01 01:00:00")), prompt="work")
    await app.add("second", once(rfc("01-01 01:00:01")), prompt="work", max_lateness="2m")
    await world.until("01-01 01:05:00")
    assert [run.reason for run in await app.runs("second")] == ["budget"]
    await world.until("01-01 01:30:00")
    assert await ledger(app, "second") == ["01-01 01:00:01 succeeded"]


@virtual
async def test_a_busy_target_is_excused(world: World) -> None:
    """It was asked in time, so the first attempt has begun."""
    bot = Bot(world)
    bot.script = [Busy("at work")] * 3
    app = await world.open(bot)
    await app.add("job", once(rfc("01-01 01:00:00")), max_lateness="2m")
    await world.until("01-01 01:05:00")
    assert [run.reason for run in await app.runs("job")] == ["busy"]
    await world.until("01-01 12:00:00")
    assert await ledger(app, "job") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_wait_for_a_node_with_its_label_counts_and_is_named(world: World) -> None:
    """The node loses the label while the run waits for capacity, and gets it back when it is too late."""
    app = await world.open(None, limits={"concurrency_max": 1}, labels=["gpu"])
    await app.add("long", once(rfc("01-01 00:59:59")), call=Bot(world, usual=90 * SECOND))
    await app.add("render", once(rfc("01-01 01:00:00")), call=Bot(world), run_on="gpu", max_lateness="5m")
    await world.until("01-01 01:00:45")
    await app._change(labels=[])
    await world.until("01-01 01:10:00")
    await app._change(labels=["gpu"])
    await world.until("01-01 01:30:00")
    assert await ledger(app, "render") == ["01-01 01:00:00 missed (label)"]
    assert "because no live node had the label gpu" in await _sentence(app, "render", "01-01 01:00:00")


@virtual
async def test_many_runs_too_late_in_one_lane_do_not_stop_the_others(world: World) -> None:
    """Each hands the lane on."""
    slow, fast = Bot(world, usual=30 * MINUTE), Bot(world)
    app = await world.open(None)
    await app.add("long", once(rfc("01-01 00:59:00")), call=slow, lane="x")
    for n in range(12):
        await app.add(f"strict-{n}", once(rfc("01-01 01:00:00")), call=fast, lane="x", max_lateness="5m")
    await app.add("patient", once(rfc("01-01 01:01:00")), call=fast, lane="x")
    await world.until("01-01 01:31:00")
    for n in range(12):
        assert await ledger(app, f"strict-{n}") == ["01-01 01:00:00 missed (lane)"]
    assert await ledger(app, "patient") == ["01-01 01:01:00 succeeded"]
    assert world.query("SELECT count(*) FROM lanes") == [(0,)]


@virtual
async def test_manual_runs_and_retries_are_never_too_late(world: World) -> None:
    """A person waits for the result, and a retry has begun before."""
    bot = Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    await app.add("job", every("6h"), max_lateness="1m", retry={"times": 1, "delay": "30m"})
    await world.until("01-01 07:00:00")
    (run,) = await app.runs("job")
    assert (run.outcome, run.attempt) == ("succeeded", 2)


@virtual
async def test_less_than_a_minute_is_refused_and_what_is_stored_counts_as_one(world: World) -> None:
    """A definition of an earlier version keeps working, can be edited, and can be written again as it is."""
    app = await world.open(Bot(world))
    with pytest.raises(Invalid) as refused:
        await app.add("job", every("1h"), max_lateness="10s")
    assert str(refused.value) == (
        "max_lateness: 10s is too short: a run that begins within 1m of its time is never late; write at least 1m, or "
        "leave it out"
    )
    await app.add("job", every("1h"), max_lateness="1m")
    stored = world.query("SELECT definition FROM schedules")[0][0]
    world.tamper("UPDATE schedules SET definition = ?", stored.replace('"1m"', '"10s"'))
    app = await world.reopen(app, Bot(world))
    await app.add("job", every("1h"), max_lateness="10s")
    await app.update("job", timeout="5m")
    assert (await app.get("job")).to_json()["maxLateness"] == "10s"
    with pytest.raises(Invalid):
        await app.update("job", max_lateness="20s")
    await world.until("01-01 01:30:00")
    assert short((await app.get("job")).last_run) == "01-01 01:00:00"
