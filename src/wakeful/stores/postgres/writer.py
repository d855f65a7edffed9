"""Writing: one operation, one transaction, and the truth about what became of it.

READ COMMITTED: every statement sees what was committed before it began, and what an operation decides upon it holds by
row locks. Operations of one process run side by side on several connections, and the server gathers their commits; so
there is no group commit here, and batches of like with like are made above (`engine.batch`).

An operation is run again from the start when the database asks for it, a few times. When the connection is lost nothing
was kept, and the caller is told so, except in one place: if it breaks while COMMIT is under way, the server may have
kept it or not. The transaction's number was noted when it began, so the server is asked what became of it, on another
connection (`fate`), and the caller hears the truth. Only if the server cannot be asked for a long time is the caller
told `CommitUnknown`.
"""

import random
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus

from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.connection import (
    Connector,
    Session,
    UncertainCommits,
    is_to_repeat,
    is_unavailable,
    unavailable,
)
from wakeful.stores.postgres.fate import UncertainCommit, resolve
from wakeful.stores.postgres.tx import PostgresTx
from wakeful.stores.postgres.workers import Fate

REPEATS_MAX: Final = 10
PAUSE_MAX_S: Final = 0.05
BEGINS_MAX: Final = 5
"""How many connections in a row may break before anything was asked of them; then the caller is told."""

# Every transaction gets its number at once, in the same round trip: it must be known before COMMIT is sent. And so must
# the process that serves it: behind a pooler the connection does not know it.
_BEGIN: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
_NUMBER: Final = b"SELECT pg_current_xact_id()::text, pg_backend_pid()"


class WriterWorker:
    """One connection that writes; a broken one is replaced before the next operation."""

    def __init__(
        self, door: Connector, on_time: Callable[[Session], None], doubts: UncertainCommits, news: bytes
    ) -> None:
        self._door = door
        self._doubts = doubts
        self._on_time = on_time
        # The hint to others follows the commit in the same round trip: inside the transaction it would make all commits
        # of all nodes wait for one another, and undo the transaction if the server's queue of hints is full.
        self._commit_with_news = b"COMMIT; " + news
        self._session: Session | None = None
        self._tx: PostgresTx | None = None

    def serve(self, operation: Callable[[Any], Any]) -> Fate:
        for repeats_left in reversed(range(REPEATS_MAX)):
            try:
                return self._transact(operation)
            except psycopg.Error as error:
                self._tidy_up()
                if is_unavailable(error):
                    self._door.note(error)
                    return None, unavailable(error)
                if not is_to_repeat(error):
                    return None, error
                if repeats_left == 0:
                    return None, StoreUnavailable(f"the transaction kept colliding with others ({error}); try again")
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
        try:
            value = operation(tx)
        except BaseException:
            if session.failure is not None and (is_to_repeat(session.failure) or is_unavailable(session.failure)):
                raise session.failure from None  # whatever the operation made of it, this is what happened
            raise
        if session.failure is not None:
            raise session.failure  # the operation hid it; the server would turn COMMIT into ROLLBACK
        self._commit(session, doubt)
        return value, None

    def _begin(self) -> tuple[Session, PostgresTx, UncertainCommit]:
        """Begin on the connection there is. One that died while it was idle is replaced without a word, and so is one
        that breaks before it served anything: nothing was asked of it yet."""
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
                self._door.note(error)
        raise AssertionError("unreachable")

    def _take(self) -> tuple[Session, PostgresTx, bool]:
        if self._session is not None and self._tx is not None:
            return self._session, self._tx, False
        self._session = session = Session(
            self._door.open(), is_reading=False, on_time=self._on_time, doubts=self._doubts
        )
        self._tx = tx = PostgresTx(session)
        return session, tx, True

    def _commit(self, session: Session, doubt: UncertainCommit) -> None:
        if not _is_answered(session, self._commit_with_news if session.is_changed else b"COMMIT"):
            self.close()
            self._door.note(StoreUnavailable("the connection was lost during commit"))
            resolve(doubt, self._door, self._doubts)

    def _tidy_up(self) -> None:
        """Undo what is open; a connection that cannot do even that is let go."""
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
    """Begin; returns the number of the new transaction and the process that serves it, in case of doubt."""
    session.reset()
    result = session.connection.pgconn.exec_(_BEGIN + session.connection.preamble + _NUMBER)
    if result.status != ExecStatus.TUPLES_OK:
        raise psycopg.errors.error_from_result(result)
    number, backend_pid = result.get_value(0, 0) or b"", result.get_value(0, 1) or b"0"
    return UncertainCommit(number.decode(), int(backend_pid))


def _is_answered(session: Session, commit: bytes) -> bool:
    """Send COMMIT; whether the server said that all went well."""
    try:
        return session.connection.pgconn.exec_(commit).status == ExecStatus.COMMAND_OK
    except psycopg.Error:
        return False
