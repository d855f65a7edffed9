"""Single values of the store.

A value is read in order to decide something, so a write transaction locks it from the first read: two nodes that both
find the store's id missing must not both create one. A name may have no row yet, so the name itself is locked.
"""

from wakeful.stores.shared.database import Database

# A value by name.
GET = "SELECT value FROM meta WHERE name = :name"

# Insert or update a value.
SET = "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class SharedMeta:
    """See `ports.store.Meta`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, name: str) -> str | None:
        self._db.lock_name(f"meta.{name}")
        return next((value for (value,) in self._db.rows(GET, name=name)), None)

    def set(self, name: str, value: str) -> None:
        self._db.lock_name(f"meta.{name}")
        self._db.change(SET, name=name, value=value)
