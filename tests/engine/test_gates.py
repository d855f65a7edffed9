"""Gates: asked when a run is about to start; the first that does not admit decides, and its reason is on record."""

from features.kit import Bot, World, instant, ledger, short, virtual
from wakeful import every
from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import Decision, Defer, Skip
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx


@virtual
async def test_a_deferred_run_waits_and_is_asked_again(world: World) -> None:
    """A quota that comes back at half past: the run is visible as waiting, with the reason, and then runs."""
    opens_at = instant("01-01 01:30:00")
    asked: list[str] = []

    def quota(_: Tx, run: Run, now: Instant) -> Decision:
        asked.append(short(now))
        return Defer(opens_at, "quota") if now < opens_at else None

    bot = Bot(world)
    app = await world.open(bot, gates=[quota])
    await app.add("job", every("1h"))
    await world.until("01-01 01:10:00")
    schedule = await app.get("job")
    assert (schedule.status, schedule.status_reason, short(schedule.next_run)) == ("waiting", "quota", "01-01 01:30:00")
    await world.until("01-01 01:45:00")
    assert asked == ["01-01 01:00:00", "01-01 01:30:00"]
    assert bot.began == ["01-01 01:30:00"]
    (run,) = await app.runs("job")
    assert (run.outcome, run.attempt, run.reason) == ("succeeded", 1, None)


@virtual
async def test_instants_that_fall_on_a_deferred_run_are_blocked_by_it(world: World) -> None:
    """At most one open run, whatever it waits for."""
    app = await world.open(Bot(world), gates=[lambda tx, run, now: Defer(now + 3_600_000 * 5, "quota")])
    await app.add("job", every("1h"))
    await world.until("01-01 03:30:00")
    assert await ledger(app, "job") == ["01-01 01:00:00 waiting (quota)", "01-01 02:00:00 skipped (blocked) x2"]


@virtual
async def test_a_skipped_run_is_a_row_with_its_reason_and_no_error(world: World) -> None:
    """Nothing is called, nothing counts, the next instant is asked anew."""
    bot = Bot(world)
    answers: list[Decision] = [Skip("budget"), None]
    app = await world.open(bot, gates=[lambda tx, run, now: answers.pop(0)])
    await app.add("job", every("1h"))
    await world.until("01-01 02:30:00")
    assert await ledger(app, "job") == ["01-01 01:00:00 skipped (budget)", "01-01 02:00:00 succeeded"]
    assert len(bot.fires) == 1
    assert (await app.get("job")).consecutive_errors == 0


@virtual
async def test_the_first_gate_that_does_not_admit_decides(world: World) -> None:
    """In order; the rest are not asked."""
    asked: list[str] = []

    def gate(name: str, decision: Decision) -> object:
        def decide(_: Tx, run: Run, now: Instant) -> Decision:
            asked.append(name)
            return decision

        return decide

    gates = [gate("hours", None), gate("quota", Skip("quota")), gate("budget", Skip("budget"))]
    app = await world.open(Bot(world), gates=gates)
    await app.add("job", every("1h"))
    await world.until("01-01 01:30:00")
    assert asked == ["hours", "quota"]
    assert await ledger(app, "job") == ["01-01 01:00:00 skipped (quota)"]


@virtual
async def test_a_deferred_run_holds_no_lane(world: World) -> None:
    """The gate is asked before the lane is taken."""
    bot = Bot(world)
    app = await world.open(
        bot,
        gates=[lambda tx, run, now: Defer(now + 600_000, "quota") if run.schedule_id == 1 else None],
    )
    await app.add("deferred", every("1h"), lane="one")
    await app.add("free", every("1h"), lane="one")
    await world.until("01-01 01:05:00")
    assert [fire.slug for fire in bot.fires] == ["free"]
    assert (await app.get("deferred")).status_reason == "quota"


@virtual
async def test_a_gate_that_breaks_does_not_stop_the_clock(world: World) -> None:
    """L9: the run waits a minute with the reason, others go on, and it starts when the gate is well."""
    broken = [True]

    def gate(_: Tx, run: Run, now: Instant) -> Decision:
        if broken[0]:
            raise RuntimeError("the gate is out of order")
        return None

    bot = Bot(world)
    app = await world.open(bot, gates=[gate])
    await app.add("job", every("1h"))
    await world.until("01-01 01:00:30")
    assert bot.fires == []
    (waiting,) = await app.runs("job")
    assert waiting.reason == "a gate failed: RuntimeError: the gate is out of order"
    broken[0] = False
    await world.sleep("45s")
    assert bot.planned == ["01-01 01:00:00"]
