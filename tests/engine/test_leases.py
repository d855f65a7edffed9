"""Leases and fences (L6): two engines on one store and one wall clock; whoever is lost is replaced, never doubled."""

from collections import Counter
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest

from features.kit import AllTogether, Bench, Bot, World, ledger, short, virtual
from sampling import sampled
from wakeful import New, every
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.testing.virtual_clock import VirtualClock
from wakeful.testing.virtual_loop import run

LEASED = {"lease": 30 * SECOND, "renew_every": 10 * SECOND, "poll": 5 * SECOND}
HOURLY = every("1h", anchor="2026-01-01T01:00:00Z")


def shortly_before(world: World) -> None:
    """Begin five minutes before the first instant: an hour of renewals takes longer than what these tests are about."""
    world.clock.step(55 * MINUTE)


async def two(world: World, one: Any, other: Any, **settings: Any) -> tuple[Bench, Bench]:
    """Two nodes that share the store's clock, each with its own monotonic side."""
    a = await world.open(one, name="a", is_shared=True, limits=LEASED, **settings)
    clock = VirtualClock(world.loop, wall=world.wall)
    b = await world.open(other, name="b", is_shared=True, limits=LEASED, clock=clock, **settings)
    return a, b


@virtual
async def test_two_nodes_share_the_work_and_double_nothing(world: World) -> None:
    """L2: sixty schedules over two hours; every instant once, both nodes at work."""
    shortly_before(world)
    one, other = Bot(world, usual=30 * SECOND), Bot(world, usual=30 * SECOND)
    a, _ = await two(world, one, other, concurrency_max=40)
    await a.add_many([New(f"job-{number:02}", HOURLY) for number in range(60)])
    await world.until("01-01 02:10:00")
    assert set(Counter(one.keys + other.keys).values()) == {1}
    assert len(one.fires) + len(other.fires) == 120
    assert one.fires
    assert other.fires
    assert world.query("SELECT outcome, count(*) FROM runs GROUP BY outcome") == [("succeeded", 120)]


@virtual
async def test_a_lane_holds_across_nodes(world: World) -> None:
    """L5: one at a time, on one node and on many."""
    shortly_before(world)
    bot = Bot(world, usual=2 * MINUTE)
    a, _ = await two(world, bot, bot)
    for number in range(6):
        await a.add(f"job-{number}", HOURLY, lane="agent")
    await world.until("01-01 01:59:00")
    assert bot.running_max == 1
    assert len(bot.fires) == 6


@virtual
async def test_the_runs_of_a_dead_node_are_taken_over_when_its_lease_is_over(world: World) -> None:
    """OC#60495: within the lease and a renewal, once, under the same key."""
    shortly_before(world)
    one, other = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    a, b = await two(world, one, other)
    b.machine.freeze()
    await a.add("job", HOURLY)
    await world.until("01-01 00:59:59")
    b.machine.thaw()
    b.machine.freeze()
    await world.until("01-01 01:01:00")
    assert len(one.fires) == 1
    b.machine.thaw()
    await world.sleep("5s")
    await a.kill()
    await world.until("01-01 01:02:00")
    assert [(fire.attempt, key) for fire, key in zip(other.fires, other.keys, strict=True)] == [(2, one.keys[0])]
    await world.until("01-01 01:20:00")
    (run,) = await b.runs("job")
    assert (run.outcome, [attempt.outcome for attempt in run.attempts]) == ("succeeded", ["crashed", "succeeded"])


