"""The outbox."""

from collections.abc import Iterable, Mapping, Sequence

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import ALARM_DELIVERY, MOVED_COLUMNS, Addressee, Delivery, DeliveryStatus, NewDelivery, by_run
from wakeful.stores.pruning import NO_ID
from wakeful.stores.shared.database import Database, Table, columns_of, fields_of
from wakeful.stores.shared.queries import due_of, old_of

_ADDRESSEES = Table("addressees", Addressee, key=("addressee_id",), fixed=("channel", "recipient"))
# The text of a delivery and its addressee never change.
_DELIVERIES = Table(
    "deliveries",
    Delivery,
    key=("delivery_id",),
    fixed=tuple(name for name in fields_of(Delivery) if name != "delivery_id" and name not in MOVED_COLUMNS),
)
_ADDRESSEE = _ADDRESSEES.columns
_DELIVERY = columns_of(Delivery, "deliveries")

# Create an addressee, unless it exists. Concurrent inserts by two nodes wait for each other here.
MAKE = """
INSERT INTO addressees (channel, recipient, fence) VALUES (:channel, :recipient, 0)
ON CONFLICT (channel, recipient) DO NOTHING
"""

# The addressee of a channel and a recipient, locked.
FIND = f"SELECT {_ADDRESSEE} FROM addressees WHERE channel = :channel AND recipient = :recipient FOR UPDATE"

# Addressees by id, in id order, locked.
LOCK = f"SELECT {_ADDRESSEE} FROM addressees WHERE addressee_id IN :addressee_ids ORDER BY addressee_id FOR UPDATE"

# Addressees whose alarm is due, oldest first, locked.
DUE = due_of(ALARM_DELIVERY, _ADDRESSEES)

# Addressees in id order, locked.
ADDRESSEES = f"""
SELECT {_ADDRESSEE} FROM addressees WHERE addressee_id > :after_id ORDER BY addressee_id LIMIT :limit FOR UPDATE
"""

# Insert a delivery, due immediately, unless its run already has one for this addressee. No unique index, because
# stores of 0.1 may contain two.
ADD = """
INSERT INTO deliveries (
  addressee_id, channel, recipient, text, purpose, status, attempts, parts_sent,
  enqueued_at, next_attempt_at, expires_at, run_id, slug
)
SELECT CAST(:addressee_id AS bigint), CAST(:channel AS text), CAST(:recipient AS text), CAST(:text AS text),
  CAST(:purpose AS text), 'pending', 0, 0, CAST(:enqueued_at AS bigint), CAST(:enqueued_at AS bigint),
  CAST(:expires_at AS bigint), CAST(:run_id AS bigint), CAST(:slug AS text)
WHERE CAST(:run_id AS bigint) IS NULL OR NOT EXISTS (
  SELECT 1 FROM deliveries INDEXED BY deliveries_of_run
  WHERE run_id = :run_id AND addressee_id = :addressee_id AND purpose = :purpose
)
RETURNING delivery_id
"""

# The oldest pending delivery of an addressee.
HEAD = f"""
SELECT {_DELIVERY} FROM deliveries INDEXED BY deliveries_pending
WHERE addressee_id = :addressee_id AND status = 'pending' ORDER BY delivery_id LIMIT 1
"""

# One delivery.
GET = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id = :delivery_id"

# Make all pending deliveries of an addressee due now.
HURRY = """
UPDATE deliveries INDEXED BY deliveries_pending SET next_attempt_at = :now
WHERE addressee_id = :addressee_id AND status = 'pending' AND next_attempt_at > :now
"""

# Delete deliveries.
REMOVE = "DELETE FROM deliveries WHERE delivery_id IN :delivery_ids"

# Deliveries newest first, all or of one status.
PAGE = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id < :before_id ORDER BY delivery_id DESC LIMIT :limit"
PAGE_OF_STATUS = f"""
SELECT {_DELIVERY} FROM deliveries WHERE status = :status AND delivery_id < :before_id
ORDER BY status DESC, delivery_id DESC LIMIT :limit
"""

# The deliveries of runs.
OF_RUNS = f"SELECT {_DELIVERY} FROM deliveries INDEXED BY deliveries_of_run WHERE run_id IN :run_ids"

# Pending and dead deliveries, by channel: counted in the index alone.
OPEN_COUNTS = """
SELECT channel, status, count(*) FROM deliveries INDEXED BY deliveries_open
WHERE status = 'pending' OR status = 'dead' GROUP BY channel, status
"""

# The id of the newest delivery.
LAST_ID = "SELECT coalesce(max(delivery_id), 0) FROM deliveries"

# Deliveries that ended long ago.
OLD = old_of("deliveries", key="delivery_id", dated="ended_at", index="deliveries_ended")


class SharedDeliveries:
    """See `ports.outbox.Deliveries`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def addressee(self, channel: str, recipient: str | None) -> Addressee:
        recipient = recipient or ""
        found = self._db.rows(FIND, channel=channel, recipient=recipient)
        if not found:
            self._db.change(MAKE, channel=channel, recipient=recipient)
            found = self._db.rows(FIND, channel=channel, recipient=recipient)
        return Addressee._make(found[0])

    def lock_addressees(self, addressee_ids: Iterable[int]) -> dict[int, Addressee]:
        rows = map(Addressee._make, self._db.rows(LOCK, addressee_ids=addressee_ids))
        return {row.addressee_id: row for row in rows}

    def due(self, *, now: Instant, limit: int) -> list[Addressee]:
        return list(map(Addressee._make, self._db.rows(DUE, now=now, limit=limit)))

    def addressees(self, *, after_id: int, limit: int) -> list[Addressee]:
        return list(map(Addressee._make, self._db.rows(ADDRESSEES, after_id=after_id, limit=limit)))

    def save_addressee(self, row: Addressee) -> None:
        self._db.update(_ADDRESSEES, [row])

    def add(self, row: NewDelivery) -> int | None:
        added = self._db.change_returning(ADD, **row._asdict())
        return next((delivery_id for (delivery_id,) in added), None)

    def head(self, addressee_id: int) -> Delivery | None:
        return next(map(Delivery._make, self._db.rows(HEAD, addressee_id=addressee_id)), None)

    def get(self, delivery_id: int) -> Delivery | None:
        return next(map(Delivery._make, self._db.rows(GET, delivery_id=delivery_id)), None)

    def save(self, row: Delivery) -> None:
        self._db.update(_DELIVERIES, [row])

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        self._db.change(HURRY, addressee_id=addressee_id, now=now)

    def remove(self, delivery_id: int) -> None:
        self._db.change(REMOVE, delivery_ids=[delivery_id])

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        before_id = NO_ID if before_id is None else before_id
        query = PAGE if status is None else PAGE_OF_STATUS
        return list(map(Delivery._make, self._db.rows(query, status=status, before_id=before_id, limit=limit)))

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        return by_run(map(Delivery._make, self._db.rows(OF_RUNS, run_ids=run_ids)))

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        counts: dict[str, dict[DeliveryStatus, int]] = {}
        for channel, status, count in self._db.rows(OPEN_COUNTS):
            counts.setdefault(channel, {})[status] = count
        return counts

    def last_id(self) -> int:
        ((last,),) = self._db.rows(LAST_ID)
        return int(last)

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        old = [delivery_id for (delivery_id,) in self._db.rows(OLD, before=before, since=since, limit=limit)]
        return self._db.change(REMOVE, delivery_ids=old) if old else 0
