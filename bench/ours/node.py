"""One of several ticking processes: reports that it is ready, then its number of calls, until its input ends."""

import argparse
import asyncio
import json
import sys

from bench.ours.setup import make_app

REPORT_EVERY = 0.02


def say(**facts: float) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def tick(store: str, name: str) -> None:
    calls = 0

    async def handler() -> None:
        nonlocal calls
        calls += 1

    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with make_app(store, handler, name=name):
        said = -1
        while not ended.done():
            if calls != said:
                said = calls
                say(calls=said)
            await asyncio.wait([ended], timeout=REPORT_EVERY)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--name", required=True)
    options = parser.parse_args()
    asyncio.run(tick(options.store, options.name))


if __name__ == "__main__":
    main()