@virtual
async def test_a_frozen_node_is_fenced_off_and_begins_anew(world: World) -> None:
    """A long pause of one machine: its late answer changes nothing, and it goes on under a new incarnation."""
    shortly_before(world)
    one, other = Bot(world, usual=MINUTE), Bot(world, usual=5 * MINUTE)
    a, b = await two(world, one, other)
    await a.add("job", HOURLY)
    b.machine.freeze()  # so that a is the one to claim
    await world.until("01-01 01:00:10")
    assert len(one.fires) == 1
    first_id = a.engine.node_id
    a.machine.freeze()
    b.machine.thaw()
    await world.until("01-01 01:02:00")
    assert [fire.attempt for fire in other.fires] == [2]
    a.machine.thaw()
    await world.sleep("30s")
    assert a.engine.node_id not in (None, first_id)
    assert a.engine.running == []
    assert (await b.runs("job"))[0].outcome == "running"
    await world.until("01-01 01:10:00")
    (run,) = await b.runs("job")
    assert (run.outcome, run.attempt, short(run.ended_at)) == ("succeeded", 2, short(run.ended_at))
    assert one.running == 0
    await world.until("01-01 02:30:00")
    assert len(one.fires) + len(other.fires) == 3  # the instant that was tried twice, and one more


@virtual
async def test_a_node_that_was_voided_tries_its_own_runs_again_and_keeps_their_deadline(world: World) -> None:
    """The same process takes the run up again: the old attempt is ended, the new one has its place and its deadline."""
    shortly_before(world)
    bot = Bot(world, usual=HOUR)
    bot.script = [lambda: tidy_up(world, 4 * SECOND)]
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", HOURLY, timeout="20m")
    await world.until("01-01 01:01:00")
    run_id = app.engine.running[0]
    world.tamper("UPDATE nodes SET voided_at = 1")
    await world.until("01-01 01:02:00")
    assert [fire.attempt for fire in bot.fires] == [1, 2]
    assert (bot.running, bot.running_max) == (1, 1)  # OC#137215: not before the first has ended
    assert app.engine.running == [run_id]
    await world.until("01-01 01:30:00")
    assert bot.running == 0
    assert await ledger(app, "job") == ["01-01 01:00:00 timedOut"]


@virtual
async def test_a_late_end_of_a_fenced_attempt_does_not_take_the_newer_one_with_it(world: World) -> None:
    """The old attempt outlasts every grace: when it ends at last, the newer one keeps its place and its deadline."""
    shortly_before(world)
    bot = Bot(world, usual=HOUR)
    bot.script = [lambda: tidy_up(world, 2 * MINUTE)]
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", HOURLY, timeout="20m")
    await world.until("01-01 01:01:00")
    run_id = app.engine.running[0]
    world.tamper("UPDATE nodes SET voided_at = 1")
    await world.until("01-01 01:05:00")
    assert [fire.attempt for fire in bot.fires] == [1, 2]
    assert app.engine.running == [run_id]
    await world.until("01-01 01:30:00")
    assert bot.running == 0
    assert await ledger(app, "job") == ["01-01 01:00:00 timedOut"]


@virtual
async def test_a_suspended_machine_renews_before_it_scans(world: World) -> None:
    """§4: after an hour of sleep the lone node finds its lease over, keeps its runs, and doubles nothing."""
    bot = Bot(world)
    app = await world.open(bot, is_shared=True, limits=LEASED)
    await app.add("job", every("10m"))
    await world.until("01-01 00:15:00")
    app.machine.freeze()
    await world.sleep("1h")
    app.clock.suspend(HOUR)
    app.machine.thaw()
    await world.until("01-01 01:35:00")
    assert bot.planned == ["01-01 00:10:00", "01-01 01:10:00", "01-01 01:20:00", "01-01 01:30:00"]
    assert (await ledger(app, "job"))[1] == "01-01 00:20:00 missed (suspended) x5"


