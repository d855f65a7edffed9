"""Sessions, and the details of their runs, in PostgreSQL."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.core.workflow.rows import HandlerRun, Session
from wakeful.ports.workflows import NewSession
from wakeful.stores.postgres.connection import Session as Connected
from wakeful.stores.postgres.rows import arrays, columns_of, ids, insert_into, update_of

_COLUMNS = columns_of(Session, "sessions")
_RUN_COLUMNS = columns_of(HandlerRun, "handler_runs")
_TEXTS: Final = frozenset({"kind", "result", "error", "producers_left"})
_RUN_TEXTS: Final = frozenset({"handler", "kind", "phase", "phases", "prepared", "mutation", "result", "awaits"})
_FIXED: Final = ("workflow_id", "kind", "started_at")
_RUN_FIXED: Final = ("workflow_id", "session_id", "handler", "kind", "queued")

# Insert a session and return its id.
ADD = """
INSERT INTO sessions (workflow_id, kind, started_at, producers_left, consumers_run) VALUES ($1, $2, $3, $4, 0)
RETURNING session_id
"""

# Sessions by id.
BY_IDS = f"SELECT {_COLUMNS} FROM sessions WHERE session_id = ANY($1::bigint[])"

# Update sessions.
SAVE = update_of("sessions", Session, _TEXTS, key="session_id", fixed=_FIXED)

# Sessions of a workflow, newest first.
PAGE = f"SELECT {_COLUMNS} FROM sessions WHERE workflow_id = $1 AND session_id < $2 ORDER BY session_id DESC LIMIT $3"

# Insert handler runs.
ADD_RUNS = insert_into("handler_runs", HandlerRun, _RUN_TEXTS)

# Handler runs by id.
RUNS = f"SELECT {_RUN_COLUMNS} FROM handler_runs WHERE run_id = ANY($1::bigint[])"

# Update handler runs.
SAVE_RUNS = update_of("handler_runs", HandlerRun, _RUN_TEXTS, key="run_id", fixed=_RUN_FIXED)

# The runs of sessions, in order.
RUNS_OF = f"SELECT {_RUN_COLUMNS} FROM handler_runs WHERE session_id = ANY($1::bigint[]) ORDER BY session_id, run_id"

# Of the oldest handler runs, those that are no longer in the ledger.
FORGOTTEN = """
SELECT run_id, session_id FROM (SELECT run_id, session_id FROM handler_runs ORDER BY run_id LIMIT $1) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""

# Messages they settled.
FORGET_MESSAGES = """
DELETE FROM messages WHERE run_id = ANY($1::bigint[]) AND (status = 'consumed' OR status = 'skipped')
"""
FORGET_RUNS = "DELETE FROM handler_runs WHERE run_id = ANY($1::bigint[])"

# Sessions that have ended and have no run left.
FORGET_SESSIONS = """
DELETE FROM sessions WHERE session_id = ANY($1::bigint[]) AND ended_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM handler_runs WHERE handler_runs.session_id = sessions.session_id)
"""

_NO_ID: Final = 2**62


class PostgresSessions:
    """See `ports.workflows.Sessions`."""

    __slots__ = ("_session",)

    def __init__(self, session: Connected) -> None:
        self._session = session

    def add(self, row: NewSession) -> int:
        ((session_id,),) = self._session.change_returning(ADD, *row)
        return int(session_id)

    def by_ids(self, session_ids: Iterable[int]) -> dict[int, Session]:
        rows = map(Session._make, self._session.rows(BY_IDS, ids(set(session_ids))))
        return {row.session_id: row for row in rows}

    def save_many(self, rows: Sequence[Session]) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Session, _TEXTS, fixed=_FIXED))

    def page(self, workflow_id: int, *, before_id: int | None, limit: int) -> list[Session]:
        before = _NO_ID if before_id is None else before_id
        return list(map(Session._make, self._session.rows(PAGE, workflow_id, before, limit)))

    def add_runs(self, rows: Sequence[HandlerRun]) -> None:
        if rows:
            self._session.change(ADD_RUNS, *arrays(rows, HandlerRun, _RUN_TEXTS))

    def runs(self, run_ids: Iterable[int]) -> dict[int, HandlerRun]:
        rows = map(HandlerRun._make, self._session.rows(RUNS, ids(set(run_ids))))
        return {row.run_id: row for row in rows}

    def save_runs(self, rows: Sequence[HandlerRun]) -> None:
        if rows:
            self._session.save(SAVE_RUNS, len(rows), *arrays(rows, HandlerRun, _RUN_TEXTS, fixed=_RUN_FIXED))

    def runs_of(self, session_ids: Iterable[int]) -> dict[int, list[HandlerRun]]:
        found: dict[int, list[HandlerRun]] = {}
        for row in map(HandlerRun._make, self._session.rows(RUNS_OF, ids(set(session_ids)))):
            found.setdefault(row.session_id, []).append(row)
        return found

    def prune(self, *, limit: int) -> int:
        gone = self._session.rows(FORGOTTEN, limit)
        if gone:
            run_ids, session_ids = ids(run_id for run_id, _ in gone), ids({session_id for _, session_id in gone})
            self._session.change(FORGET_MESSAGES, run_ids)
            self._session.change(FORGET_RUNS, run_ids)
            self._session.change(FORGET_SESSIONS, session_ids)
        return len(gone)
