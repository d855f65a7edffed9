"""Single values of the store, in SQLite."""

from sqlite3 import Connection

# A value by name.
GET = "SELECT value FROM meta WHERE name = ?"

# Insert or update a value.
SET = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class SqliteMeta:
    """See `ports.store.Meta`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> str | None:
        found = self._connection.execute(GET, (name,)).fetchone()
        return None if found is None else str(found[0])

    def set(self, name: str, value: str) -> None:
        self._connection.execute(SET, (name, value))
