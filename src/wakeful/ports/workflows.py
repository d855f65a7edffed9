"""The table of workflows.

The row of a workflow is the lock for everything in it. Writing a handler, a topic, a message, a session or a handler's
run requires that lock (`StoredWorkflows.lock`, `due`), so the access to those tables neither locks nor checks for
concurrent changes.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Origin, Status, Workflow
from wakeful.ports.database import Table, columns_of
from wakeful.ports.queries import due_of
from wakeful.ports.table import Rows

ALARM_WORKFLOW: Final = "workflow"


class NewWorkflow(NamedTuple):
    """A workflow about to be written; the store assigns its id."""

    name: str
    owner_id: int
    definition: str
    origin: Origin
    status: Status
    created_at: Instant


_COLUMNS = columns_of(Workflow, "workflows")

# Insert one workflow and return its id; an existing name is skipped.
ADD = """
INSERT INTO workflows (name, owner_id, definition, version, origin, status, created_at, updated_at)
VALUES (:name, :owner_id, :definition, 1, :origin, :status, :created_at, :created_at)
ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING RETURNING workflow_id
"""

# The existing workflows with these names.
BY_NAMES = f"SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name WHERE deleted_at IS NULL AND name IN :names"

# Workflows whose alarm is due, locked, without Python workflows that other processes have loaded, unless they were left
# to them for a while.
DUE_HERE = due_of(
    ALARM_WORKFLOW,
    Table("workflows", Workflow, key=("workflow_id",)),
    which="\n  AND (workflows.origin <> 'python' OR workflows.name IN :loaded OR alarms.due_at <= :left_by)",
)

# Existing workflows ordered by name.
PAGE = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND name > :after ORDER BY name LIMIT :limit
"""

# Workflows that wait for a person. There are too few workflows to justify an index.
STOPPED = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND status = 'active' AND error IS NOT NULL ORDER BY name LIMIT :limit
"""

# Python workflows that may run.
OF_PYTHON = f"""
SELECT {_COLUMNS} FROM workflows INDEXED BY workflows_name
WHERE deleted_at IS NULL AND origin = 'python' AND status = 'active' AND error IS NULL ORDER BY name LIMIT :limit
"""

# Existing workflows in id order, locked in that order.
AFTER = f"""
SELECT {_COLUMNS} FROM workflows WHERE workflow_id > :after_id AND deleted_at IS NULL
ORDER BY workflow_id LIMIT :limit FOR UPDATE
"""

# Deleted workflows that have no messages left.
EMPTIED = """
SELECT workflow_id FROM workflows WHERE deleted_at IS NOT NULL AND open_run_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.workflow_id = workflows.workflow_id)
"""


class StoredWorkflows(Rows[Workflow]):
    """Workflows, also deleted ones."""

    row, table, key, is_numbered = Workflow, "workflows", "workflow_id", True
    fixed, alarm = ("name", "created_at"), ALARM_WORKFLOW

    def add_new(self, row: NewWorkflow) -> int | None:
        """Write a new workflow; returns its id, or None if the name is taken."""
        added = self._db.change_returning(ADD, **row._asdict())
        return next((workflow_id for (workflow_id,) in added), None)

    def by_names(self, names: Sequence[str]) -> dict[str, Workflow]:
        """Existing workflows with these names."""
        return {row.name: row for row in self._made(self._db.rows(BY_NAMES, names=names))}

    def due_here(self, *, now: Instant, left_by: Instant, loaded: Iterable[str], limit: int) -> list[Workflow]:
        """Like `due`, without the Python workflows that are not `loaded` in this process, unless their alarm was due by
        `left_by`."""
        return self._made(self._db.rows(DUE_HERE, now=now, left_by=left_by, loaded=loaded, limit=limit))

    def of_python(self, *, limit: int) -> list[Workflow]:
        """Active Python workflows that no error stopped, ordered by name."""
        return self._made(self._db.rows(OF_PYTHON, limit=limit))

    def page(self, *, after: str | None, limit: int) -> list[Workflow]:
        """Existing workflows ordered by name, after a name."""
        return self._made(self._db.rows(PAGE, after=after or "", limit=limit))

    def stopped(self, *, limit: int) -> list[Workflow]:
        """Active workflows that an error stopped until a person acts, ordered by name."""
        return self._made(self._db.rows(STOPPED, limit=limit))

    def after(self, workflow_id: int, *, limit: int) -> list[Workflow]:
        """Existing workflows in id order after an id, locked."""
        return self._made(self._db.rows(AFTER, after_id=workflow_id, limit=limit))
