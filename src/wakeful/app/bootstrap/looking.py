"""Reading a store without a daemon. Nothing is written, migrated or locked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.engine.clock import SystemClock
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite.looking import looking as looking_at_file
from wakeful.stores.sqlite.migrate import DatabaseRefused


class StoreRefused(Exception):
    """The store cannot be read: the reason, and the cure."""


class Look(NamedTuple):
    """A consistent view of a store, and the time on its clock."""

    tx: Tx
    now: Instant


@contextmanager
def looking(url: str) -> Iterator[Look]:
    """A view of the store at `sqlite:///PATH`, a path, or `postgresql://…`; raises `StoreRefused`."""
    try:
        if url.startswith(("postgresql://", "postgres://")):
            with _looking_at_server(url) as look:
                yield look
        else:
            with looking_at_file(Path(url.removeprefix("sqlite:///"))) as tx:
                yield Look(tx, SystemClock().read().now)
    except (DatabaseRefused, StoreUnavailable, OSError) as error:
        raise StoreRefused(str(error)) from error


@contextmanager
def _looking_at_server(url: str) -> Iterator[Look]:
    try:
        from wakeful.stores.postgres.looking import looking as looking_at_schema
        from wakeful.stores.postgres.migrate import DatabaseRefused as SchemaRefused
    except ImportError as error:
        raise StoreRefused("PostgreSQL needs its driver; install it with pip install 'wakeful[postgres]'") from error
    try:
        with looking_at_schema(url) as (tx, now):
            yield Look(tx, now)
    except SchemaRefused as error:
        raise StoreRefused(str(error)) from error
