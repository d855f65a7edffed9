"""Huey as its guide sets it up on SQLite: write-ahead mode, and `fsync=True`, which is `synchronous = FULL`.

The consumer runs in this process with several worker threads; its scheduler looks once a second, the shortest it
allows. A handler that returns something leaves a result row; ours do, so that every run is recorded.
"""

from huey import SqliteHuey
from huey.consumer import Consumer


def make_huey(store: str) -> SqliteHuey:
    return SqliteHuey("bench", filename=store, fsync=True)


def make_consumer(huey: SqliteHuey, workers: int) -> Consumer:
    """Workers look often (the default backs off to ten seconds), and no periodic tasks are looked for."""
    return huey.create_consumer(
        workers=workers, worker_type="thread", periodic=False, initial_delay=0.01, max_delay=0.1, scheduler_interval=1
    )
