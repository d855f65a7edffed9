"""Where definitions came from, and the journals of takeovers."""

from wakeful.ports.moving import Handover, Origin
from wakeful.stores.shared.database import Database, Table

_ORIGINS = Table("origins", Origin, key=("source", "place", "ref"))
_HANDOVERS = Table("handovers", Handover, key=("handover_id",), fixed=("created_at",))

# Definitions that came from one place.
OF_PLACE = f"SELECT {_ORIGINS.columns} FROM origins WHERE source = :source AND place = :place ORDER BY ref"

# Forget an origin.
REMOVE = "DELETE FROM origins WHERE source = :source AND place = :place AND ref = :ref"

# One journal.
GET = f"SELECT {_HANDOVERS.columns} FROM handovers WHERE handover_id = :handover_id"

# Journals that are not finished; there are few.
OPEN = f"""
SELECT {_HANDOVERS.columns} FROM handovers WHERE stage IN ('written', 'switching')
ORDER BY created_at, handover_id
"""


class SharedOrigins:
    """See `ports.moving.Origins`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def of_place(self, source: str, place: str) -> list[Origin]:
        return list(map(Origin._make, self._db.rows(OF_PLACE, source=source, place=place)))

    def put_many(self, rows: list[Origin]) -> None:
        self._db.upsert(_ORIGINS, rows)

    def remove_many(self, rows: list[Origin]) -> None:
        for row in rows:
            self._db.change(REMOVE, source=row.source, place=row.place, ref=row.ref)


class SharedHandovers:
    """See `ports.moving.Handovers`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, row: Handover) -> None:
        self._db.upsert(_HANDOVERS, [row])

    def get(self, handover_id: str) -> Handover | None:
        return next(map(Handover._make, self._db.rows(GET, handover_id=handover_id)), None)

    def open(self) -> list[Handover]:
        return list(map(Handover._make, self._db.rows(OPEN)))
