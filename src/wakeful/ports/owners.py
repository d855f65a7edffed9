"""Owners of runs other than schedules: the heartbeat, workflows, quota slots."""

from collections.abc import Iterable
from typing import NamedTuple

from wakeful.ports.table import Rows


class Owner(NamedTuple):
    """A name, and its id without the sign."""

    owner_id: int
    name: str


# Assign an id to a name, unless it has one. Concurrent inserts by two nodes wait for each other here.
ADD = "INSERT INTO owners (name) VALUES (:name) ON CONFLICT (name) DO NOTHING"

# The id of a name.
FIND = "SELECT -owner_id FROM owners WHERE name = :name"

# Names by id.
NAMES = "SELECT -owner_id, name FROM owners WHERE owner_id IN :owner_ids"


class Owners(Rows[Owner]):
    """Names with runs. Their ids are negative, so that a run's `schedule_id` shows which of the two it refers to."""

    row, table, key, is_numbered = Owner, "owners", "owner_id", True

    def named(self, name: str) -> int:
        """The id of the owner with this name (`workflow:inbox`), assigned on first use, permanently. Only in a
        write."""
        known = self.find(name)
        if known is None:
            self._db.change(ADD, name=name)
            ((known,),) = self._db.rows(FIND, name=name)
        return int(known)

    def find(self, name: str) -> int | None:
        """The id, if there is one."""
        return next((owner_id for (owner_id,) in self._db.rows(FIND, name=name)), None)

    def names(self, owner_ids: Iterable[int]) -> dict[int, str]:
        """Names by id."""
        return dict(self._db.rows(NAMES, owner_ids=[-owner_id for owner_id in owner_ids]))
