"""Connections: opening them, running statements, and interpreting their errors.

A pooler in transaction mode (pgbouncer) may serve each transaction by another session of the server. Nothing that
belongs to a session works there: no prepared statements, no `SET`, no `LISTEN`. A pooler is recognised by the process
id it announces, which is not that of the server's process. Behind one, each transaction starts with the settings it
needs (`Connection.preamble`), and nothing is prepared.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import RawCursor, errors
from psycopg.pq import ConnStatus, TransactionStatus

from wakeful.core.time.instants import SECOND, Duration
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.postgres.address import Address
from wakeful.stores.postgres.rows import storable
from wakeful.stores.postgres.statements import Statements

T = TypeVar("T")
Param: TypeAlias = str | int | None

TROUBLE_KEPT_S: Final = 60


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One connection, and the settings each transaction on it starts with."""

    preamble: bytes = b""

    @property
    def is_pooled(self) -> bool:
        """Whether each transaction may be served by another session of the server."""
        return bool(self.preamble)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits."""

    connect: Duration = 5 * SECOND
    statement: Duration = 30 * SECOND
    lock: Duration = 10 * SECOND
    # A process that froze in the middle of a transaction blocks others; the server ends it after this. Less than a
    # lease, so that a rescue never waits for it; much more than any operation needs between two statements.
    frozen: Duration = 15 * SECOND
    # If the other side is silent for this long, it is gone.
    silence: Duration = 15 * SECOND
    # How long to ask for the result of a commit whose response was lost.
    doubt: Duration = 30 * SECOND
    reconnect_first: Duration = 100
    reconnect_max: Duration = 5 * SECOND


# Every query here is written for an index, and its tables are empty when its plan is made. So the planner is
# restricted to index scans: missing or outdated statistics must not lead to a full scan.
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

# Errors of the connection, the server or its resources, and not of the operation.
_OF_THE_PLACE: Final = (
    "08",  # the connection
    "25006",  # a read-only server: a standby, or one after a switchover
    "25P03",  # this process was frozen inside a transaction
    "25P04",
    "53",  # disk full, too many connections, out of memory
    "55P03",  # a lock was not available in time
    "57",  # shut down, starting up, a statement took too long
    "58",  # the server's disk
    "F0",
    "XX",  # corruption
)
_CURES: Final = {
    "53100": "the server's disk is full; free some space, nothing was stored",
    "53300": "the server accepts no more connections; raise max_connections or use fewer nodes",
    "55P03": "another transaction holds a lock that this one needs; if this persists, look for a frozen process",
    "57014": "a statement took too long; check what keeps the server busy",
    "25006": "the server is read-only; connect to the primary",
}
_TO_REPEAT: Final = (errors.SerializationFailure, errors.DeadlockDetected)


def connect(address: Address, timeouts: Timeouts) -> Connection:
    """A connection in autocommit mode: transactions are started and ended explicitly."""
    seconds = max(1, timeouts.silence // SECOND)
    connection = Connection.connect(
        address.conninfo,
        autocommit=True,
        prepare_threshold=0,
        cursor_factory=RawCursor,  # native $1 parameters, which one statement may use twice
        connect_timeout=max(1, timeouts.connect // SECOND),
        keepalives=1,
        keepalives_idle=max(1, seconds // 3),
        keepalives_interval=max(1, seconds // 3),
        keepalives_count=2,
        tcp_user_timeout=timeouts.silence,
        application_name="wakeful",
    )
    try:
        _set_up(connection, address, timeouts)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: Connection, address: Address, timeouts: Timeouts) -> None:
    settings = {
        **_PLANNING,
        "search_path": address.schema,
        "statement_timeout": timeouts.statement,
        "lock_timeout": timeouts.lock,
        "idle_in_transaction_session_timeout": timeouts.frozen,
        "client_min_messages": "warning",
    }
    query = b"SELECT pg_backend_pid(), current_setting('synchronous_commit')"
    backend_pid, synchronous = connection.execute(query, prepare=False).fetchone() or (0, "")
    # L7: a successful commit is on disk. Stricter settings (a synchronous standby) are configured on the server.
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
    """Connects to the server. After a failure it refuses immediately for a growing time instead of retrying."""

    def __init__(
        self, address: Address, timeouts: Timeouts, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.address = address
        self.timeouts = timeouts
        self.monotonic = monotonic  # seconds of process time, for retries only; nothing that is due depends on it
        self._lock = Lock()
        self._pause: Duration = 0
        self._shut_until = 0.0
        self._broken: deque[tuple[float, str]] = deque(maxlen=10_000)  # when, and the error

    def open(self) -> Connection:
        """A new connection; raises `StoreUnavailable` if the server cannot be reached."""
        with self._lock:
            left = self._shut_until - self.monotonic()
        if left > 0:
            raise StoreUnavailable(f"the server could not be reached; the next attempt is in {left:.1f} s")
        try:
            connection = connect(self.address, self.timeouts)
        except psycopg.Error as error:
            self._shut()
            self.note(error)
            raise unavailable(error) from error
        with self._lock:
            self._pause, self._shut_until = 0, 0.0
        return connection

    def note(self, error: BaseException) -> None:
        """Record a connection that could not be opened, or broke."""
        with self._lock:
            self._broken.append((self.monotonic(), _said(error)))

    def trouble(self) -> str | None:
        """The failures of the last minute, as a sentence."""
        since = self.monotonic() - TROUBLE_KEPT_S
        with self._lock:
            while self._broken and self._broken[0][0] < since:
                self._broken.popleft()
            if not self._broken:
                return None
            n, (_, message) = len(self._broken), self._broken[-1]
        return f"connections to the server failed {n} times in the last minute; the last error: {message}"

    def _shut(self) -> None:
        with self._lock:
            doubled = max(self.timeouts.reconnect_first, 2 * self._pause)
            self._pause = min(self.timeouts.reconnect_max, doubled)
            self._shut_until = self.monotonic() + self._pause / SECOND


class UncertainCommits:
    """Whether this process may own runs it does not know of, because a commit is uncertain, see `fate`."""

    def __init__(self) -> None:
        self.is_any = False


class Session:
    """One connection as the tables use it: statements with `$n`, and the state of the current transaction."""

    __slots__ = (
        "_statements",
        "connection",
        "failure",
        "is_changed",
        "is_reading",
        "on_time",
        "uncertain",
        "unseen_lanes",
    )

    def __init__(
        self,
        connection: Connection,
        *,
        is_reading: bool,
        on_time: Callable[["Session"], None],
        uncertain: UncertainCommits | None = None,
    ) -> None:
        self.connection = connection
        self.is_reading = is_reading
        self.on_time = on_time  # called when the lease is renewed: sets our clock by the server's
        self.uncertain = uncertain or UncertainCommits()
        self._statements = Statements(connection, is_pooled=connection.is_pooled)
        self.reset()

    def reset(self) -> None:
        """Clear the state of the last transaction."""
        self.failure: psycopg.Error | None = None  # the first database error, even if the operation caught it
        self.is_changed = False  # something was written that other nodes need to know
        self.unseen_lanes: set[str] = set()  # lanes that another node has locked, see `lanes`

    def rows(self, query: str, *params: Param) -> list[tuple[Any, ...]]:
        """Run a query, and fetch all rows."""
        return self._run(self._statements.rows, query, params)

    def change(self, query: str, *params: Param) -> int:
        """Write; returns the number of affected rows."""
        count = self._run(self._statements.change, query, params)
        self.is_changed = self.is_changed or count > 0
        return count

    def save(self, query: str, n: int, *params: Param) -> None:
        """Write n rows; each must exist and be locked, or a decision about it would be lost silently."""
        count = self.change(query, *params)
        if count != n:
            raise LookupError(f"{n - count} of {n} rows to be written are gone, or were not locked")

    def change_returning(self, query: str, *params: Param) -> list[tuple[Any, ...]]:
        """Write, and fetch the returned rows."""
        found = self.rows(query, *params)
        self.is_changed = self.is_changed or bool(found)
        return found

    @property
    def is_alive(self) -> bool:
        """Whether the connection can be used for another transaction."""
        return not self.connection.closed and self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        self.connection.close()

    def _run(self, run: Callable[[str, list[str | None]], T], query: str, params: tuple[Param, ...]) -> T:
        try:
            return run(query, [_as_text(value) for value in params])
        except psycopg.Error as error:
            self.failure = self.failure or error
            raise


def _as_text(value: Param) -> str | None:
    if value is None:
        return None
    return storable(value) if isinstance(value, str) else str(value)


def is_to_repeat(error: BaseException) -> bool:
    """Whether the database requires the transaction to be run again from the start."""
    return isinstance(error, _TO_REPEAT)


def is_unavailable(error: BaseException) -> bool:
    """Whether the error concerns the server or the connection, so that the transaction cannot be trusted."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.pgconn is not None and error.pgconn.status == ConnStatus.BAD:
        return True
    if error.sqlstate is None:  # from libpq itself: the connection broke, or was never made
        return type(error) in (psycopg.Error, psycopg.DatabaseError) or isinstance(
            error, psycopg.OperationalError | psycopg.InterfaceError
        )
    return error.sqlstate.startswith(_OF_THE_PLACE)


def unavailable(error: psycopg.Error) -> StoreUnavailable:
    """The error as an exception of the port."""
    cure = _CURES.get(error.sqlstate or "")
    message = _said(error)
    failure = StoreUnavailable(f"{cure} ({message})" if cure else message)
    failure.__cause__ = error
    return failure


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
