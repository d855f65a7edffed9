"""Registrations one by one and in bulk, then a burst of schedules due at the same instant."""

import argparse
import asyncio
import time
from datetime import timedelta

from bench.calls import Calls
from bench.lines import emit
from bench.ours.setup import make_app, schedules, settled, soon
from wakeful import Wakeful, every, once
from wakeful.core.time.timing import Timing

CALLERS = 200
# The lowest bulk rate at which all are written before they are due.
BULK_RATE_MIN = 6_000
LEAD = 0.5


async def register_singly(app: Wakeful, count: int) -> None:
    """From many concurrent callers, each adding one at a time; none is due today."""
    at = once(soon(86_400))
    numbers = iter(range(count))

    async def caller() -> None:
        for number in numbers:
            await app.add(f"single-{number}", at)

    began = time.perf_counter()
    cpu = time.process_time()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took = time.perf_counter() - began
    emit("registrations", count / took, cpu_us=(time.process_time() - cpu) / count * 1e6, count=count)


async def burst(app: Wakeful, calls: Calls, measure: str, *, is_recurring: bool, lanes: int) -> None:
    """Add them all, wait until they are due, and until the last one is in the ledger."""
    count = calls.expected
    due_at = soon(LEAD + count / BULK_RATE_MIN)
    timing: Timing = every(timedelta(hours=1), anchor=due_at) if is_recurring else once(due_at)
    options = {"lane": lambda i: f"lane-{i % lanes}"} if lanes else {}
    new = schedules(count, "fire", lambda _: timing, **options)
    cpu, began = time.process_time(), time.perf_counter()
    await app.add_many(new)
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    if soon(0) >= due_at:
        raise RuntimeError("it took too long to write them: some were due before all were there")
    emit("registrations in bulk", count / took, cpu_us=spent / count * 1e6, count=count)
    cpu = time.process_time()
    due = time.perf_counter() + (due_at - soon(0)).total_seconds()
    await calls.wait(120)
    end = await settled(app, 30)
    spent = (time.process_time() - cpu) / count * 1e6
    emit(measure, count / (end - due), cpu_us=spent, count=count)


async def measure(options: argparse.Namespace) -> None:
    calls = Calls(options.fires)

    async def handler() -> None:
        calls.note()

    async with make_app(options.store, handler) as app:
        if options.singles:
            await register_singly(app, options.singles)
        await burst(app, calls, options.measure, is_recurring=options.recurring, lanes=options.lanes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--measure", default="fires")
    parser.add_argument("--singles", type=int, default=0)
    parser.add_argument("--fires", type=int, required=True)
    parser.add_argument("--recurring", action="store_true")
    parser.add_argument("--lanes", type=int, default=0, help="share that many lanes; 0: none")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
