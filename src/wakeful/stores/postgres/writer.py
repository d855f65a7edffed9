"""Writing: one operation, one transaction, and a definite result.

READ COMMITTED: every statement sees what was committed before it started, and row locks protect what an operation bases
its decisions on. Operations of one process run in parallel on several connections, and the server groups their commits;
so there is no group commit here, and similar requests are batched above (`engine.batch`).

An operation is run again from the start, a few times, when the database requires it. If the connection is lost, nothing
was stored and the caller gets an error, with one exception: if it breaks during COMMIT, the server may have committed
or not. The transaction's number was recorded when it started, so the server is asked for its status on another
connection (`fate`), and the caller gets the true result. Only if the server cannot be reached for a long time does the
caller get `CommitUnknown`.
"""

import random
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus

from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.postgres.connection import (
    Connector,
    Session,
    UncertainCommits,
    is_to_repeat,
    is_unavailable,
    unavailable,
)
from wakeful.stores.postgres.fate import UncertainCommit, resolve
from wakeful.stores.postgres.tx import tx_on
from wakeful.stores.postgres.workers import Fate

REPEATS_MAX: Final = 10
PAUSE_MAX_S: Final = 0.05
BEGINS_MAX: Final = 5
"""How many connections in a row may break before they were used; then the caller gets the error."""

# Every transaction gets its number at its start, in the same round trip: it must be known before COMMIT is sent. So
# must the server process: behind a pooler the connection does not know it.
_BEGIN: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
_NUMBER: Final = b"SELECT pg_current_xact_id()::text, pg_backend_pid()"


class WriterWorker:
    """One connection that writes; a broken one is replaced before the next operation."""

    def __init__(
        self, connector: Connector, on_time: Callable[[Session], None], uncertain: UncertainCommits, notify: bytes
    ) -> None:
        self._connector = connector
        self._uncertain = uncertain
        self._on_time = on_time
        # The notification follows the commit in the same round trip: inside the transaction it would serialize all
        # commits of all nodes, and undo the transaction if the server's notification queue is full.
        self._commit_and_notify = b"COMMIT; " + notify
        self._session: Session | None = None
        self._tx: Tx | None = None

    def serve(self, operation: Callable[[Any], Any]) -> Fate:
        for repeats_left in reversed(range(REPEATS_MAX)):
            try:
                return self._transact(operation)
            except psycopg.Error as error:
                self._tidy_up()
                if is_unavailable(error):
                    self._connector.note(error)
                    return None, unavailable(error)
                if not is_to_repeat(error):
                    return None, error
                if repeats_left == 0:
                    return None, StoreUnavailable(f"the transaction kept conflicting with others ({error}); try again")
                time.sleep(random.uniform(0, PAUSE_MAX_S))  # noqa: S311 - to part those that collided
            except BaseException as error:
                self._tidy_up()
                return None, error
        raise AssertionError("unreachable")

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = self._tx = None

    def _transact(self, operation: Callable[[Any], Any]) -> Fate:
        session, tx, doubt = self._begin()
        tx.changes.clear()
        try:
            value = operation(tx)
        except BaseException:
            if session.failure is not None and (is_to_repeat(session.failure) or is_unavailable(session.failure)):
                raise session.failure from None  # the original cause, whatever the operation raised
            raise
        if session.failure is not None:
            raise session.failure  # the operation caught it; the server would turn COMMIT into ROLLBACK
        self._commit(session, doubt)
        return value, None

    def _begin(self) -> tuple[Session, Tx, UncertainCommit]:
        """Begin on the current connection. One that died while idle is replaced silently, and so is one that breaks
        before it was used: nothing has been sent on it yet."""
        for tries_left in reversed(range(BEGINS_MAX)):
            session, tx, is_new = self._take()
            try:
                return session, tx, _begin(session)
            except psycopg.Error as error:
                self.close()
                if not is_new:
                    continue
                if tries_left == 0 or not is_unavailable(error):
                    raise
                self._connector.note(error)
        raise AssertionError("unreachable")

    def _take(self) -> tuple[Session, Tx, bool]:
        if self._session is not None and self._tx is not None:
            return self._session, self._tx, False
        self._session = session = Session(
            self._connector.open(), is_reading=False, on_time=self._on_time, uncertain=self._uncertain
        )
        self._tx = tx = tx_on(session)
        return session, tx, True

    def _commit(self, session: Session, doubt: UncertainCommit) -> None:
        if not _is_answered(session, self._commit_and_notify if session.is_changed else b"COMMIT"):
            self.close()
            self._connector.note(StoreUnavailable("the connection was lost during commit"))
            resolve(doubt, self._connector, self._uncertain)

    def _tidy_up(self) -> None:
        """Roll back an open transaction; a connection that cannot even do that is closed."""
        if self._session is None:
            return
        try:
            self._session.connection.pgconn.exec_(b"ROLLBACK")
            is_alive = self._session.is_alive
        except psycopg.Error:
            is_alive = False
        if not is_alive:
            self.close()


def _begin(session: Session) -> UncertainCommit:
    """Begin; returns the number of the new transaction and its server process, in case the commit is uncertain."""
    session.reset()
    result = session.connection.pgconn.exec_(_BEGIN + session.connection.preamble + _NUMBER)
    if result.status != ExecStatus.TUPLES_OK:
        raise psycopg.errors.error_from_result(result)
    number, backend_pid = result.get_value(0, 0) or b"", result.get_value(0, 1) or b"0"
    return UncertainCommit(number.decode(), int(backend_pid))


def _is_answered(session: Session, commit: bytes) -> bool:
    """Send COMMIT; returns whether the server confirmed it."""
    try:
        return session.connection.pgconn.exec_(commit).status == ExecStatus.COMMAND_OK
    except psycopg.Error:
        return False
