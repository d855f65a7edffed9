"""An agent that costs money, on virtual time."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from features.kit import Bench, World
from wakeful.app.with_cost import estimated_cost
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.instants import parse_duration
from wakeful.ports.action import Fire, Ladder


class Spender:
    """Performs prompts: takes its time, and reports what it used. `cost = None` reports nothing."""

    is_local = False

    def __init__(self, world: World, cost: float | None = 0.30, *, takes: str = "1s") -> None:
        self._world = world
        self.cost: float | Callable[[Fire], float | None] | None = cost
        self.takes = takes
        self.hesitates = "0s"  # before it sends anything
        self.fires: list[Fire] = []
        self.prompts: list[str] = []
        self.spent = 0.0
        self.tokens = 1100
        self.fails = 0  # how many of the next turns fail

    def proves(self, spec: Any) -> str:
        return "finished"

    def check(self, spec: Any) -> None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        await self._world.clock.sleep(parse_duration(self.hesitates))
        await ladder.climb("sent")
        self.fires.append(fire)
        self.prompts.append(spec.text if isinstance(spec, Prompt) else "")
        cost = self.cost(fire) if callable(self.cost) else self.cost
        self.spent += cost or 0
        await self._world.clock.sleep(parse_duration(self.takes))
        used: Usage | None = None if cost is None else {"total": self.tokens, "cost": cost}
        if self.fails:
            self.fails -= 1
            return Failed("the model failed", usage=used)
        return Done(reply="done", usage=used)

    async def close(self) -> None: ...


async def open_spending(world: World, agent: Spender, **settings: Any) -> Bench:
    """An app whose prompts go to this agent, many at a time."""
    given = {"agent_interval_min": "0s", "agent_lane": "parallel", **settings}
    return await world.open(actions={Prompt: agent}, **given)


async def estimate_of(app: Bench, by_slug: Mapping[str, int]) -> float | None:
    """What so many runs of schedules may cost."""
    money = app._money_terms
    return await app._look(lambda tx, now: estimated_cost(tx, by_slug, money, now=now))


def traced(patch: pytest.MonkeyPatch) -> list[str]:
    """Every SQL statement from here on, of stores that are opened later."""
    heard: list[str] = []
    connect = sqlite3.connect

    def listening(*given: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*given, **options)
        connection.set_trace_callback(heard.append)
        return connection

    patch.setattr(sqlite3, "connect", listening)
    return heard
