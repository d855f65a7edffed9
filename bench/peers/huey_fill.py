"""A Huey schedule with many tasks of which none is due for days, in one transaction, as its own `add_schedule` writes
each."""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.peers.huey_setup import make_huey


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args()
    huey = make_huey(options.store)

    @huey.task()
    def nothing() -> None:
        raise RuntimeError("nothing was due")

    due_at = datetime.now(UTC) + timedelta(days=1)

    def rows() -> Iterator[tuple[str, bytes, float]]:
        for _ in range(options.jobs):
            yield huey.storage.name, huey.serialize_task(nothing.s(eta=due_at)), due_at.timestamp()

    with huey.storage.db(commit=True) as cursor:
        cursor.executemany("insert into schedule (queue, data, timestamp) values (?, ?, ?)", rows())


if __name__ == "__main__":
    main()
