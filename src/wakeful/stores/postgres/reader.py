"""Reading: on separate connections, with one consistent snapshot per operation, never blocking a writer."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus

from wakeful.ports.store import Tx
from wakeful.stores.postgres.connection import Connector, Session, is_unavailable, unavailable
from wakeful.stores.postgres.tx import tx_on
from wakeful.stores.postgres.workers import Fate

BEGIN: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
BEGINS_MAX: Final = 5


class ReaderWorker:
    """One read-only connection."""

    def __init__(self, connector: Connector, on_time: Callable[[Session], None]) -> None:
        self._connector = connector
        self._on_time = on_time
        self._session: Session | None = None
        self._tx: Tx | None = None

    def serve(self, operation: Callable[[Any], Any]) -> Fate:
        try:
            tx = self._begin()
            return operation(tx), None
        except psycopg.Error as error:
            if not self._is_of_the_place(error):
                return None, error
            self._connector.note(error)
            return None, unavailable(error)
        except BaseException as error:
            return None, error
        finally:
            self._end()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = self._tx = None

    def _is_of_the_place(self, error: psycopg.Error) -> bool:
        # Writing in a read transaction is an error of the operation, although a standby reports the same code.
        return is_unavailable(error) and not isinstance(error, psycopg.errors.ReadOnlySqlTransaction)

    def _begin(self) -> Tx:
        """Begin on the current connection; one that died while idle, or breaks immediately, is replaced."""
        for tries_left in reversed(range(BEGINS_MAX)):
            session, tx = self._take()
            try:
                _begin(session)
                return tx
            except psycopg.Error as error:
                self.close()
                if tries_left == 0 or not is_unavailable(error):
                    raise
                self._connector.note(error)
        raise AssertionError("unreachable")

    def _take(self) -> tuple[Session, Tx]:
        if self._session is None or self._tx is None:
            self._session = Session(self._connector.open(), is_reading=True, on_time=self._on_time)
            self._tx = tx_on(self._session)
        return self._session, self._tx

    def _end(self) -> None:
        """End the snapshot with a rollback: there is nothing to commit."""
        if self._session is None:
            return
        with suppress(psycopg.Error):
            self._session.connection.pgconn.exec_(b"ROLLBACK")
        if not self._session.is_alive:
            self.close()


def _begin(session: Session) -> None:
    session.reset()
    result = session.connection.pgconn.exec_(BEGIN + session.connection.preamble)
    if result.status != ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(result)
