"""The store in one schema of a PostgreSQL database."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg

from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.clock import PostgresClock
from wakeful.stores.postgres.connection import Connection, Connector, Session, Timeouts, UncertainCommits, unavailable
from wakeful.stores.postgres.listener import ListenerWorker, notify_of
from wakeful.stores.postgres.migrate import Migration, migrate, migrations
from wakeful.stores.postgres.reader import ReaderWorker
from wakeful.stores.postgres.workers import Call, Workers
from wakeful.stores.postgres.writer import WriterWorker

T = TypeVar("T")

log = logging.getLogger("wakeful.store")

# Enough that a claim, a settlement, a batch of marks and a command never wait for each other, and few enough that ten
# nodes stay well below a server's usual hundred connections. Commands and requests use all but one of them.
WRITERS: Final = 4
READERS: Final = 2


class PostgresStore:
    """See `ports.store.Store`. Any number of nodes may open the same schema, and all of them tick."""

    def __init__(self, connector: Connector, clock: PostgresClock, *, writers: int, readers: int) -> None:
        token = secrets.token_hex(8)
        notify = notify_of(connector.address.schema, token)
        self._connector = connector
        self._address = connector.address
        self._clock = clock
        uncertain = UncertainCommits()
        monotonic = connector.monotonic
        self._writers = Workers(
            "wakeful-writer",
            writers,
            lambda: WriterWorker(connector, clock.set_by, uncertain, notify),
            monotonic,
            kept_free=1 if writers > 1 else 0,
        )
        self._readers = Workers("wakeful-reader", readers, lambda: ReaderWorker(connector, _ignore), monotonic)
        self._listener = Workers("wakeful-listener", 1, lambda: ListenerWorker(connector, token), monotonic)
        self._is_closed = False
        self._is_pooled = False

    @classmethod
    async def open(
        cls, url: str, *, timeouts: Timeouts | None = None, writers: int = WRITERS, readers: int = READERS
    ) -> "PostgresStore":
        """Open `postgresql://user@host/database?schema=wakeful`, creating or migrating the schema first.

        Raises `DatabaseRefused` on a database it must not touch, `StoreUnavailable` if the server cannot be reached.
        """
        connector = Connector(parse(url), timeouts or Timeouts())
        clock = PostgresClock()
        is_pooled = await asyncio.to_thread(_prepare, connector, clock, migrations())
        store = cls(connector, clock, writers=writers, readers=readers)
        store._is_pooled = is_pooled
        await store.changed()  # from here on no write of another process is missed
        return store

    @property
    def clock(self) -> PostgresClock:
        """The clock that all nodes of this database share."""
        return self._clock

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function in a transaction; returns after the commit. If the caller is cancelled, it may still be
        committed."""
        return await self._ask(self._writers, operation, is_urgent=is_urgent)

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function on a consistent snapshot, without changing anything."""
        return await self._ask(self._readers, operation, is_urgent=is_urgent)

    async def hold_clock(self) -> bool:
        """Always True: every node ticks, and leases show which are alive."""
        if self._is_pooled:
            log.warning(
                "a connection pooler is between this node and the server: writes of other nodes are not announced, "
                "so this node checks for them every second; connect to the server itself to avoid that"
            )
        return True

    async def release_clock(self) -> None:
        """Nothing to release."""

    async def remember(self, mark: int) -> None:
        """Each node remembers in memory the lease that it last wrote (`engine.store_rollback`)."""

    @property
    def is_exclusive(self) -> bool:
        """False: other nodes may be alive."""
        return False

    def trouble(self) -> str | None:
        """Connections that failed in the last minute."""
        return self._connector.trouble()

    async def changed(self) -> bool:
        """Whether another process announced a write since the last call."""
        try:
            return bool(await self._ask(self._listener, _ignore))
        except StoreUnavailable:
            return True

    async def close(self) -> None:
        """Finish what was submitted, then close all connections. Calling it twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        for workers in (self._writers, self._readers, self._listener):
            await workers.close()

    async def _ask(self, workers: Workers, operation: Callable[[Any], T], *, is_urgent: bool = False) -> T:
        if self._is_closed:
            raise StoreUnavailable(f"{self._address.in_words} is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        workers.submit(Call(operation, future, is_urgent))
        return await future


def _prepare(connector: Connector, clock: PostgresClock, steps: list[Migration]) -> bool:
    """Create or upgrade the schema, and set the clock; returns whether there is a pooler in between."""
    connection: Connection = connector.open()
    try:
        migrate(connection, connector.address.schema, steps)
        session = Session(connection, is_reading=True, on_time=_ignore)
        clock.set_by(session)  # the first call also prepares the statement: the second is more precise
        clock.set_by(session)
        return connection.is_pooled
    except psycopg.Error as error:
        raise unavailable(error) from error
    finally:
        connection.close()


def _ignore(_: object) -> None:
    return None
