"""Views of deliveries, channels and the inbox."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, NamedTuple

from wakeful.core.returned import INTERNAL, Named, RunCursor, RunId, returned
from wakeful.core.time.timing_builders import as_datetime
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.ports.inbox import InboxItem
from wakeful.ports.interactions import Interaction
from wakeful.ports.outbox import Delivery, DeliveryStatus, Purpose


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A delivery to a person."""

    id: Annotated[str, "the same for every attempt"]
    number: Annotated[int, INTERNAL]
    channel: str
    to: str | None
    text: str
    purpose: Purpose
    status: DeliveryStatus
    attempts: int
    last_error: str | None
    enqueued_at: datetime
    next_attempt_at: datetime | None
    ended_at: datetime | None
    run_id: RunId | None
    slug: str | None


DELIVERY: Final = returned(DeliveryView, name="Delivery")


class DeliveryPage(NamedTuple):
    """A page of the outbox, newest first."""

    deliveries: list[DeliveryView]
    next: Annotated[RunCursor, "cursor of the next page; null on the last page"]


DELIVERIES: Final = returned(DeliveryPage, name="Deliveries")


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel."""

    name: str
    kind: Annotated[str, Named("type")]
    to: Annotated[str | None, "default recipient"]
    source: Annotated[str, "settings, program or built-in; missing: the channel is gone, only its deliveries remain"]
    inbound: bool
    pending: int
    dead: int
    incident: Annotated[str | None, "the open alert about this channel"]
    findings: Annotated[tuple[InboundFinding, ...], "refused polling, unknown senders, unreadable messages"]


CHANNEL: Final = returned(ChannelView, name="Channel")


@dataclass(frozen=True, slots=True)
class InteractionView:
    """The last interaction with a person."""

    channel: str
    to: str | None
    at: datetime


INTERACTION: Final = returned(InteractionView, name="Interaction")


class ChannelList(NamedTuple):
    """Every channel, and the last interaction."""

    channels: list[ChannelView]
    last: InteractionView | None


CHANNELS: Final = returned(ChannelList, name="Channels")


@dataclass(frozen=True, slots=True)
class ChannelTest:
    """The result of a test message."""

    channel: str
    to: str | None
    error: str | None  # None: it arrived
    cure: str | None

    @property
    def status(self) -> Literal["delivered", "failed"]:
        return "delivered" if self.error is None else "failed"


CHANNEL_TEST: Final = returned(ChannelTest, properties={"status": Literal["delivered", "failed"]})


@dataclass(frozen=True, slots=True)
class InboxView:
    """An inbox item."""

    id: str
    text: str
    slug: str | None
    run_id: RunId | None
    at: datetime
    read_at: datetime | None


INBOX_ITEM: Final = returned(InboxView, name="InboxItem")


class InboxPage(NamedTuple):
    """A page of the inbox, newest first."""

    items: list[InboxView]
    next: Annotated[str | None, "cursor of the next page; null on the last page"]
    unread: int


INBOX: Final = returned(InboxPage, name="Inbox")


def view_delivery(row: Delivery, public_id: str) -> DeliveryView:
    return DeliveryView(
        public_id,
        row.delivery_id,
        row.channel,
        row.recipient,
        row.text,
        row.purpose,
        row.status,
        row.attempts,
        row.last_error,
        as_datetime(row.enqueued_at),
        None if row.next_attempt_at is None else as_datetime(row.next_attempt_at),
        None if row.ended_at is None else as_datetime(row.ended_at),
        row.run_id,
        row.slug,
    )


def view_item(row: InboxItem) -> InboxView:
    read_at = None if row.read_at is None else as_datetime(row.read_at)
    return InboxView(str(row.item_id), row.text, row.slug, row.run_id, as_datetime(row.at), read_at)


def view_interaction(row: Interaction) -> InteractionView:
    return InteractionView(row.channel, row.recipient, as_datetime(row.at))
