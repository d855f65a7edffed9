"""The state of the heartbeat, in PostgreSQL. Its row is the lock for its wakes and for the system events."""

from collections.abc import Iterable
from typing import Final

from wakeful.core.heartbeat.heartbeat import Heartbeat
from wakeful.core.time.instants import Instant
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.due import due_of
from wakeful.stores.postgres.rows import arrays, columns_of, fields_of, ids, insert_into, update_of

_COLUMNS = columns_of(Heartbeat, "heartbeats")
_TEXTS: Final = frozenset({"wakes", "turns"})

# Insert one, unless it exists.
ADD = f"{insert_into('heartbeats', Heartbeat, _TEXTS)} ON CONFLICT (owner_id) DO NOTHING"

# Heartbeats by owner.
LOOK = f"SELECT {_COLUMNS} FROM heartbeats WHERE owner_id = ANY($1::bigint[]) ORDER BY owner_id"

# The same, locked.
LOCK = f"{LOOK} FOR UPDATE"

# Heartbeats whose alarm is due; without and with locks.
LOOK_DUE, DUE = due_of("heartbeat", "heartbeats", "owner_id", fields_of(Heartbeat))

# Update one.
SAVE = update_of("heartbeats", Heartbeat, _TEXTS, key="owner_id")


class PostgresHeartbeats:
    """See `ports.store.Heartbeats`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, row: Heartbeat) -> None:
        self._session.change(ADD, *arrays([row], Heartbeat, _TEXTS))

    def lock(self, owner_ids: Iterable[int]) -> dict[int, Heartbeat]:
        query = LOOK if self._session.is_reading else LOCK
        rows = map(Heartbeat._make, self._session.rows(query, ids(owner_ids)))
        return {row.owner_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Heartbeat]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(Heartbeat._make, self._session.rows(query, now, limit)))

    def save(self, row: Heartbeat) -> None:
        self._session.save(SAVE, 1, *arrays([row], Heartbeat, _TEXTS))
