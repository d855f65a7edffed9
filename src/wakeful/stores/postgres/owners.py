"""Owners of runs other than schedules, in PostgreSQL."""

from collections.abc import Iterable

from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import ids

# Assign an id to a name, unless it has one. Concurrent inserts by two nodes wait for each other here.
ADD = "INSERT INTO owners (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"

# The id of a name.
FIND = "SELECT -owner_id FROM owners WHERE name = $1"

# Names by id.
NAMES = "SELECT -owner_id, name FROM owners WHERE owner_id = ANY($1::bigint[])"


class PostgresOwners:
    """See `ports.store.Owners`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def named(self, name: str) -> int:
        known = self.find(name)
        if known is not None:
            return known
        self._session.change(ADD, name)
        ((owner_id,),) = self._session.rows(FIND, name)
        return int(owner_id)

    def find(self, name: str) -> int | None:
        found = self._session.rows(FIND, name)
        return int(found[0][0]) if found else None

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        return {
            int(owner_id): name
            for owner_id, name in self._session.rows(NAMES, ids(-owner_id for owner_id in owner_ids))
        }
