"""Startup on a full store, and the cost of being idle on it."""

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402 - the start includes every import
import asyncio  # noqa: E402

from bench.idle import Idleness  # noqa: E402
from bench.lines import emit  # noqa: E402
from bench.ours.setup import make_app  # noqa: E402


async def measure(options: argparse.Namespace) -> None:
    async def handler() -> None:
        raise RuntimeError("nothing was due")

    async with make_app(options.store, handler) as app:
        if not app._is_ticking:
            raise RuntimeError("it does not tick")
        emit("start", time.perf_counter() - BEGAN, jobs=options.jobs)
        await asyncio.sleep(1)
        idleness = Idleness()
        await asyncio.sleep(options.seconds)
        idleness.emit(options.jobs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
