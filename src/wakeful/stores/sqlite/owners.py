"""Owners of runs other than schedules, in SQLite."""

from collections.abc import Iterable
from sqlite3 import Connection

from wakeful.stores.sqlite.rows import ids

# Assign an id to a name, unless it has one.
ADD = "INSERT INTO owners (name) VALUES (?) ON CONFLICT (name) DO NOTHING"

# The id of a name.
FIND = "SELECT -owner_id FROM owners WHERE name = ?"

# Names by id.
NAMES = "SELECT -owner_id, name FROM json_each(?) AS wanted CROSS JOIN owners ON owner_id = -wanted.value"


class SqliteOwners:
    """See `ports.store.Owners`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def named(self, name: str) -> int:
        known = self.find(name)
        if known is not None:
            return known
        self._connection.execute(ADD, (name,))
        (owner_id,) = self._connection.execute(FIND, (name,)).fetchone()
        return int(owner_id)

    def find(self, name: str) -> int | None:
        found = self._connection.execute(FIND, (name,)).fetchone()
        return None if found is None else int(found[0])

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        return dict(self._connection.execute(NAMES, (ids(owner_ids),)))
