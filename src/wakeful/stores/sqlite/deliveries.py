"""The outbox, in SQLite."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_DELIVERY, MOVED_COLUMNS, Addressee, Delivery, DeliveryStatus, NewDelivery, by_run
from wakeful.stores.sqlite.due import due_of
from wakeful.stores.sqlite.rows import columns_of, ids, update

_ADDRESSEE = columns_of(Addressee, "addressees")
_DELIVERY = columns_of(Delivery, "deliveries")

# Create an addressee, unless it exists.
MAKE = "INSERT INTO addressees (channel, recipient, fence) VALUES (?, ?, 0) ON CONFLICT (channel, recipient) DO NOTHING"

# The addressee of a channel and a recipient.
FIND = f"SELECT {_ADDRESSEE} FROM addressees WHERE channel = ? AND recipient = ?"

# Addressees by id.
LOCK = f"SELECT {_ADDRESSEE} FROM json_each(?) AS wanted CROSS JOIN addressees ON addressee_id = wanted.value"

# Addressees whose alarm is due, oldest first.
DUE = due_of(ALARM_DELIVERY, "addressees", "addressee_id", _ADDRESSEE)

# Addressees in id order.
ADDRESSEES = f"SELECT {_ADDRESSEE} FROM addressees WHERE addressee_id > ? ORDER BY addressee_id LIMIT ?"

# Update fence and claim.
SAVE_ADDRESSEE = "UPDATE addressees SET fence = ?, claimed_until = ? WHERE addressee_id = ?"

# Insert a delivery, due immediately, unless its run already has one for this addressee. No unique index, because
# stores of 0.1 may contain two.
ADD = """
INSERT INTO deliveries (
  addressee_id, channel, recipient, text, purpose, status, attempts, parts_sent,
  enqueued_at, next_attempt_at, expires_at, run_id, slug
)
SELECT :addressee_id, :channel, :recipient, :text, :purpose, 'pending', 0, 0,
  :enqueued_at, :enqueued_at, :expires_at, :run_id, :slug
WHERE :run_id IS NULL OR NOT EXISTS (
  SELECT 1 FROM deliveries INDEXED BY deliveries_of_run
  WHERE run_id = :run_id AND addressee_id = :addressee_id AND purpose = :purpose
)
RETURNING delivery_id
"""

# The oldest pending delivery of an addressee.
HEAD = f"""
SELECT {_DELIVERY} FROM deliveries INDEXED BY deliveries_pending
WHERE addressee_id = ? AND status = 'pending' ORDER BY delivery_id LIMIT 1
"""

# One delivery.
GET = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id = ?"

# Update a delivery; its text and its addressee never change.
SAVE = update("deliveries", key="delivery_id", columns=MOVED_COLUMNS)
_moved = attrgetter(*MOVED_COLUMNS, "delivery_id")

# Make all pending deliveries of an addressee due now.
HURRY = """
UPDATE deliveries INDEXED BY deliveries_pending SET next_attempt_at = :now
WHERE addressee_id = :addressee_id AND status = 'pending' AND next_attempt_at > :now
"""

# Delete a delivery.
REMOVE = "DELETE FROM deliveries WHERE delivery_id = ?"

# Deliveries newest first, all or of one status.
PAGE = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id < ? ORDER BY delivery_id DESC LIMIT ?"
PAGE_OF_STATUS = f"""
SELECT {_DELIVERY} FROM deliveries WHERE status = ? AND delivery_id < ? ORDER BY delivery_id DESC LIMIT ?
"""

# The deliveries of runs.
OF_RUNS = f"""
SELECT {_DELIVERY} FROM json_each(?) AS wanted CROSS JOIN deliveries INDEXED BY deliveries_of_run
ON deliveries.run_id = wanted.value
"""

# Pending and dead deliveries, by channel.
OPEN_COUNTS = """
SELECT channel, status, count(*) FROM deliveries WHERE status IN ('pending', 'dead') GROUP BY channel, status
"""

# The id of the newest delivery.
LAST_ID = "SELECT coalesce(max(delivery_id), 0) FROM deliveries"

# Delete what ended long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM deliveries WHERE delivery_id IN (
  SELECT delivery_id FROM deliveries INDEXED BY deliveries_ended
  WHERE ended_at IS NOT NULL AND ended_at < :before AND (ended_at >= :since OR EXISTS (
    SELECT 1 FROM deliveries AS later INDEXED BY deliveries_ended
    WHERE later.ended_at >= :since AND later.ended_at < :before AND later.delivery_id > deliveries.delivery_id
  )) ORDER BY ended_at LIMIT :limit
)
"""

_ID_MAX = 2**62


class SqliteDeliveries:
    """See `ports.outbox.Deliveries`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def addressee(self, channel: str, recipient: str | None) -> Addressee:
        who = (channel, recipient or "")
        found = self._connection.execute(FIND, who).fetchone()
        if found is None:
            self._connection.execute(MAKE, who)
            found = self._connection.execute(FIND, who).fetchone()
        return Addressee._make(found)

    def lock_addressees(self, addressee_ids: Iterable[int]) -> dict[int, Addressee]:
        rows = map(Addressee._make, self._connection.execute(LOCK, (ids(addressee_ids),)))
        return {row.addressee_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Addressee]:
        return list(map(Addressee._make, self._connection.execute(DUE, {"now": now, "limit": limit})))

    def addressees(self, *, after_id: int, limit: int) -> list[Addressee]:
        return list(map(Addressee._make, self._connection.execute(ADDRESSEES, (after_id, limit))))

    def save_addressee(self, row: Addressee) -> None:
        self._connection.execute(SAVE_ADDRESSEE, (row.fence, row.claimed_until, row.addressee_id))

    def add(self, row: NewDelivery) -> int | None:
        found = self._connection.execute(ADD, row._asdict()).fetchone()
        return None if found is None else int(found[0])

    def head(self, addressee_id: int) -> Delivery | None:
        found = self._connection.execute(HEAD, (addressee_id,)).fetchone()
        return None if found is None else Delivery._make(found)

    def get(self, delivery_id: int) -> Delivery | None:
        found = self._connection.execute(GET, (delivery_id,)).fetchone()
        return None if found is None else Delivery._make(found)

    def save(self, row: Delivery) -> None:
        self._connection.execute(SAVE, _moved(row))

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        self._connection.execute(HURRY, {"addressee_id": addressee_id, "now": now})

    def remove(self, delivery_id: int) -> None:
        self._connection.execute(REMOVE, (delivery_id,))

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        before = _ID_MAX if before_id is None else before_id
        if status is None:
            return list(map(Delivery._make, self._connection.execute(PAGE, (before, limit))))
        return list(map(Delivery._make, self._connection.execute(PAGE_OF_STATUS, (status, before, limit))))

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        return by_run(map(Delivery._make, self._connection.execute(OF_RUNS, (ids(run_ids),))))

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        counts: dict[str, dict[DeliveryStatus, int]] = {}
        for channel, status, count in self._connection.execute(OPEN_COUNTS):
            counts.setdefault(channel, {})[status] = count
        return counts

    def last_id(self) -> int:
        (last,) = self._connection.execute(LAST_ID).fetchone()
        return int(last)

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._connection.execute(PRUNE, {"before": before, "since": since, "limit": limit}).rowcount
