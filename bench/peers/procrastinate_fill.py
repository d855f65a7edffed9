"""Fill a Procrastinate queue with many jobs that are not due for days."""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta

from bench.peers.procrastinate_setup import make_app

CHUNK = 1_000


async def fill(store: str, count: int) -> None:
    app = make_app(store)

    @app.task
    async def nothing() -> None:
        raise RuntimeError("nothing was due")

    at = datetime.now(UTC) + timedelta(days=1)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, CHUNK):
            rows: list[dict[str, object]] = [{} for _ in range(min(CHUNK, count - start))]
            await nothing.configure(schedule_at=at).batch_defer_async(*rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(fill(options.store, options.jobs))


if __name__ == "__main__":
    main()