@pytest.mark.parametrize("is_unset", [False, True], ids=["three hours back", "to 1970"])
@virtual
async def test_a_clock_that_goes_back_takes_no_lease_from_a_live_node(world: World, is_unset: bool) -> None:
    """The leases of the others lie ahead of it until they renew: their runs continue, and are not tried again."""
    shortly_before(world)
    one, other = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    a, b = await two(world, one, other)
    a.machine.freeze()
    await b.add("job", HOURLY)
    await world.until("01-01 01:00:01")
    a.machine.thaw()
    await world.sleep("1m")
    assert len(other.fires) == 1
    node_id = b.engine.node_id
    b.machine.freeze()  # so that a is the first to see it
    world.clock.set(90 * SECOND if is_unset else world.now - 3 * HOUR)
    await world.sleep("12s")
    b.machine.thaw()
    await world.sleep("12m")
    assert one.fires == []
    assert b.engine.node_id == node_id
    assert await ledger(b, "job") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_clock_that_goes_forward_takes_no_lease_from_a_live_node(world: World) -> None:
    """By the new time the leases of the others are over, until they renew: their runs are not tried again."""
    shortly_before(world)
    one, other = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    a, b = await two(world, one, other)
    a.machine.freeze()
    await b.add("job", every("4h", anchor="2026-01-01T01:00:00Z"))
    await world.until("01-01 01:00:01")
    a.machine.thaw()
    await world.sleep("1m")
    node_id = b.engine.node_id
    b.machine.freeze()  # so that a is the first to see it
    world.clock.step(3 * HOUR)
    await world.sleep("12s")
    b.machine.thaw()
    await world.sleep("12m")
    assert (len(other.fires), one.fires) == (1, [])
    assert b.engine.node_id == node_id
    assert await ledger(b, "job") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_node_that_died_before_the_clock_went_forward_is_replaced(world: World) -> None:
    """It is waited for one lease longer, and no more."""
    shortly_before(world)
    one, other = Bot(world, usual=10 * MINUTE), Bot(world, usual=10 * MINUTE)
    a, b = await two(world, one, other)
    a.machine.freeze()
    await b.add("job", every("4h", anchor="2026-01-01T01:00:00Z"))
    await world.until("01-01 01:00:01")
    a.machine.thaw()
    await world.sleep("10s")
    await b.kill()
    world.clock.step(2 * HOUR)
    await world.sleep("1m")
    assert [fire.attempt for fire in one.fires] == [2]


@virtual
async def test_leases_are_renewed_during_the_grace_of_a_shutdown(world: World) -> None:
    """Shutting down slowly is not being dead: nobody takes the run, and its end is recorded."""
    shortly_before(world)
    one, other = Bot(world, usual=3 * MINUTE), Bot(world)
    a, b = await two(world, one, other, shutdown_grace="5m")
    b.machine.freeze()
    await a.add("job", HOURLY)
    await world.until("01-01 01:00:01")
    b.machine.thaw()
    await a.stop()
    assert short(world.now) == "01-01 01:03:00"
    assert other.fires == []
    assert await ledger(b, "job") == ["01-01 01:00:00 succeeded"]


@virtual
async def test_a_node_that_leaves_says_so(world: World) -> None:
    """Its row is voided, and the others need not wait for its lease."""
    a, b = await two(world, Bot(world), Bot(world))
    await a.stop()
    assert world.query("SELECT name FROM nodes WHERE voided_at IS NULL") == [("b",)]
    assert b._is_ticking


@virtual
async def test_on_one_file_only_one_process_ticks_and_the_next_takes_over_at_once(world: World) -> None:
    """HA#59229: the embedded store. The one that waits says so, and needs no lease to run out."""
    shortly_before(world)
    one, other = Bot(world, usual=10 * MINUTE), Bot(world)
    a = await world.open(one, name="a")
    b = await world.open(other, name="b")
    assert (a._is_ticking, b._is_ticking) == (True, False)
    await b.add("job", HOURLY)
    await world.until("01-01 01:01:00")
    assert (len(one.fires), len(other.fires)) == (1, 0)
    await a.kill()
    await world.sleep("3s")
    assert b._is_ticking
    assert [fire.attempt for fire in other.fires] == [2]


async def tidy_up(world: World, takes: int) -> None:
    """Work until cancelled, and then take a moment to end."""
    try:
        await world.clock.sleep(HOUR)
    finally:
        await world.clock.sleep(takes)


