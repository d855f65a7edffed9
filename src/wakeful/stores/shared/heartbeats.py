"""The state of the heartbeat. Its row is the lock for its wakes and for the system events."""

from collections.abc import Iterable

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.time.instants import Instant
from wakeful.stores.shared.database import Database, Table, fields_of, insert_one
from wakeful.stores.shared.queries import due_of

_HEARTBEATS = Table("heartbeats", Heartbeat, key=("owner_id",))

# Insert a heartbeat, unless it exists.
ADD = f"{insert_one('heartbeats', fields_of(Heartbeat))} ON CONFLICT (owner_id) DO NOTHING"

# Heartbeats by owner, locked.
LOCK = f"SELECT {_HEARTBEATS.columns} FROM heartbeats WHERE owner_id IN :owner_ids ORDER BY owner_id FOR UPDATE"

# Heartbeats whose alarm is due, locked.
DUE = due_of("heartbeat", _HEARTBEATS)


class SharedHeartbeats:
    """See `ports.store.Heartbeats`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: Heartbeat) -> None:
        self._db.change(ADD, **row._asdict())

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        rows = map(Heartbeat._make, self._db.rows(LOCK, owner_ids=owner_ids))
        return {row.owner_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        return list(map(Heartbeat._make, self._db.rows(DUE, now=now, limit=limit)))

    def save(self, row: Heartbeat) -> None:
        self._db.update(_HEARTBEATS, [row])
