"""Procrastinate: how late jobs are called, 50 at a time, once a second. Each job carries the time it was due.

Its worker polls for jobs that are due later; as with Huey, each repeat has another phase.
"""

import argparse
import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from bench.peers.procrastinate_setup import POLLING, make_app
from bench.samples import emit_lateness


async def measure(options: argparse.Namespace) -> None:
    late: list[float] = []
    app = make_app(options.store)

    @app.task
    async def note(due: float) -> None:
        late.append(time.time() - due)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        first = datetime.now(UTC) + timedelta(seconds=2 + options.jobs * options.seconds / 1000)
        for i in range(options.seconds):
            due = first + timedelta(seconds=i)
            rows = [{"due": due.timestamp()} for _ in range(options.jobs)]
            await note.configure(schedule_at=due).batch_defer_async(*rows)
        await asyncio.sleep((first - datetime.now(UTC)).total_seconds() - options.phase)
        with suppress(TimeoutError):
            async with asyncio.timeout(options.phase + options.seconds + 2):
                await app.run_worker_async(
                    concurrency=options.concurrency, install_signal_handlers=False, fetch_job_polling_interval=POLLING
                )
    if len(late) != options.jobs * options.seconds:
        raise RuntimeError(f"only {len(late)} jobs were called")
    emit_lateness("lateness", late)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--phase", type=float, default=0.5, help="how long before the first are due the worker starts")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
