"""Counts what a database does for readers, so that a test can say what grows and what does not."""

from collections.abc import Callable
from typing import Any

import pytest

from edges.http.kit import Client
from wakeful.stores.postgres.connection import Session
from wakeful.stores.sqlite import reader
from wakeful.stores.sqlite.connection import Opened

EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "


class Steps:
    """Counts steps of SQLite's virtual machine, and rows that PostgreSQL looks at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(reader, "end_when_late", self._count)
        monkeypatch.setattr(Session, "_run", self._explaining(Session._run))

    async def of(self, api: Client, path: str) -> int:
        """How many steps a request takes."""
        before = self.count
        answer = await api.get(path)
        assert answer.status == 200, (path, answer.body)
        return self.count - before

    def _count(self, opened: Opened, *, within: float) -> None:
        opened.connection.set_progress_handler(None, 0)
        # A connection parses the schema for its first statement, and which connection serves a request is chance.
        opened.connection.execute("SELECT 1 FROM schedules LIMIT 0").fetchall()
        opened.connection.set_progress_handler(self._step, 1)

    def _step(self) -> None:
        self.count += 1

    def _explaining(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def explained(session: Session, query: str, params: Any) -> Any:
            if session.is_reading and query.lstrip().upper().startswith(("SELECT", "WITH")):
                ((plan,),) = run(session, EXPLAIN + query, params).fetchall()
                self.count += 1 + looked_at(plan[0]["Plan"])
            return run(session, query, params)

        return explained


def looked_at(plan: dict[str, Any]) -> int:
    """How many rows the scans of a plan have read, those that did not match included."""
    rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    is_scan = "Relation Name" in plan or "Index Name" in plan
    own = round(rows * plan["Actual Loops"]) if is_scan else 0
    return own + sum(looked_at(inner) for inner in plan.get("Plans", ()))
