"""The outbox, in PostgreSQL."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_DELIVERY, MOVED_COLUMNS, Addressee, Delivery, DeliveryStatus, NewDelivery, by_run
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.due import due_of
from wakeful.stores.postgres.rows import columns_of, fields_of, ids

_ADDRESSEE = columns_of(Addressee, "addressees")
_DELIVERY = columns_of(Delivery, "deliveries")

# Create an addressee, unless it exists. Concurrent inserts by two nodes wait for each other here.
MAKE = """
INSERT INTO addressees (channel, recipient, fence) VALUES ($1, $2, 0) ON CONFLICT (channel, recipient) DO NOTHING
"""

# The addressee of a channel and a recipient, locked.
FIND = f"SELECT {_ADDRESSEE} FROM addressees WHERE channel = $1 AND recipient = $2 FOR UPDATE"

# Addressees by id, in id order.
LOOK = f"SELECT {_ADDRESSEE} FROM addressees WHERE addressee_id = ANY($1::bigint[]) ORDER BY addressee_id"

# The same, locked.
LOCK = f"{LOOK} FOR UPDATE"

# Addressees whose alarm is due, oldest first; without and with locks.
LOOK_DUE, DUE = due_of(ALARM_DELIVERY, "addressees", "addressee_id", fields_of(Addressee))

# Addressees in id order.
LOOK_ADDRESSEES = f"SELECT {_ADDRESSEE} FROM addressees WHERE addressee_id > $1 ORDER BY addressee_id LIMIT $2"

# The same, locked.
ADDRESSEES = f"{LOOK_ADDRESSEES} FOR UPDATE"

# Update fence and claim.
SAVE_ADDRESSEE = "UPDATE addressees SET fence = $2, claimed_until = $3 WHERE addressee_id = $1"

# Insert a delivery, due immediately, unless its run already has one for this addressee. No unique index, because
# stores of 0.1 may contain two.
ADD = """
INSERT INTO deliveries (
  addressee_id, channel, recipient, text, purpose, status, attempts, parts_sent,
  enqueued_at, next_attempt_at, expires_at, run_id, slug
)
SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text, 'pending', 0, 0,
  $6::bigint, $6::bigint, $7::bigint, $8::bigint, $9::text
WHERE $8::bigint IS NULL OR NOT EXISTS (
  SELECT 1 FROM deliveries WHERE run_id = $8::bigint AND addressee_id = $1::bigint AND purpose = $5::text
)
RETURNING delivery_id
"""

# The oldest pending delivery of an addressee.
HEAD = f"""
SELECT {_DELIVERY} FROM deliveries WHERE addressee_id = $1 AND status = 'pending' ORDER BY delivery_id LIMIT 1
"""

# One delivery.
GET = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id = $1"

# Update a delivery; its text and its addressee never change.
_CHANGED = ", ".join(f"{name} = ${place}" for place, name in enumerate(MOVED_COLUMNS, start=2))
SAVE = f"UPDATE deliveries SET {_CHANGED} WHERE delivery_id = $1"
_moved = attrgetter("delivery_id", *MOVED_COLUMNS)

# Make all pending deliveries of an addressee due now.
HURRY = """
UPDATE deliveries SET next_attempt_at = $2 WHERE addressee_id = $1 AND status = 'pending' AND next_attempt_at > $2
"""

# Delete a delivery.
REMOVE = "DELETE FROM deliveries WHERE delivery_id = $1"

# Deliveries newest first, all or of one status.
PAGE = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id < $1 ORDER BY delivery_id DESC LIMIT $2"
PAGE_OF_STATUS = f"""
SELECT {_DELIVERY} FROM deliveries WHERE status = $3 AND delivery_id < $1 ORDER BY status, delivery_id DESC LIMIT $2
"""

# The deliveries of runs.
OF_RUNS = f"""
SELECT {_DELIVERY} FROM unnest($1::bigint[]) AS wanted (wanted_id)
JOIN deliveries ON deliveries.run_id = wanted_id
"""

# Pending and dead deliveries, by channel.
OPEN_COUNTS = """
SELECT channel, status, count(*) FROM deliveries WHERE status IN ('pending', 'dead') GROUP BY channel, status
"""

# The id of the newest delivery.
LAST_ID = "SELECT coalesce((SELECT delivery_id FROM deliveries ORDER BY delivery_id DESC LIMIT 1), 0)"

# Delete what ended long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM deliveries WHERE delivery_id = ANY(ARRAY(
  SELECT delivery_id FROM deliveries WHERE ended_at < $1 AND (ended_at >= $3 OR EXISTS (
    SELECT 1 FROM deliveries AS later
    WHERE later.ended_at >= $3 AND later.ended_at < $1 AND later.delivery_id > deliveries.delivery_id
  )) ORDER BY ended_at LIMIT $2
))
"""

_ID_MAX: Final = 2**62


class PostgresDeliveries:
    """See `ports.outbox.Deliveries`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def addressee(self, channel: str, recipient: str | None) -> Addressee:
        who = (channel, recipient or "")
        found = self._session.rows(FIND, *who)
        if not found:
            self._session.change(MAKE, *who)
            found = self._session.rows(FIND, *who)
        return Addressee._make(found[0])

    def lock_addressees(self, addressee_ids: Iterable[int]) -> dict[int, Addressee]:
        query = LOOK if self._session.is_reading else LOCK
        rows = map(Addressee._make, self._session.rows(query, ids(addressee_ids)))
        return {row.addressee_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Addressee]:
        query = LOOK_DUE if self._session.is_reading else DUE
        return list(map(Addressee._make, self._session.rows(query, now, limit)))

    def addressees(self, *, after_id: int, limit: int) -> list[Addressee]:
        query = LOOK_ADDRESSEES if self._session.is_reading else ADDRESSEES
        return list(map(Addressee._make, self._session.rows(query, after_id, limit)))

    def save_addressee(self, row: Addressee) -> None:
        self._session.save(SAVE_ADDRESSEE, 1, row.addressee_id, row.fence, row.claimed_until)

    def add(self, row: NewDelivery) -> int | None:
        found = self._session.change_returning(ADD, *row)
        return None if not found else int(found[0][0])

    def head(self, addressee_id: int) -> Delivery | None:
        return _one(self._session.rows(HEAD, addressee_id))

    def get(self, delivery_id: int) -> Delivery | None:
        return _one(self._session.rows(GET, delivery_id))

    def save(self, row: Delivery) -> None:
        self._session.save(SAVE, 1, *_moved(row))

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        self._session.change(HURRY, addressee_id, now)

    def remove(self, delivery_id: int) -> None:
        self._session.change(REMOVE, delivery_id)

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        before = _ID_MAX if before_id is None else before_id
        if status is None:
            return list(map(Delivery._make, self._session.rows(PAGE, before, limit)))
        return list(map(Delivery._make, self._session.rows(PAGE_OF_STATUS, before, limit, status)))

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        return by_run(map(Delivery._make, self._session.rows(OF_RUNS, ids(run_ids))))

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        counts: dict[str, dict[DeliveryStatus, int]] = {}
        for channel, status, count in self._session.rows(OPEN_COUNTS):
            counts.setdefault(channel, {})[status] = int(count)
        return counts

    def last_id(self) -> int:
        ((last,),) = self._session.rows(LAST_ID)
        return int(last)

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._session.change(PRUNE, before, limit, since)


def _one(rows: list[tuple[object, ...]]) -> Delivery | None:
    return Delivery._make(rows[0]) if rows else None
