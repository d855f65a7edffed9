"""The delivery tables: messages to people, and their state.

An addressee is a channel and one recipient on it. Its row is the lock for everything queued for it, and its alarm (kind
`delivery`) is the only one for all of that: it rings when the oldest pending delivery may be tried. Deliveries behind
that one have no alarm, so the order cannot be mixed up. Locks of addressees are taken after those of cadences, runs
and lanes.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.delivery.incidents import Incident
from wakeful.core.time.instants import Instant

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
    attempts: int  # counted before sending
    parts_sent: int  # of a message that is sent in several parts
    last_error: str | None
    enqueued_at: Instant
    next_attempt_at: Instant | None  # None if not pending
    expires_at: Instant  # not sent after this
    ended_at: Instant | None  # delivered, or given up
    run_id: int | None
    slug: str | None


# The columns of a delivery that change; its text and its addressee never do.
MOVED_COLUMNS: Final = (
    "status",
    "attempts",
    "parts_sent",
    "last_error",
    "next_attempt_at",
    "expires_at",
    "ended_at",
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


class Interaction(NamedTuple):
    """The last time a person was active on a channel."""

    channel: str
    recipient: str | None
    at: Instant


class InboxItem(NamedTuple):
    """An item in the inbox."""

    item_id: int
    delivery_id: int
    text: str
    slug: str | None
    run_id: int | None
    at: Instant
    read_at: Instant | None


class Deliveries(Protocol):
    """The outbox."""

    def addressee(self, channel: str, recipient: str | None) -> Addressee:
        """The addressee of this channel and recipient, created on first use, locked. Only in a write transaction."""
        ...

    def lock_addressees(self, addressee_ids: Iterable[int]) -> dict[int, Addressee]:
        """Read these addressees and lock them until the transaction ends. A read transaction only reads."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Addressee]:
        """Addressees whose alarm is due, oldest first, locked; those another node has locked are left out."""
        ...

    def addressees(self, *, after_id: int, limit: int) -> list[Addressee]:
        """All addressees in id order, locked."""
        ...

    def save_addressee(self, row: Addressee) -> None:
        """Write fence and claim. The caller holds the lock."""
        ...

    def add(self, row: NewDelivery) -> int | None:
        """Write a pending delivery, due immediately; returns its id. The caller holds the lock of the addressee, so
        ids of one addressee are in the order of writing.

        A run sends an addressee one delivery per purpose: returns None if that exists already."""
        ...

    def head(self, addressee_id: int) -> Delivery | None:
        """The oldest pending delivery of an addressee."""
        ...

    def get(self, delivery_id: int) -> Delivery | None: ...

    def save(self, row: Delivery) -> None:
        """Write a changed delivery. The caller holds the lock of its addressee."""
        ...

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        """Make all pending deliveries of an addressee due by now. The caller holds the lock of the addressee."""
        ...

    def remove(self, delivery_id: int) -> None:
        """Delete a delivery. The caller holds the lock of its addressee."""
        ...

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        """Deliveries newest first, before an id."""
        ...

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        """For each of these runs that has any, its deliveries, oldest first."""
        ...

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        """The number of pending and dead deliveries by channel."""
        ...

    def last_id(self) -> int:
        """The newest delivery's id; 0 if there is none."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` deliveries that ended before `before`; returns how many. See `Runs.prune` for
        `since`."""
        ...


class Channels(Protocol):
    """The last interaction on each channel."""

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        """Record a message from a person: it becomes the last interaction, whatever the clock says."""
        ...

    def interactions(self) -> list[Interaction]:
        """The last interaction on each channel, newest first."""
        ...


class Inbox(Protocol):
    """The inbox of the page."""

    def add(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        """Add an item; an existing item for the same delivery is left unchanged."""
        ...

    def get(self, item_id: int) -> InboxItem | None: ...

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        """Items newest first, all or only unread ones."""
        ...

    def unread(self) -> int:
        """The number of unread items."""
        ...

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        """Mark an item read, or unread with None; False if there is no such item."""
        ...

    def mark_all_read(self, *, at: Instant) -> int:
        """Mark everything read; returns how many were unread."""
        ...

    def remove(self, item_id: int) -> bool:
        """Delete an item; False if there is no such item."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` items that arrived before `before`; returns how many. See `Runs.prune` for `since`."""
        ...


class Incidents(Protocol):
    """The incidents people were alerted about."""

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        """Record an incident; True if it is new, so people have to be alerted."""
        ...

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        """Close these incidents; returns those that were open, as they were before."""
        ...

    def open(self) -> list[Incident]:
        """Open incidents, oldest first, including watched ones."""
        ...

    def lock(self, names: Sequence[str]) -> dict[str, Incident]:
        """Open incidents with these names, locked until the transaction ends. A read transaction only reads."""
        ...

    def get(self, incident_id: int) -> Incident | None:
        """An incident, open or closed."""
        ...

    def add(self, row: Incident) -> int | None:
        """Write a new incident; returns its id, or None if an incident with this name is open."""
        ...

    def save(self, row: Incident) -> None:
        """Write a changed incident. The caller holds its lock."""
        ...

    def remove(self, incident_id: int) -> None:
        """Delete an incident that was never reported."""
        ...

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        """The last closed incident with this name, ignoring any that ended after `now` (on a wrong clock)."""
        ...

    def recent(self, *, limit: int) -> list[Incident]:
        """Closed incidents, the last closed first."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Incident]:
        """Incidents whose alarm is due, oldest first, locked; those another node has locked are left out."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` incidents closed before `before`; returns how many. See `Runs.prune` for `since`."""
        ...


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
