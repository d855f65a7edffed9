"""Single facts of the store, in PostgreSQL.

A fact is read in order to be decided upon, so a write holds it from the first look: two nodes that both find the
store's id missing must not both make one. A name may have no row yet, so it is an advisory lock that is held; it is
taken in a statement of its own, because a statement sees the world as it was when it began, not when its lock came.
"""

from wakeful.stores.postgres.connection import Session

# Hold a name until the transaction ends.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.meta.' || $1, 0))"

# A fact by name.
GET = "SELECT value FROM meta WHERE name = $1"

# Write a fact, new or known.
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