@virtual
async def test_a_node_that_lost_its_lease_claims_nothing_before_it_begins_anew(world: World) -> None:
    """Between two renewals it would not know: the run would belong to a name that is void already."""
    bot = Bot(world)
    app = await world.open(bot, is_shared=True, limits={"lease": HOUR, "renew_every": HOUR // 3})
    await app.add("job", every("10m"))
    await world.until("01-01 00:05:00")
    before = app.engine.node_id
    world.tamper("UPDATE nodes SET voided_at = ?", world.now)
    await world.until("01-01 00:11:00")
    assert app.engine.node_id != before
    assert await ledger(app, "job") == ["01-01 00:10:00 succeeded"]
    assert world.query("SELECT count(*) FROM nodes WHERE voided_at IS NULL") == [(1,)]
    assert bot.began == ["01-01 00:10:00"]


class _AtClaim(AllTogether):
    """Lets something happen a number of rounds of the loop after a run was claimed, or in the commit itself."""

    def __init__(self, world: World, rounds: int, then: Callable[[], None]) -> None:
        self._world = world
        self._rounds = rounds
        self._then = then
        self.is_set = True

    def after_commit(self) -> None:
        if self.is_set and self._world.query("SELECT 1 FROM runs WHERE outcome = 'running'"):
            self.is_set = False
            self._count(self._rounds)

    def _count(self, rounds: int) -> None:
        if rounds == 0:
            self._then()
        else:
            self._world.loop.call_soon(self._count, rounds - 1, context=Context())


FREEZES = [
    (rounds, on_crash, is_suspend)
    for rounds in range(12)
    for on_crash in ("retry", "unknown")
    for is_suspend in (False, True)
]


@pytest.mark.parametrize(("rounds", "on_crash", "is_suspend"), sampled(FREEZES, every=26))
def test_a_node_frozen_between_claim_and_begin_begins_nothing_when_it_goes_on(
    tmp_path: Path, rounds: int, on_crash: Any, is_suspend: bool
) -> None:
    """DESIGN 8.8, L5: it stands still at any step after the claim, its lease runs out, and the lane goes to another."""
    run(_freeze_after_claim(tmp_path, rounds, on_crash, is_suspend))


async def _freeze_after_claim(folder: Path, rounds: int, on_crash: Any, is_suspend: bool) -> None:
    world = World(folder)
    shortly_before(world)
    frozen, other = Bot(world, usual=HOUR), Bot(world, usual=10 * MINUTE)
    begun_before: list[int] = []

    def freeze() -> None:
        begun_before.append(len(frozen.fires))
        a.machine.freeze()

    hook = _AtClaim(world, rounds, freeze)
    a = await world.open(frozen, name="a", is_shared=True, limits=LEASED, hook=hook)
    clock = VirtualClock(world.loop, wall=world.wall)
    await a.add("first", HOURLY, lane="lane", on_crash=on_crash)
    await a.add("second", HOURLY, lane="lane", on_crash=on_crash)
    await world.until("01-01 00:59:50")
    b = await world.open(other, name="b", is_shared=True, limits=LEASED, clock=clock)
    b.machine.freeze()
    await world.until("01-01 01:00:01")
    assert begun_before, "the claim was not seen"
    b.machine.thaw()
    await world.until("01-01 01:02:00")
    assert other.running == 1  # it took the lane
    if is_suspend:
        a.clock.suspend(2 * MINUTE)
    a.machine.thaw()
    await world.sleep("10s")
    assert len(frozen.fires) == begun_before[0]
    assert frozen.running == 0
    assert other.running == 1
    await world.close()


@virtual
async def test_a_lone_node_that_was_frozen_begins_what_it_claimed_after_it_renewed(world: World) -> None:
    """Its lease ran out and nobody took it: the run is still its own."""
    shortly_before(world)
    bot = Bot(world)
    hook = _AtClaim(world, 1, lambda: app.machine.freeze())  # noqa: PLW0108 - it is opened after this line
    app = await world.open(bot, is_shared=True, limits=LEASED, hook=hook)
    await app.add("job", HOURLY, timeout="1m")
    await world.until("01-01 01:02:00")
    assert bot.fires == []
    app.machine.thaw()
    await world.sleep("1s")
    assert bot.planned == ["01-01 01:00:00"]
    assert await ledger(app, "job") == ["01-01 01:00:00 succeeded"]
