"""The state of the heartbeat, in SQLite. There is one writer, so reading a row is locking it."""

from collections.abc import Iterable
from sqlite3 import Connection

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.time.instants import Instant
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, ids, insert_into, update_of

_COLUMNS = columns_of(Heartbeat, "heartbeats")

# Insert one, unless it exists.
ADD = f"{insert_into('heartbeats', Heartbeat)} ON CONFLICT (owner_id) DO NOTHING"

# Heartbeats by owner.
LOCK = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN heartbeats ON owner_id = wanted.value"

# Heartbeats whose alarm is due.
DUE = due_of("heartbeat", "heartbeats", "owner_id", _COLUMNS)

# Update one.
SAVE = update_of("heartbeats", Heartbeat, key=("owner_id",))


class SqliteHeartbeats:
    """See `ports.store.Heartbeats`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: Heartbeat) -> None:
        self._connection.execute(ADD, tuple(row))

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        rows = map(Heartbeat._make, self._connection.execute(LOCK, (ids(owner_ids),)))
        return {row.owner_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        return list(map(Heartbeat._make, self._connection.execute(DUE, {"now": now, "limit": limit})))

    def save(self, row: Heartbeat) -> None:
        self._connection.execute(SAVE, tuple(row))
