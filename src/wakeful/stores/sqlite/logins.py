"""One-time codes and page sessions, in SQLite."""

from sqlite3 import Connection

from wakeful.ports.logins import Login
from wakeful.stores.sqlite.rows import columns_of

_COLUMNS = columns_of(Login, "logins")

# Add a code or session.
ADD = """
INSERT INTO logins (digest, kind, role, name, token_digest, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

# One by its digest.
GET = f"SELECT {_COLUMNS} FROM logins WHERE digest = ?"

# Remove one that has not expired, and return it.
TAKE = f"DELETE FROM logins WHERE digest = ? AND kind = ? AND expires_at > ? RETURNING {_COLUMNS}"

# Remove what has expired, and all but the newest.
PRUNE = """
DELETE FROM logins WHERE expires_at <= ?
  OR digest NOT IN (SELECT digest FROM logins ORDER BY created_at DESC, digest LIMIT ?)
"""


class SqliteLogins:
    """See `ports.logins.Logins`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, login: Login) -> None:
        self._connection.execute(ADD, tuple(login))

    def get(self, digest: str) -> Login | None:
        found = self._connection.execute(GET, (digest,)).fetchone()
        return None if found is None else Login._make(found)

    def take(self, digest: str, *, kind: str, now: int) -> Login | None:
        found = self._connection.execute(TAKE, (digest, kind, now)).fetchone()
        return None if found is None else Login._make(found)

    def clear(self) -> int:
        return self._connection.execute("DELETE FROM logins").rowcount

    def prune(self, *, now: int, most: int) -> int:
        return self._connection.execute(PRUNE, (now, most)).rowcount
