"""Sessions, and the details of their runs, in SQLite."""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from wakeful.core.workflow.rows import HandlerRun, Session
from wakeful.ports.workflows import NewSession
from wakeful.stores.sqlite.rows import columns_of, ids, insert_into, plain, update_of

_COLUMNS = columns_of(Session, "sessions")
_RUN_COLUMNS = columns_of(HandlerRun, "handler_runs")

# Insert a session and return its id.
ADD = """
INSERT INTO sessions (workflow_id, kind, started_at, producers_left, consumers_run) VALUES (?, ?, ?, ?, 0)
"""

# Sessions by id.
BY_IDS = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN sessions ON session_id = wanted.value"

# Update a session.
SAVE = update_of("sessions", Session, key=("session_id",), fixed=("workflow_id", "kind", "started_at"))

# Sessions of a workflow, newest first.
PAGE = f"SELECT {_COLUMNS} FROM sessions WHERE workflow_id = ? AND session_id < ? ORDER BY session_id DESC LIMIT ?"

# Insert a handler run.
ADD_RUN = insert_into("handler_runs", HandlerRun)

# Handler runs by id.
RUNS = f"SELECT {_RUN_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN handler_runs ON run_id = wanted.value"

# Update a handler run.
SAVE_RUN = update_of(
    "handler_runs", HandlerRun, key=("run_id",), fixed=("workflow_id", "session_id", "handler", "kind", "queued")
)

# The runs of sessions, in order.
RUNS_OF = f"""
SELECT {_RUN_COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN handler_runs INDEXED BY handler_runs_of_session ON session_id = wanted.value ORDER BY session_id, run_id
"""

# Of the oldest handler runs, those that are no longer in the ledger.
FORGOTTEN = """
SELECT run_id, session_id FROM (SELECT run_id, session_id FROM handler_runs ORDER BY run_id LIMIT ?) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""

# Messages they settled.
FORGET_MESSAGES = """
DELETE FROM messages WHERE run_id IN (SELECT value FROM json_each(?)) AND (status = 'consumed' OR status = 'skipped')
"""
FORGET_RUNS = "DELETE FROM handler_runs WHERE run_id IN (SELECT value FROM json_each(?))"

# Sessions that have ended and have no run left.
FORGET_SESSIONS = """
DELETE FROM sessions WHERE session_id IN (SELECT value FROM json_each(?)) AND ended_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM handler_runs WHERE handler_runs.session_id = sessions.session_id)
"""

_NO_ID = 2**62


class SqliteSessions:
    """See `ports.workflows.Sessions`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: NewSession) -> int:
        added = self._connection.execute(ADD, tuple(row)).lastrowid
        assert added is not None  # noqa: S101 - an INSERT of one row gives one
        return added

    def by_ids(self, session_ids: Iterable[int]) -> dict[int, Session]:
        rows = map(Session._make, self._connection.execute(BY_IDS, (ids(set(session_ids)),)))
        return {row.session_id: row for row in rows}

    def save_many(self, rows: Sequence[Session]) -> None:
        self._connection.executemany(SAVE, plain(rows))

    def page(self, workflow_id: int, *, before_id: int | None, limit: int) -> list[Session]:
        before = _NO_ID if before_id is None else before_id
        return list(map(Session._make, self._connection.execute(PAGE, (workflow_id, before, limit))))

    def add_runs(self, rows: Sequence[HandlerRun]) -> None:
        self._connection.executemany(ADD_RUN, plain(rows))

    def runs(self, run_ids: Iterable[int]) -> dict[int, HandlerRun]:
        rows = map(HandlerRun._make, self._connection.execute(RUNS, (ids(set(run_ids)),)))
        return {row.run_id: row for row in rows}

    def save_runs(self, rows: Sequence[HandlerRun]) -> None:
        self._connection.executemany(SAVE_RUN, plain(rows))

    def runs_of(self, session_ids: Iterable[int]) -> dict[int, list[HandlerRun]]:
        found: dict[int, list[HandlerRun]] = {}
        for row in map(HandlerRun._make, self._connection.execute(RUNS_OF, (ids(set(session_ids)),))):
            found.setdefault(row.session_id, []).append(row)
        return found

    def prune(self, *, limit: int) -> int:
        gone = self._connection.execute(FORGOTTEN, (limit,)).fetchall()
        if gone:
            run_ids, session_ids = ids(run_id for run_id, _ in gone), ids({session_id for _, session_id in gone})
            self._connection.execute(FORGET_MESSAGES, (run_ids,))
            self._connection.execute(FORGET_RUNS, (run_ids,))
            self._connection.execute(FORGET_SESSIONS, (session_ids,))
        return len(gone)
