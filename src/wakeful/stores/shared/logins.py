"""One-time codes and page sessions."""

from wakeful.ports.logins import Login
from wakeful.stores.shared.database import Database, columns_of, fields_of, insert_one

_COLUMNS = columns_of(Login, "logins")

# Add a code or session.
ADD = insert_one("logins", fields_of(Login))

# A code or session by its digest.
GET = f"SELECT {_COLUMNS} FROM logins WHERE digest = :digest"

# Remove one that has not expired, and return it. Of two concurrent calls, the second finds no row.
TAKE = f"DELETE FROM logins WHERE digest = :digest AND kind = :kind AND expires_at > :now RETURNING {_COLUMNS}"

# Remove expired ones, and all but the newest. Rows that another node has locked are left to it.
PRUNE = """
DELETE FROM logins WHERE digest IN (
  SELECT digest FROM logins WHERE expires_at <= :now
    OR digest NOT IN (SELECT digest FROM logins ORDER BY created_at DESC, digest LIMIT :most)
  ORDER BY digest FOR UPDATE SKIP LOCKED
)
"""


class SharedLogins:
    """See `ports.logins.Logins`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, login: Login) -> None:
        self._db.change(ADD, **login._asdict())

    def get(self, digest: str) -> Login | None:
        return next(map(Login._make, self._db.rows(GET, digest=digest)), None)

    def take(self, digest: str, *, kind: str, now: int) -> Login | None:
        return next(map(Login._make, self._db.rows(TAKE, digest=digest, kind=kind, now=now)), None)

    def clear(self) -> int:
        return self._db.change("DELETE FROM logins")

    def prune(self, *, now: int, most: int) -> int:
        return self._db.change(PRUNE, now=now, most=most)
