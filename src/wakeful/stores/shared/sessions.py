"""Sessions, and the details of their runs."""

from collections.abc import Iterable, Sequence

from wakeful.core.workflow.rows import HandlerRun, Session
from wakeful.ports.workflows import NewSession
from wakeful.stores.pruning import NO_ID
from wakeful.stores.shared.database import Database, Table, grouped

_SESSIONS = Table("sessions", Session, key=("session_id",), fixed=("workflow_id", "kind", "started_at"))
_RUNS = Table(
    "handler_runs", HandlerRun, key=("run_id",), fixed=("workflow_id", "session_id", "handler", "kind", "queued")
)

# Insert a session and return its id.
ADD = """
INSERT INTO sessions (workflow_id, kind, started_at, producers_left, consumers_run)
VALUES (:workflow_id, :kind, :started_at, :producers_left, 0) RETURNING session_id
"""

# Sessions by id.
BY_IDS = f"SELECT {_SESSIONS.columns} FROM sessions WHERE session_id IN :session_ids"

# Sessions of a workflow, newest first.
PAGE = f"""
SELECT {_SESSIONS.columns} FROM sessions WHERE workflow_id = :workflow_id AND session_id < :before_id
ORDER BY session_id DESC LIMIT :limit
"""

# Handler runs by id.
RUNS = f"SELECT {_RUNS.columns} FROM handler_runs WHERE run_id IN :run_ids"

# The runs of sessions, in order.
RUNS_OF = f"""
SELECT {_RUNS.columns} FROM handler_runs INDEXED BY handler_runs_of_session WHERE session_id IN :session_ids
ORDER BY session_id, run_id
"""

# Of the oldest handler runs, those that are no longer in the ledger.
FORGOTTEN = """
SELECT run_id, session_id FROM (SELECT run_id, session_id FROM handler_runs ORDER BY run_id LIMIT :limit) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""

# Messages they settled.
FORGET_MESSAGES = """
DELETE FROM messages WHERE run_id IN :run_ids AND (status = 'consumed' OR status = 'skipped')
"""
FORGET_RUNS = "DELETE FROM handler_runs WHERE run_id IN :run_ids"

# Sessions that have ended and have no run left.
FORGET_SESSIONS = """
DELETE FROM sessions WHERE session_id IN :session_ids AND ended_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM handler_runs WHERE handler_runs.session_id = sessions.session_id)
"""


class SharedSessions:
    """See `ports.workflows.Sessions`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: NewSession) -> int:
        ((session_id,),) = self._db.change_returning(ADD, **row._asdict())
        return int(session_id)

    def by_ids(self, session_ids: Iterable[int]) -> dict[int, Session]:
        rows = map(Session._make, self._db.rows(BY_IDS, session_ids=session_ids))
        return {row.session_id: row for row in rows}

    def save_many(self, rows: Sequence[Session]) -> None:
        self._db.update(_SESSIONS, rows)

    def page(self, workflow_id: int, *, before_id: int | None, limit: int) -> list[Session]:
        before_id = NO_ID if before_id is None else before_id
        return list(map(Session._make, self._db.rows(PAGE, workflow_id=workflow_id, before_id=before_id, limit=limit)))

    def add_runs(self, rows: Sequence[HandlerRun]) -> None:
        self._db.insert(_RUNS, rows)

    def runs(self, run_ids: Iterable[int]) -> dict[int, HandlerRun]:
        rows = map(HandlerRun._make, self._db.rows(RUNS, run_ids=run_ids))
        return {row.run_id: row for row in rows}

    def save_runs(self, rows: Sequence[HandlerRun]) -> None:
        self._db.update(_RUNS, rows)

    def runs_of(self, session_ids: Iterable[int]) -> dict[int, list[HandlerRun]]:
        rows = map(HandlerRun._make, self._db.rows(RUNS_OF, session_ids=session_ids))
        return grouped((row.session_id, row) for row in rows)

    def prune(self, *, limit: int) -> int:
        gone = self._db.rows(FORGOTTEN, limit=limit)
        if gone:
            run_ids = [run_id for run_id, _ in gone]
            self._db.change(FORGET_MESSAGES, run_ids=run_ids)
            self._db.change(FORGET_RUNS, run_ids=run_ids)
            self._db.change(FORGET_SESSIONS, session_ids={session_id for _, session_id in gone})
        return len(gone)
