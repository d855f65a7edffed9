"""Sessions: which runs of a workflow's handlers belong together."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.ports.database import NO_ID, columns_of
from wakeful.ports.table import Rows

SessionKind: TypeAlias = Literal["schedule", "manual", "event"]
SessionResult: TypeAlias = Literal["completed", "failed"]


class Session(NamedTuple):
    """A sequence of handler runs, shown to people; it is never resumed."""

    session_id: int
    workflow_id: int
    kind: SessionKind
    started_at: Instant
    ended_at: Instant | None
    result: SessionResult | None
    error: str | None
    producers_left: str  # JSON: names of producers still to run in it
    consumers_run: int


ADD = """
INSERT INTO sessions (workflow_id, kind, started_at, producers_left, consumers_run)
VALUES (:workflow_id, :kind, :started_at, :producers_left, 0) RETURNING session_id
"""

# Sessions of a workflow, newest first.
PAGE = f"""
SELECT {columns_of(Session, "sessions")} FROM sessions WHERE workflow_id = :workflow_id AND session_id < :before_id
ORDER BY session_id DESC LIMIT :limit
"""

# Sessions that have ended and have no run left.
FORGET = """
DELETE FROM sessions WHERE session_id IN :session_ids AND ended_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM handler_runs WHERE handler_runs.session_id = sessions.session_id)
"""


class Sessions(Rows[Session]):
    """The sessions of workflows."""

    row, table, key, is_numbered = Session, "sessions", "session_id", True
    fixed = ("workflow_id", "kind", "started_at")

    def start(self, workflow_id: int, kind: SessionKind, *, producers_left: str, now: Instant) -> int:
        """Write a new session; returns its id."""
        ((session_id,),) = self._db.change_returning(
            ADD, workflow_id=workflow_id, kind=kind, started_at=now, producers_left=producers_left
        )
        return int(session_id)

    def page(self, workflow_id: int, *, before_id: int | None, limit: int) -> list[Session]:
        """Sessions of a workflow, newest first."""
        before_id = NO_ID if before_id is None else before_id
        return self._made(self._db.rows(PAGE, workflow_id=workflow_id, before_id=before_id, limit=limit))

    def forget(self, session_ids: Iterable[int]) -> None:
        """Delete those of these sessions that have ended and have no run left."""
        self._db.change(FORGET, session_ids=session_ids)
