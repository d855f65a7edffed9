"""Which processes loaded which Python workflows."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows


class Loaded(NamedTuple):
    """A process that loaded a Python workflow: only such a process can run its handlers."""

    workflow: str
    node: str
    host: str
    pid: int
    started: str  # the start of the process, because pids are reused
    program: str  # for people
    loaded_at: Instant
    ended_at: Instant | None  # it stopped; None: it runs, or it died


ALL = f"""
SELECT {columns_of(Loaded, "loaded_workflows")} FROM loaded_workflows ORDER BY workflow, loaded_at, node, host, pid
"""
FORGET = "DELETE FROM loaded_workflows WHERE workflow = :workflow AND node = :node AND host = :host AND pid = :pid"


class LoadedWorkflows(Rows[Loaded]):
    """The processes that loaded Python workflows."""

    row, table, key = Loaded, "loaded_workflows", "workflow, node, host, pid"

    def all(self) -> list[Loaded]:
        """The processes, by workflow and time."""
        return self._made(self._db.rows(ALL))

    def forget(self, row: Loaded) -> None:
        """Delete the row of a process."""
        self._db.change(FORGET, workflow=row.workflow, node=row.node, host=row.host, pid=row.pid)
