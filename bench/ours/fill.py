"""Fill a store with many schedules that are not due for days."""

import argparse
import asyncio
from datetime import timedelta

from bench.ours.setup import make_app, schedules, soon
from wakeful import every

CHUNK = 20_000


async def fill(store: str, count: int) -> None:
    begin = soon(86_400)
    async with make_app(store, lambda: None, tick=False) as app:
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            await app.add_many(
                schedules(
                    size,
                    f"idle-{start}",
                    lambda i, start=start: every("24h", anchor=begin + timedelta(milliseconds=start + i)),  # type: ignore[misc]
                )
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(fill(options.store, options.jobs))


if __name__ == "__main__":
    main()
