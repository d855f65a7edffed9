"""Owners of runs other than schedules."""

from collections.abc import Iterable

from wakeful.stores.shared.database import Database

# Assign an id to a name, unless it has one. Concurrent inserts by two nodes wait for each other here.
ADD = "INSERT INTO owners (name) VALUES (:name) ON CONFLICT (name) DO NOTHING"

# The id of a name.
FIND = "SELECT -owner_id FROM owners WHERE name = :name"

# Names by id.
NAMES = "SELECT -owner_id, name FROM owners WHERE owner_id IN :owner_ids"


class SharedOwners:
    """See `ports.store.Owners`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def named(self, name: str) -> int:
        known = self.find(name)
        if known is None:
            self._db.change(ADD, name=name)
            ((known,),) = self._db.rows(FIND, name=name)
        return int(known)

    def find(self, name: str) -> int | None:
        return next((owner_id for (owner_id,) in self._db.rows(FIND, name=name)), None)

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        return dict(self._db.rows(NAMES, owner_ids=[-owner_id for owner_id in owner_ids]))
