"""Procrastinate as its guide sets it up: its psycopg connector with a pool, and one worker with concurrency.

Its tasks are async, so the worker runs many at once on one event loop. Jobs are kept when they have ended, which is the
default: the job row and an event row for each change are the record.
"""

from typing import Final

from procrastinate import App, PsycopgConnector

POOL_MAX: Final = 20
# Jobs that are due later are found by polling; the default is five seconds.
POLLING: Final = 0.5


def make_app(store: str) -> App:
    return App(connector=PsycopgConnector(conninfo=store, min_size=4, max_size=POOL_MAX))
