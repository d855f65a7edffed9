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
from wakeful.stores.postgres.connection import Door, Doubts, Session, is_to_repeat, is_unavailable, unavailable
from wakeful.stores.postgres.fate import Doubt, resolve
from wakeful.stores.postgres.tx import PostgresTx
from wakeful.stores.postgres.workers import Fate

REPEATS_MAX: Final = 10
PAUSE_MAX_S: Final = 0.05

# Every transaction gets its number at once, in the same round trip: it must be known before COMMIT is sent.
_BEGIN: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_current_xact_id()::text"


class WritingHand:
    """One connection that writes; a broken one is replaced before the next operation."""

    def __init__(self, door: Door, on_time: Callable[[Session], None], doubts: Doubts, news: bytes) -> None:
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
        session, tx, xid = self._begin()
        try:
            value = operation(tx)
        except BaseException:
            if session.failure is not None and (is_to_repeat(session.failure) or is_unavailable(session.failure)):
                raise session.failure from None  # whatever the operation made of it, this is what happened
            raise
        if session.failure is not None:
            raise session.failure  # the operation hid it; the server would turn COMMIT into ROLLBACK
        self._commit(session, xid)
        return value, None

    def _begin(self) -> tuple[Session, PostgresTx, str]:
        """Begin on the connection there is; one that died while it was idle is replaced without a word."""
        if self._session is not None and self._tx is not None:
            try:
                return self._session, self._tx, _begin(self._session)
            except psycopg.Error:
                self.close()
        self._session = session = Session(
            self._door.open(), is_reading=False, on_time=self._on_time, doubts=self._doubts
        )
        self._tx = tx = PostgresTx(session)
        return session, tx, _begin(session)

    def _commit(self, session: Session, xid: str) -> None:
        doubt = Doubt(xid, session.connection.pgconn.backend_pid)
        if not _is_answered(session, self._commit_with_news if session.is_changed else b"COMMIT"):
            self.close()
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


def _begin(session: Session) -> str:
    """The number of the new transaction."""
    session.reset()
    result = session.connection.pgconn.exec_(_BEGIN)
    number = result.get_value(0, 0) if result.status == ExecStatus.TUPLES_OK else None
    if number is None:
        raise psycopg.errors.error_from_result(result)
    return number.decode()


def _is_answered(session: Session, commit: bytes) -> bool:
    """Send COMMIT; whether the server said that all went well."""
    try:
        return session.connection.pgconn.exec_(commit).status == ExecStatus.COMMAND_OK
    except psycopg.Error:
        return False
