"""Procrastinate: registrations one by one and in bulk, then a burst of jobs due at the same instant.

The worker starts when all jobs are due. Each is fetched in a transaction of its own and marked in another; the time
ends with the last call, a moment before its mark.
"""

import argparse
import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from procrastinate import App
from procrastinate.tasks import Task

from bench.budget import within
from bench.calls import Calls
from bench.lines import emit
from bench.peers.procrastinate_setup import POLLING, make_app

CALLERS = 200


async def register_singly(task: Task, count: int, seconds: float) -> None:
    """From many concurrent callers, each adding one at a time; none is due today."""
    at = datetime.now(UTC) + timedelta(days=1)
    numbers = within(count, seconds)
    added = 0

    async def caller() -> None:
        nonlocal added
        for _ in numbers:
            await task.configure(schedule_at=at).defer_async()
            added += 1

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    emit("registrations", added / (time.perf_counter() - began), count=added)


async def register_in_bulk(task: Task, count: int, locks: int) -> None:
    at = datetime.now(UTC)
    began = time.perf_counter()
    for lock in range(max(locks, 1)):
        rows: list[dict[str, object]] = [{} for _ in range(lock, count, max(locks, 1))]
        await task.configure(schedule_at=at, lock=f"lane-{lock}" if locks else None).batch_defer_async(*rows)
    if not locks:
        emit("registrations in bulk", count / (time.perf_counter() - began), count=count)


async def burst(app: App, calls: Calls, options: argparse.Namespace) -> None:
    due = time.perf_counter()
    worker = asyncio.create_task(
        app.run_worker_async(
            concurrency=options.concurrency, install_signal_handlers=False, fetch_job_polling_interval=POLLING
        )
    )
    await calls.wait(120)
    emit(options.measure, options.fires / (time.perf_counter() - due), count=options.fires)
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker


async def measure(options: argparse.Namespace) -> None:
    calls = Calls(options.fires)
    app = make_app(options.store)

    @app.task
    async def note() -> None:
        calls.note()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        if options.singles:
            await register_singly(note, options.singles, options.seconds)
        await register_in_bulk(note, options.fires, options.locks)
        await burst(app, calls, options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--measure", default="fires")
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--singles", type=int, default=0)
    parser.add_argument("--fires", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="register one by one no longer than this")
    parser.add_argument("--locks", type=int, default=0, help="share that many locks; 0: none")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
