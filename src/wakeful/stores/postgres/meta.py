"""Single values of the store, in PostgreSQL.

A value is read in order to decide something, so a write transaction locks it from the first read: two nodes that both
find the store's id missing must not both create one. A name may have no row yet, so the lock is an advisory lock; it is
taken in a separate statement, because a statement sees the state at its start, not when its lock was granted.
"""

from wakeful.stores.postgres.connection import Session

# Lock a name until the transaction ends.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.meta.' || $1, 0))"

# A value by name.
GET = "SELECT value FROM meta WHERE name = $1"

# Insert or update a value.
SET = """
INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


class PostgresMeta:
    """See `ports.store.Meta`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, name: str) -> str | None:
        if not self._session.is_reading:
            self._session.rows(LOCK, name)
        found = self._session.rows(GET, name)
        return found[0][0] if found else None

    def set(self, name: str, value: str) -> None:
        self._session.rows(LOCK, name)
        self._session.change(SET, name, value)
