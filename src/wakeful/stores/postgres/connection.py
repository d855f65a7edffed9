"""Connections: how one is opened, how statements travel on it, and what its errors mean.

A pooler in transaction mode (pgbouncer) may serve each transaction by another session of the server. Nothing that
belongs to a session can be relied on there: no prepared statements, no `SET`, no `LISTEN`. A pooler is recognised by
the process id it announces, which is not that of the server's process. Behind one, each transaction begins with the
settings it needs (`Connection.preamble`), and nothing is prepared.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import RawCursor, errors
from psycopg.pq import ConnStatus, TransactionStatus

from wakeful.core.schedule.policies import SECOND
from wakeful.core.time.instants import Duration
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.address import Address
from wakeful.stores.postgres.rows import storable

Param: TypeAlias = str | int | None

STATEMENTS_KEPT: Final = 500
TROUBLE_KEPT_S: Final = 60


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One connection, and what each transaction on it begins with."""

    preamble: bytes = b""

    @property
    def is_pooled(self) -> bool:
        """Whether another session of the server may serve each transaction."""
        return bool(self.preamble)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what."""

    connect: Duration = 5 * SECOND
    statement: Duration = 30 * SECOND
    lock: Duration = 10 * SECOND
    # A process that froze in the middle of a transaction keeps others waiting; the server ends it after this. Less than
    # a lease, so that rescue never waits for it; much more than any operation thinks between two statements.
    frozen: Duration = 15 * SECOND
    # Nothing heard from the other side for this long: it is gone.
    silence: Duration = 15 * SECOND
    # A commit whose answer was lost is asked after for this long.
    doubt: Duration = 30 * SECOND
    reconnect_first: Duration = 100
    reconnect_max: Duration = 5 * SECOND


# Every query here is written for an index, and the tables it looks at are empty when its plan is made. So the planner
# is told to seek; what it guesses from statistics that are not there yet, or no longer true, cannot make it scan.
_PLANNING: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_sort": "off",
    "enable_incremental_sort": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}

# About the connection, the server or its resources, and not about the operation.
_OF_THE_PLACE: Final = (
    "08",  # the connection
    "25006",  # a server that only reads: a standby, or one that was switched over
    "25P03",  # we were frozen inside a transaction
    "25P04",
    "53",  # disk full, too many connections, out of memory
    "55P03",  # a lock was not to be had in time
    "57",  # shut down, starting up, a statement took too long
    "58",  # the server's disk
    "F0",
    "XX",  # damage
)
_CURES: Final = {
    "53100": "the server's disk is full; make room, nothing of this was kept",
    "53300": "the server takes no more connections; raise max_connections or use fewer nodes",
    "55P03": "another transaction keeps what this one needs; if it stays so, look for a frozen process",
    "57014": "a statement took too long; look at what keeps the server busy",
    "25006": "the server only reads; connect to the one that may write",
}
_TO_REPEAT: Final = (errors.SerializationFailure, errors.DeadlockDetected)


def connect(address: Address, patience: Timeouts) -> Connection:
    """A connection in autocommit: transactions are begun and ended by us, visibly."""
    seconds = max(1, patience.silence // SECOND)
    connection = Connection.connect(
        address.conninfo,
        autocommit=True,
        prepare_threshold=0,
        cursor_factory=RawCursor,  # $1 is the server's own way, and one statement may use a parameter twice
        connect_timeout=max(1, patience.connect // SECOND),
        keepalives=1,
        keepalives_idle=max(1, seconds // 3),
        keepalives_interval=max(1, seconds // 3),
        keepalives_count=2,
        tcp_user_timeout=patience.silence,
        application_name="wakeful",
    )
    try:
        connection.prepared_max = STATEMENTS_KEPT
        _set_up(connection, address, patience)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: Connection, address: Address, patience: Timeouts) -> None:
    settings = {
        **_PLANNING,
        "search_path": address.schema,
        "statement_timeout": patience.statement,
        "lock_timeout": patience.lock,
        "idle_in_transaction_session_timeout": patience.frozen,
        "client_min_messages": "warning",
    }
    asked = b"SELECT pg_backend_pid(), current_setting('synchronous_commit')"
    backend_pid, synchronous = connection.execute(asked, prepare=False).fetchone() or (0, "")
    # L7: whoever was answered is on disk. Stricter settings (a standby that confirms) are the server's choice.
    if synchronous == "off":
        settings["synchronous_commit"] = "on"
    if backend_pid == connection.pgconn.backend_pid:
        connection.execute(
            "; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode(), prepare=False
        )
    else:
        connection.prepare_threshold = None
        connection.preamble = "".join(f"SET LOCAL {name} = {value}; " for name, value in settings.items()).encode()


class Connector:
    """The way to the server. While it is shut, asking again at once is refused at once, ever more patiently."""

    def __init__(self, address: Address, patience: Timeouts) -> None:
        self.address = address
        self.patience = patience
        self._lock = Lock()
        self._pause: Duration = 0
        self._shut_until = 0.0  # by the stopwatch of the threads: how fast to knock, nothing of when to ring
        self._broken: deque[tuple[float, str]] = deque(maxlen=10_000)  # when, and what was said

    def open(self) -> Connection:
        """A new connection; raises `StoreUnavailable` if there is none to be had."""
        with self._lock:
            left = self._shut_until - time.monotonic()
        if left > 0:
            raise StoreUnavailable(f"the server could not be reached; the next try is in {left:.1f} s")
        try:
            connection = connect(self.address, self.patience)
        except psycopg.Error as error:
            self._shut()
            self.note(error)
            raise unavailable(error) from error
        with self._lock:
            self._pause, self._shut_until = 0, 0.0
        return connection

    def note(self, error: BaseException) -> None:
        """A connection could not be made, or broke."""
        with self._lock:
            self._broken.append((time.monotonic(), _said(error)))

    def trouble(self) -> str | None:
        """What was noted in the last minute, as a sentence."""
        since = time.monotonic() - TROUBLE_KEPT_S
        with self._lock:
            while self._broken and self._broken[0][0] < since:
                self._broken.popleft()
            if not self._broken:
                return None
            n, (_, said) = len(self._broken), self._broken[-1]
        return f"connections to the server failed {n} times in the last minute; the last one said: {said}"

    def _shut(self) -> None:
        with self._lock:
            doubled = max(self.patience.reconnect_first, 2 * self._pause)
            self._pause = min(self.patience.reconnect_max, doubled)
            self._shut_until = time.monotonic() + self._pause / SECOND


class UncertainCommits:
    """Whether this process has ever been left without an answer about what it owns, see `fate`."""

    def __init__(self) -> None:
        self.is_any = False


class Session:
    """One connection as the nouns use it: statements by `$n`, and what the transaction under way has met."""

    __slots__ = ("_execute", "connection", "doubts", "failure", "is_changed", "is_reading", "on_time", "unseen_lanes")

    def __init__(
        self,
        connection: Connection,
        *,
        is_reading: bool,
        on_time: Callable[["Session"], None],
        doubts: UncertainCommits | None = None,
    ) -> None:
        self.connection = connection
        self.is_reading = is_reading
        self.on_time = on_time  # called when the lease is renewed: the moment to set our clock by the server's
        self.doubts = doubts or UncertainCommits()
        self._execute = connection.cursor().execute
        self.reset()

    def reset(self) -> None:
        """Forget the last transaction."""
        self.failure: psycopg.Error | None = None  # the first error of the database, even if the operation hid it
        self.is_changed = False  # something others may want to look at was written
        self.unseen_lanes: set[str] = set()  # lanes another node was working on, see `lanes`

    def rows(self, query: str, *params: Param) -> list[tuple[Any, ...]]:
        """Ask, and fetch everything."""
        cursor = self._run(query, params)
        return cursor.fetchall()

    def change(self, query: str, *params: Param) -> int:
        """Write; answers how many rows it touched."""
        count = self._run(query, params).rowcount
        self.is_changed = self.is_changed or count > 0
        return count

    def save(self, query: str, n: int, *params: Param) -> None:
        """Write n rows back; each must be there and held, or what was decided about it would be lost in silence."""
        count = self.change(query, *params)
        if count != n:
            raise LookupError(f"{n - count} of {n} rows to be written back are gone, or were not held")

    def change_returning(self, query: str, *params: Param) -> list[tuple[Any, ...]]:
        """Write, and fetch what it returns."""
        found = self._run(query, params).fetchall()
        self.is_changed = self.is_changed or bool(found)
        return found

    @property
    def is_alive(self) -> bool:
        """Whether the connection can take another transaction."""
        return not self.connection.closed and self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        self.connection.close()

    def _run(self, query: str, params: tuple[Param, ...]) -> "psycopg.Cursor[tuple[Any, ...]]":
        # As texts: the server knows what a parameter must be, and a number's size must not make it another statement.
        said = [_as_text(value) for value in params]
        try:
            return self._execute(query.encode(), said)
        except psycopg.Error as error:
            self.failure = self.failure or error
            raise


def _as_text(value: Param) -> str | None:
    if value is None:
        return None
    return storable(value) if isinstance(value, str) else str(value)


def is_to_repeat(error: BaseException) -> bool:
    """Whether the database asks for the transaction to be run again from the start."""
    return isinstance(error, _TO_REPEAT)


def is_unavailable(error: BaseException) -> bool:
    """Whether the error is about the place, so that nothing in the transaction can be trusted."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.pgconn is not None and error.pgconn.status == ConnStatus.BAD:
        return True
    if error.sqlstate is None:  # libpq's own: the connection broke, or was never made
        return type(error) in (psycopg.Error, psycopg.DatabaseError) or isinstance(
            error, psycopg.OperationalError | psycopg.InterfaceError
        )
    return error.sqlstate.startswith(_OF_THE_PLACE)


def unavailable(error: psycopg.Error) -> StoreUnavailable:
    """The error in the words of the port."""
    cure = _CURES.get(error.sqlstate or "")
    said = _said(error)
    failure = StoreUnavailable(f"{cure} ({said})" if cure else said)
    failure.__cause__ = error
    return failure


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
