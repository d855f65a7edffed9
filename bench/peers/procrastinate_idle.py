"""Procrastinate: startup with a full queue, and the cost of being idle."""

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402 - the start includes every import
import asyncio  # noqa: E402
from contextlib import suppress  # noqa: E402

from bench.idle import Idleness  # noqa: E402
from bench.lines import emit  # noqa: E402
from bench.peers.procrastinate_setup import POLLING, make_app  # noqa: E402


async def measure(options: argparse.Namespace) -> None:
    app = make_app(options.store)
    async with app.open_async():
        emit("start", time.perf_counter() - BEGAN, jobs=options.jobs)
        worker = asyncio.create_task(
            app.run_worker_async(
                concurrency=options.concurrency, install_signal_handlers=False, fetch_job_polling_interval=POLLING
            )
        )
        await asyncio.sleep(1)
        idleness = Idleness()
        await asyncio.sleep(options.seconds)
        idleness.emit(options.jobs)
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
