"""Single values of the store, by name."""

from typing import NamedTuple

from wakeful.ports.table import Rows


class MetaValue(NamedTuple):
    """A value and its name."""

    name: str
    value: str


class Meta(Rows[MetaValue]):
    """Single values.

    A value is read in order to decide something, so a write transaction locks it from the first read: two nodes that
    both find the store's id missing must not both create one. A name may have no row yet, so the name itself is locked.
    """

    row, table, key = MetaValue, "meta", "name"

    def value(self, name: str) -> str | None:
        """The value with this name."""
        self._db.lock_name(f"meta.{name}")
        row = self.get(name)
        return None if row is None else row.value

    def set(self, name: str, value: str) -> None:
        """Write a value."""
        self._db.lock_name(f"meta.{name}")
        self.put(MetaValue(name, value))
