"""Sessions, and the details of their runs."""

from collections.abc import Iterable, Sequence

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import HandlerRun, Session
from wakeful.ports.database import NO_ID, Database, Table, grouped
from wakeful.ports.workflows import NewSession
from wakeful.stores.shared.payloads import forget_unused

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

# The planned times in a span that a handler ran for, besides runs after which it is tried again. Reads the runs of its
# workflow, but only after the clock went back.
TAKEN = """
SELECT runs.planned_at FROM runs JOIN handler_runs ON handler_runs.run_id = runs.run_id
WHERE runs.schedule_id = :owner_id AND handler_runs.handler = :handler
  AND runs.planned_at >= :since AND runs.planned_at <= :until
  AND runs.outcome <> 'failed' AND runs.outcome <> 'unknown'
"""

# Rows of a workflow for times that did not run, which reach beyond an instant. Only after the clock went back.
GAPS_AHEAD = """
SELECT run_id FROM runs
WHERE schedule_id = :owner_id AND outcome IN ('skipped', 'missed') AND attempt = 0
  AND coalesce(planned_until, planned_at) > :after
"""

# Of the oldest handler runs, those that are no longer in the ledger.
FORGOTTEN = """
SELECT run_id, session_id FROM (SELECT run_id, session_id FROM handler_runs ORDER BY run_id LIMIT :limit) AS oldest
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = oldest.run_id)
"""

# Messages they settled.
FORGET_MESSAGES = """
DELETE FROM messages WHERE run_id IN :run_ids AND (status = 'consumed' OR status = 'skipped')
RETURNING workflow_id, topic, message_id
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

    def taken(self, owner_id: int, handler: str, *, since: Instant, until: Instant) -> frozenset[Instant]:
        rows = self._db.rows(TAKEN, owner_id=owner_id, handler=handler, since=since, until=until)
        return frozenset(planned_at for (planned_at,) in rows)

    def gaps_ahead(self, owner_id: int, *, after: Instant) -> list[int]:
        return sorted(run_id for (run_id,) in self._db.rows(GAPS_AHEAD, owner_id=owner_id, after=after))

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
            forget_unused(self._db, self._db.change_returning(FORGET_MESSAGES, run_ids=run_ids))
            self._db.change(FORGET_RUNS, run_ids=run_ids)
            self._db.change(FORGET_SESSIONS, session_ids={session_id for _, session_id in gone})
        return len(gone)
