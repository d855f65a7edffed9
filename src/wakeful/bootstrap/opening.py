"""Opening the store an address names, with the clock that belongs to it."""

from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.instants import Duration
from wakeful.engine.clock import SystemClock
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store
from wakeful.stores.sqlite.store import SqliteStore

# How soon what another process wrote is noticed. What this one writes is known at once, so an idle process may rest.
POLL: Final[Duration] = 1_000


class Opened(NamedTuple):
    """A store, and the clock that those who share it agree on."""

    store: Store
    clock: Clock
    poll: Duration  # how often to look whether another process wrote


async def open_store(url: str) -> Opened:
    """The store an address names: a file path, sqlite:///PATH, or postgresql://…"""
    if url.startswith(("postgresql://", "postgres://")):
        return await _open_postgres(url)
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:") else url
    if "://" in path:
        raise ValueError(f"{url!r} is not a store; give the path of a file, sqlite:///PATH, or postgresql://…")
    return Opened(await SqliteStore.open(Path(path)), SystemClock(), POLL)


async def _open_postgres(url: str) -> Opened:
    try:
        from wakeful.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise ValueError("PostgreSQL needs its driver; install it with pip install 'wakeful[postgres]'") from error
    store = await PostgresStore.open(url)
    return Opened(store, store.clock, POLL)
