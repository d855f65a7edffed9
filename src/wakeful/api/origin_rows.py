"""Where definitions came from: an import, or a folder of files."""

from collections.abc import Iterable
from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows


class Origin(NamedTuple):
    """Where a definition came from, in the order of its columns."""

    source: str  # the kind of import, or `apply`
    place: str  # the file, the folder or the system it was read from
    ref: str  # its identity in that source
    kind: str  # what it became: schedule, workflow, slot or delivery
    name: str
    digest: str  # of the definition as it was taken over
    at: Instant


# Definitions that came from one place.
OF_PLACE = f"""
SELECT {columns_of(Origin, "origins")} FROM origins WHERE source = :source AND place = :place ORDER BY ref
"""

# Forget an origin.
FORGET = "DELETE FROM origins WHERE source = :source AND place = :place AND ref = :ref"


class Origins(Rows[Origin]):
    """Where definitions came from."""

    row, table, key = Origin, "origins", "source, place, ref"

    def of_place(self, source: str, place: str) -> list[Origin]:
        """What came from one place."""
        return self._made(self._db.rows(OF_PLACE, source=source, place=place))

    def forget(self, rows: Iterable[Origin]) -> None:
        """Delete these origins."""
        for row in rows:
            self._db.change(FORGET, source=row.source, place=row.place, ref=row.ref)
