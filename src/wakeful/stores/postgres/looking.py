"""Reading a schema without changing it: nothing is migrated, and every statement is in a read-only transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from wakeful.core.time.instants import Instant
from wakeful.ports.releases import WITHOUT_0_2
from wakeful.ports.store import Tx
from wakeful.stores.postgres.address import parse
from wakeful.stores.postgres.clock import PostgresClock
from wakeful.stores.postgres.connection import Connection, Connector, Session, Timeouts, unavailable
from wakeful.stores.postgres.migrate import DatabaseRefused, migrations, version_of
from wakeful.stores.postgres.reader import BEGIN
from wakeful.stores.postgres.tx import tx_on


@contextmanager
def looking(url: str) -> Iterator[tuple[Tx, Instant]]:
    """One consistent snapshot, and the server's time. Raises `DatabaseRefused` or `StoreUnavailable`."""
    connector = Connector(parse(url), Timeouts())
    connection: Connection = connector.open()
    try:
        _check_version(version_of(connection, connector.address.schema), connector.address.in_words)
        session, clock = Session(connection, is_reading=True, on_time=lambda _: None), PostgresClock()
        connection.execute(BEGIN + connection.preamble, prepare=False)
        clock.set_by(session)
        yield tx_on(session), clock.read().now
    except psycopg.Error as error:
        raise unavailable(error) from error
    finally:
        connection.close()


def _check_version(version: int, where: str) -> None:
    newest = migrations()[-1].number
    if version == 0:
        raise DatabaseRefused(f"{where} contains no Wakeful store yet")
    if version < WITHOUT_0_2 - 1:
        raise DatabaseRefused(
            f"{where} has schema {version}, and this release reads {newest}; start the daemon once, which upgrades it"
        )
    if version > newest + 1:
        raise DatabaseRefused(
            f"{where} has schema {version}, and this release reads {newest} and {newest + 1}; install the release that "
            "wrote it, or a newer one"
        )
