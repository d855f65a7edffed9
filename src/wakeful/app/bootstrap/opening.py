"""Opening a store by its URL, with its clock."""

from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.time.instants import Duration
from wakeful.engine.clock import SystemClock
from wakeful.ports.clock import Clock
from wakeful.ports.meta import Meta
from wakeful.ports.store import Store
from wakeful.stores.sqlite.store import SqliteStore

# How often to check whether another process wrote; writes of this process are known immediately.
POLL: Final[Duration] = 1_000

VIRTUAL_TIME: Final = "virtual_time"
"""The meta key of the last time of a store written on a virtual clock. Such a store cannot be used in real time."""


class Opened(NamedTuple):
    """A store, and the clock that all its nodes share."""

    store: Store
    clock: Clock
    poll: Duration | None  # how often to look whether another process wrote; None if no other process writes


async def open_store(url: str) -> Opened:
    """Open a store: a file path, sqlite:///PATH, or postgresql://…"""
    if url.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(url)
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:") else url
    if "://" in path:
        raise ValueError(f"{url!r} is not a store; give the path of a file, sqlite:///PATH, or postgresql://…")
    store = await SqliteStore.open(Path(path))
    try:
        if await store.read(lambda tx: tx[Meta].value(VIRTUAL_TIME)) is not None:
            cure = "remove it, or give another path"
            raise ValueError(f"{path} was written on a virtual clock (wakeful.testing); {cure}")
    except BaseException:
        await store.close()
        raise
    return Opened(store, SystemClock(), POLL)


async def _open_postgres(url: str) -> Opened:
    try:
        from wakeful.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise ValueError("PostgreSQL needs its driver; install it with pip install 'wakeful[postgres]'") from error
    store = await PostgresStore.open(url)
    return Opened(store, store.clock, POLL)
