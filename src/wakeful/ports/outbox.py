"""The delivery tables: messages to people, and their state.

An addressee is a channel and one recipient on it. Its row is the lock for everything queued for it, and its alarm (kind
`delivery`) is the only one for all of that: it rings when the oldest pending delivery may be tried. Deliveries behind
that one have no alarm, so the order cannot be mixed up. Locks of addressees are taken after those of cadences, runs
and lanes.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.ports.database import NO_ID, columns_of
from wakeful.ports.table import Rows

ALARM_INCIDENT: Final = "incident"

ALARM_PING: Final = "ping"

ALARM_DELIVERY: Final = "delivery"

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "dead"]
Purpose: TypeAlias = Literal["message", "alert", "note"]
"""What a delivery is: a message to a person, an alert about an incident, or the note that one is over."""


class Addressee(NamedTuple):
    """A channel and one recipient on it."""

    addressee_id: int
    channel: str
    recipient: str  # empty: the channel's own recipient
    fence: int  # grows with every claim: the result of an older one is ignored
    claimed_until: Instant | None  # when the attempt in progress ends at the latest


class Delivery(NamedTuple):
    """A message for an addressee."""

    delivery_id: int
    addressee_id: int
    channel: str
    recipient: str | None
    text: str
    purpose: Purpose
    status: DeliveryStatus
    attempts: int  # counted by the `sending` mark, right before the channel is called
    parts_sent: int  # of a message that is sent in several parts
    last_error: str | None
    enqueued_at: Instant
    next_attempt_at: Instant | None  # None if not pending
    expires_at: Instant  # not sent after this
    ended_at: Instant | None  # delivered, or given up
    run_id: int | None
    slug: str | None
    unsent_claims: int = 0  # claims in a row that were lost before the `sending` mark: nothing was sent


# The columns of a delivery that change; its text and its addressee never do.
MOVED_COLUMNS: Final = (
    "status",
    "attempts",
    "parts_sent",
    "last_error",
    "next_attempt_at",
    "expires_at",
    "ended_at",
    "unsent_claims",
)


class NewDelivery(NamedTuple):
    """A delivery about to be written; the store assigns its id."""

    addressee_id: int
    channel: str
    recipient: str | None
    text: str
    purpose: Purpose
    enqueued_at: Instant
    expires_at: Instant
    run_id: int | None
    slug: str | None


_ADDRESSEE_COLUMNS = columns_of(Addressee, "addressees")
_COLUMNS = columns_of(Delivery, "deliveries")

# Create an addressee, unless it exists. Concurrent inserts by two nodes wait for each other here.
MAKE = """
INSERT INTO addressees (channel, recipient, fence) VALUES (:channel, :recipient, 0)
ON CONFLICT (channel, recipient) DO NOTHING
"""

# The addressee of a channel and a recipient, locked.
FIND = f"SELECT {_ADDRESSEE_COLUMNS} FROM addressees WHERE channel = :channel AND recipient = :recipient FOR UPDATE"

# Addressees in id order, locked.
ADDRESSEES = f"""
SELECT {_ADDRESSEE_COLUMNS} FROM addressees WHERE addressee_id > :after_id ORDER BY addressee_id LIMIT :limit FOR UPDATE
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
SELECT {_COLUMNS} FROM deliveries INDEXED BY deliveries_pending
WHERE addressee_id = :addressee_id AND status = 'pending' ORDER BY delivery_id LIMIT 1
"""

# Make all pending deliveries of an addressee due now.
HURRY = """
UPDATE deliveries INDEXED BY deliveries_pending SET next_attempt_at = :now
WHERE addressee_id = :addressee_id AND status = 'pending' AND next_attempt_at > :now
"""

# Deliveries newest first, all or of one status.
PAGE = f"SELECT {_COLUMNS} FROM deliveries WHERE delivery_id < :before_id ORDER BY delivery_id DESC LIMIT :limit"
PAGE_OF_STATUS = f"""
SELECT {_COLUMNS} FROM deliveries WHERE status = :status AND delivery_id < :before_id
ORDER BY status DESC, delivery_id DESC LIMIT :limit
"""

# The deliveries of runs.
OF_RUNS = f"SELECT {_COLUMNS} FROM deliveries INDEXED BY deliveries_of_run WHERE run_id IN :run_ids"

# Pending and dead deliveries, by channel: counted in the index alone.
OPEN_COUNTS = """
SELECT channel, status, count(*) FROM deliveries INDEXED BY deliveries_open
WHERE status = 'pending' OR status = 'dead' GROUP BY channel, status
"""

# The id of the newest delivery.
LAST_ID = "SELECT coalesce(max(delivery_id), 0) FROM deliveries"


class Addressees(Rows[Addressee]):
    """Whom deliveries are queued for."""

    row, table, key, alarm = Addressee, "addressees", "addressee_id", ALARM_DELIVERY
    fixed, is_numbered = ("channel", "recipient"), True

    def of(self, channel: str, recipient: str | None) -> Addressee:
        """The addressee of this channel and recipient, created on first use, locked. Only in a write transaction."""
        recipient = recipient or ""
        found = self._db.rows(FIND, channel=channel, recipient=recipient)
        if not found:
            self._db.change(MAKE, channel=channel, recipient=recipient)
            found = self._db.rows(FIND, channel=channel, recipient=recipient)
        return Addressee._make(found[0])

    def page(self, *, after_id: int, limit: int) -> list[Addressee]:
        """All addressees in id order, locked."""
        return self._made(self._db.rows(ADDRESSEES, after_id=after_id, limit=limit))


class Deliveries(Rows[Delivery]):
    """The outbox. Writers hold the lock of the addressee."""

    row, table, key, is_numbered = Delivery, "deliveries", "delivery_id", True
    fixed = tuple(name for name in Delivery._fields if name not in ("delivery_id", *MOVED_COLUMNS))
    time, time_index = "ended_at", "deliveries_ended"

    def add_new(self, row: NewDelivery) -> int | None:
        """Write a pending delivery, due immediately; returns its id. The caller holds the lock of the addressee, so
        ids of one addressee are in the order of writing.

        A run sends an addressee one delivery per purpose: returns None if that exists already."""
        added = self._db.change_returning(ADD, **row._asdict())
        return next((delivery_id for (delivery_id,) in added), None)

    def head(self, addressee_id: int) -> Delivery | None:
        """The oldest pending delivery of an addressee."""
        return next(iter(self._made(self._db.rows(HEAD, addressee_id=addressee_id))), None)

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        """Make all pending deliveries of an addressee due by now."""
        self._db.change(HURRY, addressee_id=addressee_id, now=now)

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        """Deliveries newest first, before an id."""
        before_id = NO_ID if before_id is None else before_id
        query = PAGE if status is None else PAGE_OF_STATUS
        return self._made(self._db.rows(query, status=status, before_id=before_id, limit=limit))

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        """For each of these runs that has any, its deliveries, oldest first."""
        return by_run(self._made(self._db.rows(OF_RUNS, run_ids=run_ids)))

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        """The number of pending and dead deliveries by channel."""
        counts: dict[str, dict[DeliveryStatus, int]] = {}
        for channel, status, count in self._db.rows(OPEN_COUNTS):
            counts.setdefault(channel, {})[status] = count
        return counts

    def last_id(self) -> int:
        """The newest delivery's id; 0 if there is none."""
        ((last,),) = self._db.rows(LAST_ID)
        return int(last)


def by_run(rows: Iterable[Delivery]) -> dict[int, list[Delivery]]:
    """Deliveries by the run they belong to, oldest first."""
    deliveries: dict[int, list[Delivery]] = {}
    for row in sorted(rows, key=attrgetter("delivery_id")):
        if row.run_id is not None:
            deliveries.setdefault(row.run_id, []).append(row)
    return deliveries


def public_id(store_id: str, row: Delivery) -> str:
    """The external id of a delivery: unique across stores, and the same each time it is sent.

    A store that lost its last minutes assigns the same numbers again, so the time of queueing is part of it."""
    return f"{store_id}-{row.delivery_id}.{row.enqueued_at:x}"
