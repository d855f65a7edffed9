"""Random worlds with money: agents that cost something and fail, nodes that die, reports that are lost.

After every commit the laws of money are asked. Each protection is taken away once, and the laws must notice."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from features.kit import AllTogether, Bench, World, virtual
from features.money_kit import Spender
from wakeful import every
from wakeful.app.money import Budgets
from wakeful.core.money import charges as core_charges
from wakeful.core.money.charges import Charge
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Prompt
from wakeful.features.money import booking, reserving
from wakeful.ports.action import Fire, Ladder
from worlds import money_laws as laws

LIMIT = 3_000_000_000
TOKENS = 100


class Model(Spender):
    """A model server: it counts what it serves, whatever becomes of the report."""

    def __init__(self, world: World, rng: random.Random, cost: float | None) -> None:
        super().__init__(world, cost)
        self._rng = rng
        self.served: dict[tuple[int, int], int] = {}

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        await self._world.clock.sleep(self._rng.randrange(2_000))
        await ladder.climb("sent")
        tokens = TOKENS + self._rng.randrange(1_000)
        self.served[fire.run_id, fire.attempt] = tokens
        await self._world.clock.sleep(self._rng.randrange(60_000))
        cost = self._rng.choice((0.05, 0.1, 0.4)) if self.cost is None else 0.3
        used: Usage | None = {"input": tokens - 10, "output": 10, "total": tokens, "cost": cost}
        if self._rng.random() < 0.05:
            used = None  # the report is lost
        return Failed("the model failed", usage=used) if self._rng.random() < 0.2 else Done(reply="ok", usage=used)


class Judge(AllTogether):
    """Asks the laws after every commit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.broken: list[str] = []

    def after_commit(self) -> None:
        for budget in laws.sums_of(self._world.query):
            self.broken += [*laws.sums_add_up(budget), *laws.holds(budget, LIMIT)]


async def _live(world: World, seed: int, hours: int, *, is_crowd: bool = False) -> tuple[Judge, Model]:
    """Some hours with schedules, crashes and restarts. One agent at a time has turns of any cost; in parallel all turns
    cost the same, because an estimate cannot know better."""
    rng = random.Random(seed)
    is_serial = rng.random() < 0.5 and not is_crowd
    model, judge = Model(world, rng, None if is_serial else 0.3), Judge(world)
    lane = "serial" if is_serial else "parallel"

    async def start() -> Bench:
        return await world.open(
            actions={Prompt: model},
            hook=judge,
            agent_lane=lane,
            agent_interval_min="0s",
            budgets=Budgets(day=LIMIT / 1e9),
        )

    app = await start()
    for number in range(20 if is_crowd else 6):
        minutes = 30 if is_crowd else rng.choice((10, 15, 30))
        await app.add(f"s{number}", every(f"{minutes}m"), prompt="work", retry={"times": 2, "delay": "1m"})
    for _ in range(hours):
        await world.sleep(rng.randrange(3_600_000))
        if rng.random() < 0.4:
            await app.kill()
            await world.sleep(rng.randrange(600_000))
            app = await start()
    await world.sleep("3h")
    rows = world.query("SELECT run_id, attempt, tokens FROM charges")
    judge.broken += laws.ledger_agrees(rows, model.served)
    return judge, model


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(3, 40))])
@virtual
async def test_the_laws_of_money_hold(world: World, seed: int) -> None:
    """Over a day with crashes, retries, failures and lost reports."""
    judge, model = await _live(world, seed, 24)
    assert judge.broken == []
    assert len(model.served) > 5


def _everything_fits(patch: pytest.MonkeyPatch) -> None:
    """A run starts whatever was reserved."""
    patch.setattr(reserving, "fit", lambda *_: "fits")


def _nothing_is_reserved(patch: pytest.MonkeyPatch) -> None:
    """Runs that start together do not know of each other."""
    patch.setattr(reserving, "amount_needed", lambda *_: 0)


def _the_unknown_is_free(patch: pytest.MonkeyPatch) -> None:
    """A report that was lost counts as nothing."""
    counted = booking._counted
    patch.setattr(booking, "_counted", lambda charge, *rest: 0 if charge.cost is None else counted(charge, *rest))


def _crashes_free_money(patch: pytest.MonkeyPatch) -> None:
    """What a dead node had spent is forgotten."""
    patch.setattr(booking, "_never_asked", lambda _: True)


def _failures_are_not_charged(patch: pytest.MonkeyPatch) -> None:
    """A late or repeated figure replaces another one."""

    def halved(charge: Charge, usage: Any, now: int) -> Charge:
        after = core_charges.settled(charge, usage, now)
        return after if after.tokens is None else after._replace(tokens=after.tokens // 2)

    patch.setattr(booking, "settled", halved)


@pytest.mark.parametrize(
    "sabotage",
    [
        _everything_fits,
        _nothing_is_reserved,
        _the_unknown_is_free,
        _crashes_free_money,
        _failures_are_not_charged,
    ],
)
@virtual
async def test_a_broken_protection_is_caught(
    world: World, sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one of the protections the laws say so."""
    sabotage(monkeypatch)
    judge, _ = await _live(world, 1, 16, is_crowd=sabotage is _nothing_is_reserved)
    assert judge.broken
