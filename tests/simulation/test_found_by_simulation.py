"""What the simulation found, kept as the shortest world that shows it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wakeful.core.run.results import Done, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Call
from wakeful.core.time.instants import DAY, HOUR, MINUTE, Instant, format_instant
from wakeful.engine.limits import Limits
from wakeful.integrations.net.exchange import within
from wakeful.ports.action import Fire
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.virtual_clock import EPOCH, VirtualClock
from wakeful.testing.virtual_loop import Process, VirtualLoop, drain
from worlds.faults import Climate
from worlds.performers import Programs
from worlds.replay import simulate
from worlds.system import System, assemble
from worlds.world import World


class Calm:
    """A store's hook under which nothing happens."""

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


class Slow:
    """An action that takes as long as its schedule's `args` say, and remembers what it was asked for."""

    proves: RungName = "finished"
    is_local = True

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.fired: list[tuple[str, Instant]] = []

    def check(self, _: Any) -> str | None:
        return None

    async def perform(self, spec: Call, fire: Fire, _: Any) -> Result:
        self.fired.append((fire.slug, fire.planned_at))
        await self._clock.sleep(spec.args.get("takes", 0))
        return Done()

    async def close(self) -> None: ...


@asynccontextmanager
async def running(clock: VirtualClock, action: Slow, path: Path) -> AsyncIterator[System]:
    store = SqliteStore.open_inline(path, hook=Calm(), shared_clock=False)
    orphans = Programs(rng=None, remains=lambda *_: None)  # type: ignore[arg-type]  # no programs here
    system = await assemble(store, clock, {Call: action}, orphans.end, Limits(), "node")
    await system.engine.start()
    try:
        yield system
    finally:
        await system.engine.stop()
        await store.close()


def hourly(past: int, **args: Any) -> dict[str, Any]:
    """Every hour, so many minutes past it, in the lane that all share."""
    anchor = format_instant(EPOCH + past * MINUTE)
    return {
        "schedule": {"type": "every", "every": "1h", "anchor": anchor},
        "call": {"target": "anything", "args": args},
        "lane": "shared",
    }


def test_what_was_given_up_ahead_of_the_clock_does_not_stop_the_clock(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock is an hour ahead, a run of 01:00 waits for its lane, the clock comes back, a pause gives the run up.

    When it is 01:00 in truth, the row is there; planning it again must neither fail nor silence everybody else.
    """
    loop = VirtualLoop()
    clock = VirtualClock(loop)
    action = Slow(clock)

    async def main() -> None:
        async with running(clock, action, tmp_path / "wakeful.db") as system:
            await system.put("waits", hourly(0))
            await system.put("holds", hourly(4, takes=20 * MINUTE))
            await clock.sleep(5 * MINUTE)
            clock.step(HOUR)
            await clock.sleep(2 * MINUTE)
            clock.step(-HOUR)
            await clock.sleep(2 * MINUTE)
            await system.pause("waits", None)
            await clock.sleep(MINUTE)
            await system.resume("waits")
            await clock.sleep(3 * HOUR)

    try:
        loop.run(main())
    finally:
        drain(loop)
    assert "a tick failed" not in caplog.text
    assert ("holds", EPOCH + 2 * HOUR + 4 * MINUTE) in action.fired
    assert ("waits", EPOCH + 2 * HOUR) in action.fired


@pytest.mark.torture
@pytest.mark.parametrize(("seed", "days", "room"), [(171, 25, 2), (203, 34, 4)])
def test_a_lease_from_a_clock_that_was_ahead_ends_with_its_node(
    seed: int, days: int, room: int, tmp_path: Path
) -> None:
    """Nodes that died while the clock said 2036 lose their runs soon after it is corrected, and not in ten years."""
    climate = Climate(
        days=days, nodes=2, outages_per_day=0.4, steps_per_day=0.3, wrong_clocks_per_day=0.05, freezes_per_day=2,
        deeds_per_day=5, crash_per_commit=0.006, lease=HOUR, outage_max=DAY, schedules=10, pace=2 * HOUR,
    )  # fmt: skip
    limits = Limits(concurrency_max=room, lease=HOUR, renew_every=20 * MINUTE, sleep_max=30 * MINUTE)
    World(seed, climate, limits, tmp_path, assemble).run()


@pytest.mark.torture
def test_an_edit_on_a_clock_that_is_not_set_moves_nothing_back() -> None:
    """A schedule that is done is given a new timing while the clock says 1970: what is planned stays planned."""
    simulate(173, inhabitants=frozenset(), is_left_alone=True)


@pytest.mark.parametrize(
    ("seed", "days", "inhabitants"),
    [
        pytest.param(
            8083, 3.3, {"heartbeat", "outbox"}, marks=pytest.mark.torture, id="a beat that joins a turn is due with it"
        ),
        pytest.param(
            6037,
            1.7,
            {"heartbeat", "outbox"},
            marks=pytest.mark.torture,
            id="a gap nobody could cut ends where the clock came back to",
        ),
        pytest.param(307, 0.2, {"money", "outbox"}, id="an agent's output is not its reply"),
    ],
)
def test_worlds_that_were_broken_hold(seed: int, days: float, inhabitants: set[str]) -> None:
    """Each as far as it was broken, or a little further."""
    simulate(seed, days=days, inhabitants=frozenset(inhabitants), is_left_alone=True)


def test_an_answer_that_comes_with_the_deadline_is_not_thrown_away() -> None:
    """A process stands still while it waits for an answer, past the deadline; the answer was there before that."""
    loop = VirtualLoop()
    clock = VirtualClock(loop)
    process = Process(loop, "laptop")

    async def ask() -> str:
        await clock.sleep(20_000)
        return "it arrived"

    async def main() -> str:
        asking = process.start(within(clock, 50_000, ask()))
        await clock.sleep(10_000)
        process.freeze()
        await clock.sleep(100_000)
        process.thaw()
        return await asking

    try:
        assert loop.run(main()) == "it arrived"
    finally:
        drain(loop)
