"""APScheduler 3: registrations, then a burst of jobs due at the same instant.

Jobs are added while the scheduler is paused, due at once, and the burst begins when it is resumed. A one-shot job is
deleted when it starts and a recurring one is moved on, each in a transaction of its own; of the run itself nothing is
recorded. There is no way to add in bulk.
"""

import argparse
import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.base import BaseScheduler

from bench.calls import Calls, ThreadCalls
from bench.lines import emit
from bench.peers.apscheduler_setup import make_scheduler
from bench.peers.registering import register

calls: Calls | ThreadCalls = ThreadCalls(
    0
)  # jobs are stored by the name of their function, so it has to be found from there


def note() -> None:
    calls.note()


async def note_async() -> None:
    calls.note()


def add_all(scheduler: BaseScheduler, function: Any, options: argparse.Namespace) -> int:
    """Register jobs that are due immediately; returns how many."""
    now = datetime.now(UTC)
    timing: dict[str, Any] = {"trigger": "date", "run_date": now}
    if options.recurring:
        timing = {"trigger": "interval", "hours": 1, "next_run_time": now}

    def add(number: int) -> None:
        scheduler.add_job(function, id=f"fire-{number}", **timing)

    return register(add, options.fires, options.seconds, options.callers)


def burst_threads(options: argparse.Namespace) -> None:
    global calls  # noqa: PLW0603 - see above
    scheduler = make_scheduler(options.store, "threads")
    scheduler.start(paused=True)
    count = add_all(scheduler, note, options)
    calls = arrived = ThreadCalls(count)
    due = time.perf_counter()
    scheduler.resume()
    arrived.wait(120)
    emit(options.measure, count / (time.perf_counter() - due), count=count)
    scheduler.shutdown()


async def burst_asyncio(options: argparse.Namespace) -> None:
    global calls  # noqa: PLW0603 - see above
    scheduler = make_scheduler(options.store, "asyncio")
    scheduler.start(paused=True)
    count = add_all(scheduler, note_async, options)
    calls = arrived = Calls(count)
    due = time.perf_counter()
    scheduler.resume()
    await arrived.wait(120)
    emit(options.measure, count / (time.perf_counter() - due), count=count)
    scheduler.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--measure", default="fires")
    parser.add_argument("--executor", choices=("threads", "asyncio"), required=True)
    parser.add_argument("--fires", type=int, required=True)
    parser.add_argument("--callers", type=int, default=1, help="register from that many threads")
    parser.add_argument("--seconds", type=float, required=True, help="register no longer than this")
    parser.add_argument("--recurring", action="store_true")
    options = parser.parse_args()
    if options.executor == "asyncio":
        asyncio.run(burst_asyncio(options))
    else:
        burst_threads(options)


if __name__ == "__main__":
    main()
