"""Simulations: how fast simulated fires and turns are, what a draft costs, and how late a schedule starts meanwhile."""

import argparse
import asyncio
import random
import resource
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.lines import emit
from bench.ours.setup import make_app, schedules
from wakeful import New, Wakeful, cron, every
from wakeful.core.money.charges import Charge, opened, settled
from wakeful.core.run.runs import Outcome, Run
from wakeful.core.time.instants import HOUR
from wakeful.core.time.timing import Cron
from wakeful.ports.charges import Charges
from wakeful.ports.store import Tx

SCHEDULES: Final = 100
PERIOD: Final = timedelta(seconds=1)
TICK: Final = "tick-0"
AGENTS: Final = 20
RECORDED: Final = 100
FAILING: Final = 0.01
"""The share of failed turns in the record."""


async def fill(app: Wakeful) -> None:
    """A hundred schedules: eighty run daily, twenty hourly."""
    for n in range(SCHEDULES):
        timing = f"{n % 60} * * * *" if n % 5 == 0 else f"{n * 7 % 60} {n % 24} * * *"
        await app.add(f"s{n}", cron(timing, tz="UTC"), command=["true"])


async def fires(app: Wakeful, wanted: int) -> None:
    """One simulation with about that many fires, in a process of its own, from the call to the answer."""
    drafts = [
        {
            "slug": f"often-{n}",
            "schedule": {"type": "cron", "expression": "*/5 * * * *", "timezone": "UTC"},
            "command": {"argv": ["true"]},
        }
        for n in range(SCHEDULES)
    ]
    days = max(wanted // (SCHEDULES * 288), 1)
    began, cpu = time.perf_counter(), _cpu()
    answer = await app.simulate(days=days, drafts=drafts)
    took, spent = time.perf_counter() - began, _cpu() - cpu
    runs = sum(row["runs"] for row in answer["schedules"])
    emit("simulated fires", runs / took, fires=runs, seconds=took, cpu_us=spent / runs * 1e6)


async def fill_mixed(app: Wakeful) -> None:
    """Twenty agents with five prompts each, and a hundred commands, all every twenty minutes. Of the prompts of an
    agent, two pairs are due together. They have a record: turns of half a minute on average, with usage and cost, of
    which one in a hundred failed. Every fourth has a budget, which is not reached."""
    await app.add_many(
        [
            *(
                New(f"prompt-{n}", _mixed(n), prompt="go on", agent=f"agent-{n % AGENTS}", **_budget(n))
                for n in range(SCHEDULES)
            ),
            *(New(f"command-{n}", _mixed(n), command=["true"]) for n in range(SCHEDULES)),
        ]
    )
    dice, now = random.Random(7), app._moment().now  # noqa: S311 - the same record each time

    def write(tx: Tx) -> None:
        known = tx.schedules.by_slugs([f"prompt-{n}" for n in range(SCHEDULES)])
        for n in range(SCHEDULES):
            schedule_id, ids = known[f"prompt-{n}"].schedule_id, tx.runs.reserve_ids(RECORDED)
            tx.runs.add_many([_turn(run_id, schedule_id, now, dice) for run_id in ids])
            tx[Charges].put_many([_cost(run_id, schedule_id, f"agent-{n % AGENTS}", now, dice) for run_id in ids])

    await app._store.write(write)


def _mixed(n: int) -> Cron:
    return cron(f"{(n + n // AGENTS // 2 * 7) % 20}/20 * * * *", tz="UTC")


def _budget(n: int) -> dict[str, Any]:
    return {"budget": {"perDay": 20.0}} if n % 4 == 0 else {}


def _turn(run_id: int, schedule_id: int, now: int, dice: random.Random) -> Run:
    """A turn that began an hour ago."""
    began = now - HOUR - run_id
    outcome: Outcome = "failed" if dice.random() < FAILING else "succeeded"
    ended = began + dice.randrange(2_000, 58_000)
    return Run(
        run_id, "schedule", schedule_id, began, began, None, 1, began, "schedule", outcome, None, "finished", 1, 0, 0,
        1, None, None, 1, 1, began, began, ended, None, None, None, None, None, None, None, None, 0,
    )  # fmt: skip


def _cost(run_id: int, schedule_id: int, agent: str, now: int, dice: random.Random) -> Charge:
    tokens = dice.randrange(1_000, 20_000)
    charge = opened(run_id, 1, schedule_id, agent, now - HOUR - run_id)
    return settled(charge, {"total": tokens, "cost": tokens / 100_000}, charge.at + 1)


async def mixed(store: str, wanted: int) -> None:
    """One simulation of a plan in which every second fire is a turn of an agent."""
    app = make_app(f"{store}.mixed", lambda fire: None, tick=False, agent_interval_min="10m")
    for n in range(AGENTS):
        app.agent(f"agent-{n}")(_reply)
    async with app:
        await fill_mixed(app)
        began, cpu = time.perf_counter(), _cpu()
        answer = await app.simulate(days=-(-wanted // (2 * SCHEDULES * 72)))
        took, spent = time.perf_counter() - began, _cpu() - cpu
    rows = answer["schedules"]
    runs, turns = sum(row["runs"] for row in rows), sum(row["runs"] for row in rows if row["tokens"])
    emit("simulated fires, half of them turns", runs / took, fires=runs, turns=turns, seconds=took, cpu_s=spent)


async def _reply(prompt: str) -> str:
    return prompt


async def difference(app: Wakeful) -> None:
    """What one draft changes in a week of a hundred schedules."""
    draft = {
        "slug": "draft",
        "schedule": {"type": "every", "every": "2h"},
        "command": {"argv": ["true"]},
    }
    began, cpu = time.perf_counter(), _cpu()
    await app.simulate(days=7, drafts=[draft])
    emit("difference of a draft", time.perf_counter() - began, cpu_s=_cpu() - cpu)


def _cpu() -> float:
    """Processor time of the processes that have ended: both plans."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def measure(options: argparse.Namespace) -> None:
    late: list[float] = []

    async def handler(fire: Any) -> None:
        late.append(time.time() - fire.planned_at.timestamp())

    app = make_app(options.store, handler, every_min="1s")
    async with app:
        await fill(app)
        await difference(app)
        await fires(app, options.fires)
        await mixed(options.store, options.fires)
        begin = datetime.now(UTC) + timedelta(seconds=1)
        await app.add_many(schedules(1, "tick", lambda i: every(PERIOD, anchor=begin)))
        await asyncio.sleep(3)
        alone, late[:] = max(late, default=0.0), []
        until = datetime.now(UTC) + timedelta(hours=2)
        await app.simulate(until=until, without=[TICK])  # the present plan has it: 7,200 fires
        emit("lateness beside a simulation", max(late, default=0.0) * 1000, alone=alone * 1000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--fires", type=int, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
