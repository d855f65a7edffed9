"""Shapes of deliveries, channels, the inbox and alerts, for OpenAPI."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.core.fields import Fields
from wakeful.server.http.shapes import At, RunId, Shape, Text

DeliveryStatus = Literal["pending", "delivered", "dead"]
Next = Annotated[str | None, Field(description="cursor of the next page; null on the last page")]


class NewDelivery(Shape):
    """A message for a person."""

    text: Text
    channel: Annotated[str | None, Field(description="a channel, or last; default: by routing")] = None
    to: str | None = None


class Delivery(Shape):
    """A delivery to a person."""

    id: Annotated[str, Field(description="the same for every attempt")]
    channel: str
    to: str | None
    text: str
    purpose: Literal["message", "alert", "note"]
    status: DeliveryStatus
    attempts: int
    last_error: str | None
    enqueued_at: At
    next_attempt_at: At | None
    ended_at: At | None
    run_id: RunId | None
    slug: str | None


class Deliveries(Shape):
    """A page of the outbox, newest first."""

    deliveries: list[Delivery]
    next: Next


class InboundFinding(Shape):
    """A problem with receiving on a channel."""

    sentence: str
    cure: str


class Channel(Shape):
    """A channel."""

    name: str
    type: str
    to: Annotated[str | None, Field(description="default recipient")]
    source: Annotated[
        str,
        Field(description="settings, program or built-in; missing: the channel is gone, only its deliveries remain"),
    ]
    inbound: bool
    pending: int
    dead: int
    incident: Annotated[str | None, Field(description="the open alert about this channel")]
    findings: Annotated[
        list[InboundFinding], Field(description="refused polling, unknown senders, unreadable messages")
    ]


class Interaction(Shape):
    """The last interaction with a person."""

    channel: str
    to: str | None
    at: At


class Channels(Shape):
    """Every channel, and the last interaction."""

    channels: list[Channel]
    last: Interaction | None


class Touch(Shape):
    """The person who interacted."""

    to: str | None = None


class PersonsMessage(Shape):
    """A message from a person."""

    to: Text
    text: Text


class Taken(Shape):
    """The message was accepted."""

    status: Literal["taken"]


class ChannelTest(Shape):
    """The result of a test message."""

    status: Literal["delivered", "failed"]
    channel: str
    to: str | None
    error: str | None
    cure: str | None


class InboxItem(Shape):
    """An inbox item."""

    id: str
    text: str
    slug: str | None
    run_id: RunId | None
    at: At
    read_at: At | None


class Inbox(Shape):
    """A page of the inbox, newest first."""

    items: list[InboxItem]
    next: Next
    unread: int


class Alert(Shape):
    """An incident: a problem that was reported, or that recurred soon after its end and was only counted."""

    id: str
    incident: Annotated[str, Field(description="name: the kind of problem and its subject")]
    slug: Annotated[str | None, Field(description="the schedule concerned, if any")]
    text: str
    opened_at: At
    reported_at: Annotated[At | None, Field(description="when it was reported; null if it was only counted")]
    last_at: At
    ended_at: Annotated[At | None, Field(description="null while it is open")]
    times: Annotated[int, Field(description="how often it was observed")]
    reopened: Annotated[int, Field(description="how many times in a row it recurred soon after its end")]
    run_id: RunId | None


class Alerts(Shape):
    """Incidents, open ones first."""

    alerts: list[Alert]


class Read(Shape):
    """Whether the item was read."""

    read: bool = True


def fields_of(data: Any, known: tuple[str, ...]) -> Fields:
    """A body with these fields and no others."""
    fields = Fields(data if isinstance(data, Mapping) else {known[0]: data})
    fields.refuse_unknown(known)
    return fields
