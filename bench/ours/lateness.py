"""How late handlers are called: a few together every second, or many spread evenly over it."""

import argparse
import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.ours.setup import make_app, schedules
from bench.samples import emit_lateness
from wakeful import every

PERIOD = timedelta(seconds=1)


async def measure(options: argparse.Namespace) -> None:
    late: list[float] = []

    async def handler(fire: Any) -> None:
        late.append(time.time() - fire.planned_at.timestamp())

    spread = PERIOD / options.jobs if options.spread else timedelta(0)
    app = make_app(options.store, handler, every_min="1s")
    async with app:
        begin = datetime.now(UTC) + timedelta(seconds=1)
        await app.add_many(schedules(options.jobs, "tick", lambda i: every(PERIOD, anchor=begin + i * spread)))
        await asyncio.sleep((begin - datetime.now(UTC)).total_seconds() + options.seconds - 0.1)
    expected = options.jobs * options.seconds
    if len(late) < expected * 0.9:
        raise RuntimeError(f"only {len(late)} of {expected} fires came")
    emit_lateness(options.measure, late)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--measure", default="lateness")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--spread", action="store_true", help="spread the jobs evenly over the second")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
