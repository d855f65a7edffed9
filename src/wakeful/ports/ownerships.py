"""Which agent made a schedule."""

from wakeful.core.self_scheduling.proposals import Ownership
from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows

_COLUMNS = columns_of(Ownership, "ownerships")

# An agent's ownerships whose schedules exist.
OF_OWNER = f"""
SELECT {_COLUMNS} FROM ownerships JOIN schedules ON schedules.schedule_id = ownerships.schedule_id
WHERE ownerships.owner = :owner AND schedules.deleted_at IS NULL ORDER BY ownerships.schedule_id
"""

# The newest run of each schedule that agents made, of those that began.
LAST_RUNS = """
SELECT (SELECT max(run_id) FROM runs WHERE runs.schedule_id = ownerships.schedule_id AND attempt > 0) AS run_id
FROM ownerships ORDER BY schedule_id
"""

# The schedules an agent made, including removed ones.
MADE = f"SELECT {_COLUMNS} FROM ownerships WHERE owner = :owner AND created_at > :since ORDER BY schedule_id"


class Ownerships(Rows[Ownership]):
    """Schedules that agents made. A row stays when its schedule is removed, until that is forgotten."""

    row, table, key = Ownership, "ownerships", "schedule_id"

    def lock_owner(self, owner: str) -> None:
        """Let no other transaction write for this agent until this one ends, so that its limits hold."""
        self._db.lock_name(f"agent:{owner}")

    def of_owner(self, owner: str) -> list[Ownership]:
        """An agent's existing schedules, by id."""
        return self._made(self._db.rows(OF_OWNER, owner=owner))

    def last_runs(self) -> list[int]:
        """The newest run of each schedule that agents made, of those that began."""
        return [run_id for (run_id,) in self._db.rows(LAST_RUNS) if run_id is not None]

    def made_since(self, owner: str, since: Instant) -> list[Ownership]:
        """The schedules an agent made since `since`, including removed ones."""
        return self._made(self._db.rows(MADE, owner=owner, since=since))
