"""A recorded week: a ledger in which prompt schedules ran at steady times, at noisy costs."""

import math
import random
from pathlib import Path
from typing import Any

from wakeful.core.money.charges import Charge
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import DAY, HOUR, Instant
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx
from wakeful.stores.sqlite.store import SqliteStore

WEEK = 7 * DAY


class Schedule:
    """One steady schedule: its period, and what a turn costs on average."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.slug = f"p{number}"
        self.every = rng.choice((HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR))
        self.mean = rng.uniform(0.01, 0.5)
        self.noise = rng.uniform(0.2, 0.8)
        self.rng = rng

    @property
    def definition(self) -> dict[str, Any]:
        return {"schedule": {"type": "every", "every": f"{self.every // HOUR}h"}, "prompt": "go on"}

    def cost(self) -> float:
        """What one turn costs: skewed, as real ones are."""
        return self.mean * math.exp(self.rng.gauss(-(self.noise**2) / 2, self.noise))

    def week(self) -> float:
        """What all turns of a week cost."""
        return sum(self.cost() for _ in range(WEEK // self.every))


def steady(seed: int, many: int = 12) -> list[Schedule]:
    rng = random.Random(seed)
    return [Schedule(number, rng) for number in range(many)]


async def record(path: Path, schedules: list[Schedule], now: Instant) -> None:
    """Write the last week of these schedules into the ledger of a store."""
    store = await SqliteStore.open(path, shared_clock=True)

    def write(tx: Tx) -> None:
        known = tx.schedules.by_slugs([schedule.slug for schedule in schedules])
        for schedule in schedules:
            schedule_id = known[schedule.slug].schedule_id
            times = [now - n * schedule.every for n in range(WEEK // schedule.every, 0, -1)]
            ids = tx.runs.reserve_ids(len(times))
            tx.runs.add_many([_run(run_id, schedule_id, at) for run_id, at in zip(ids, times, strict=True)])
            tx[Charges].put_many(
                [_charge(run_id, schedule_id, at, schedule.cost()) for run_id, at in zip(ids, times, strict=True)]
            )

    await store.write(write)
    await store.close()


def _run(run_id: int, schedule_id: int, at: Instant) -> Run:
    return Run(
        run_id, "schedule", schedule_id, at, at, None, 1, at, "schedule", "succeeded", None, "finished", 1, 0, 0, 1,
        "agent:default", None, 1, 1, at, at, at + 30_001, None, None, None, None, None, None, None, None, 0,
    )  # fmt: skip


def _charge(run_id: int, schedule_id: int, at: Instant, cost: float) -> Charge:
    tokens, amount = round(cost * 10_000), round(cost * 1e9)
    figures = (tokens, None, None, None, tokens, amount, "reported", 0, 0)
    return Charge(run_id, 1, schedule_id, "default", None, at, at + 30_001, *figures)
