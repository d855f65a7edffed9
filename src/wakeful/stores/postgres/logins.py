"""One-time codes and page sessions, in PostgreSQL."""

from wakeful.ports.logins import Login
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of

_COLUMNS = columns_of(Login, "logins")

# Add a code or session.
ADD = """
INSERT INTO logins (digest, kind, role, name, token_digest, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
"""

# One by its digest.
GET = f"SELECT {_COLUMNS} FROM logins WHERE digest = $1"

# Remove one that has not expired, and return it. Of two concurrent calls, the second finds no row.
TAKE = f"DELETE FROM logins WHERE digest = $1 AND kind = $2 AND expires_at > $3 RETURNING {_COLUMNS}"

# Remove expired ones, and all but the newest. Rows that another node has locked are left to it.
PRUNE = """
DELETE FROM logins WHERE digest IN (
  SELECT digest FROM logins WHERE expires_at <= $1
    OR digest NOT IN (SELECT digest FROM logins ORDER BY created_at DESC, digest LIMIT $2)
  ORDER BY digest FOR UPDATE SKIP LOCKED
)
"""


class PostgresLogins:
    """See `ports.logins.Logins`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, login: Login) -> None:
        self._session.change(ADD, *login)

    def get(self, digest: str) -> Login | None:
        found = self._session.rows(GET, digest)
        return Login._make(found[0]) if found else None

    def take(self, digest: str, *, kind: str, now: int) -> Login | None:
        found = self._session.rows(TAKE, digest, kind, now)
        return Login._make(found[0]) if found else None

    def clear(self) -> int:
        return self._session.change("DELETE FROM logins")

    def prune(self, *, now: int, most: int) -> int:
        return self._session.change(PRUNE, now, most)
