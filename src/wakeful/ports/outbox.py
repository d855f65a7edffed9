"""The tables of delivery, at the height of the domain: what is to reach people, and what became of it.

An addressee is a channel and one recipient on it. Its row is the lock of everything queued for it, and its alarm (kind
`delivery`) the only one there is for all of that: it rings when the oldest pending delivery may be tried. So whatever
is behind that one waits without an alarm of its own, and order is kept by there being nothing to mix up. Locks of
addressees are taken after those of cadences, runs and lanes.
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
"""What a delivery is: something said to a person, word of an incident, or word that one is over."""


class Addressee(NamedTuple):
    """A channel and one recipient on it."""

    addressee_id: int
    channel: str
    recipient: str  # empty: whoever the channel is for
    fence: int  # grows with every claim: what an older one still says does not count
    claimed_until: Instant | None  # an attempt is under way until then at most


class Delivery(NamedTuple):
    """A text on its way to an addressee."""

    delivery_id: int
    addressee_id: int
    channel: str
    recipient: str | None
    text: str
    purpose: Purpose
    status: DeliveryStatus
    attempts: int  # begun; counted before sending
    parts_sent: int  # of a text that goes in several pieces
    last_error: str | None
    enqueued_at: Instant
    next_attempt_at: Instant | None  # None: it is not pending
    expires_at: Instant  # too old to be sent after that
    ended_at: Instant | None  # delivered, or given up
    run_id: int | None
    slug: str | None


# What changes of a delivery; what it says and to whom never does.
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
    """A delivery about to be written; the store gives it its id."""

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
    """Where a person was last heard of."""

    channel: str
    recipient: str | None
    at: Instant


class InboxItem(NamedTuple):
    """Something that lies in the inbox."""

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
        """The addressee of this channel and recipient, made at the first ask, held. In a write only."""
        ...

    def lock_addressees(self, addressee_ids: Iterable[int]) -> dict[int, Addressee]:
        """Read these and hold them until the transaction ends. In a read, just read."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Addressee]:
        """Addressees whose alarm is due, oldest due first, held; those another node holds are left out."""
        ...

    def addressees(self, *, after_id: int, limit: int) -> list[Addressee]:
        """All of them in id order, held."""
        ...

    def save_addressee(self, row: Addressee) -> None:
        """Write fence and claim back. The caller holds it."""
        ...

    def add(self, row: NewDelivery) -> int | None:
        """Write a pending delivery, due at once; returns its id. The caller holds the addressee, so ids of one
        addressee are in the order in which they were written.

        A run tells an addressee one thing of each purpose: None if it is already there."""
        ...

    def head(self, addressee_id: int) -> Delivery | None:
        """The oldest pending delivery of an addressee."""
        ...

    def get(self, delivery_id: int) -> Delivery | None: ...

    def save(self, row: Delivery) -> None:
        """Write a changed one back. The caller holds its addressee."""
        ...

    def hurry(self, addressee_id: int, *, now: Instant) -> None:
        """Let none that is pending for an addressee wait beyond now. The caller holds the addressee."""
        ...

    def remove(self, delivery_id: int) -> None:
        """Take it away for good. The caller holds its addressee."""
        ...

    def page(self, *, status: DeliveryStatus | None, before_id: int | None, limit: int) -> list[Delivery]:
        """Deliveries newest first, before an id."""
        ...

    def of_runs(self, run_ids: Sequence[int]) -> dict[int, list[Delivery]]:
        """For each of these runs that said something to people, its deliveries, oldest first."""
        ...

    def open_counts(self) -> Mapping[str, Mapping[DeliveryStatus, int]]:
        """By channel, how many are pending and how many dead."""
        ...

    def last_id(self) -> int:
        """The id of the newest; 0 if there was none yet."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` that ended before; returns how many. See `Runs.prune` for `since`."""
        ...


class Channels(Protocol):
    """Where people were last heard of."""

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        """A person was heard of there: that is the last interaction now, whatever the clock says."""
        ...

    def interactions(self) -> list[Interaction]:
        """The last one on each channel, the newest first."""
        ...


class Inbox(Protocol):
    """What lies on the page."""

    def add(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        """Put it there; a delivery that is there already stays as it is."""
        ...

    def get(self, item_id: int) -> InboxItem | None: ...

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        """Items newest first, all or only those nobody has read."""
        ...

    def unread(self) -> int:
        """How many nobody has read."""
        ...

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        """Read, or with None not read after all; False if there is no such item."""
        ...

    def remove(self, item_id: int) -> bool:
        """Take it away; False if there is no such item."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` that came before; returns how many. See `Runs.prune` for `since`."""
        ...


class Incidents(Protocol):
    """What people were told is wrong."""

    def note(self, name: str, text: str, *, at: Instant) -> bool:
        """Note that it is so; True if it was not known, and people are to be told."""
        ...

    def close(self, names: Sequence[str], *, at: Instant) -> list[Incident]:
        """It is over: those of these that were open, as they were."""
        ...

    def open(self) -> list[Incident]:
        """Those that are open, oldest first, watched ones included."""
        ...

    def lock(self, names: Sequence[str]) -> dict[str, Incident]:
        """Of these names those that are open, held until the transaction ends. In a read, just read."""
        ...

    def get(self, incident_id: int) -> Incident | None:
        """One of them, open or over."""
        ...

    def add(self, row: Incident) -> int | None:
        """Write a new one; returns its id, None if one of this name is open."""
        ...

    def save(self, row: Incident) -> None:
        """Write one back. The caller holds it."""
        ...

    def remove(self, incident_id: int) -> None:
        """Delete one that was never reported."""
        ...

    def last_over(self, name: str, *, now: Instant) -> Incident | None:
        """The one of this name that ended last; one that ended on a clock ahead of `now` is left out."""
        ...

    def recent(self, *, limit: int) -> list[Incident]:
        """Those that are over, the latest end first."""
        ...

    def due(self, *, now: Instant, limit: int) -> list[Incident]:
        """Those whose alarm is due, oldest first, held; what another node holds is left out."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` that were over before; returns how many. See `Runs.prune` for `since`."""
        ...


def by_run(rows: Iterable[Delivery]) -> dict[int, list[Delivery]]:
    """Deliveries by the run they belong to, oldest first."""
    found: dict[int, list[Delivery]] = {}
    for row in sorted(rows, key=attrgetter("delivery_id")):
        if row.run_id is not None:
            found.setdefault(row.run_id, []).append(row)
    return found


def public_id(store_id: str, row: Delivery) -> str:
    """How a delivery is called outside: unlike any other of this or another store, and the same each time it is sent.

    A store that lost its last minutes gives the same numbers again, so the moment it was queued is part of it."""
    return f"{store_id}-{row.delivery_id}.{row.enqueued_at:x}"
