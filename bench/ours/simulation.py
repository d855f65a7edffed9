"""Simulations: how fast simulated fires are, what a draft costs, and how late a schedule starts meanwhile."""

import argparse
import asyncio
import resource
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.lines import emit
from bench.ours.setup import make_app, schedules
from wakeful import Wakeful, cron, every

SCHEDULES: Final = 100
PERIOD: Final = timedelta(seconds=1)
TICK: Final = "tick-0"


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
