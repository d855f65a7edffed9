"""The shapes of what concerns people: deliveries, channels, the inbox."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.core.fields import Fields
from wakeful.server.http.shapes import At, RunId, Shape, Text

DeliveryStatus = Literal["pending", "delivered", "dead"]
Next = Annotated[str | None, Field(description="the cursor of the next page; null: this is the last")]


class NewDelivery(Shape):
    """A text for a person."""

    text: Text
    channel: Annotated[str | None, Field(description="a channel, or last; left out: by routing")] = None
    to: str | None = None


class Delivery(Shape):
    """A text on its way to a person."""

    id: Annotated[str, Field(description="the same on every send")]
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
    """Something that is wrong with what arrives on a channel."""

    sentence: str
    cure: str


class Channel(Shape):
    """A way to a person."""

    name: str
    type: str
    to: Annotated[str | None, Field(description="who gets what is sent without a recipient")]
    source: Annotated[str, Field(description="settings, program, built-in; missing: only its deliveries are there")]
    inbound: bool
    pending: int
    dead: int
    incident: Annotated[str | None, Field(description="why people were told that it does not deliver")]
    findings: Annotated[
        list[InboundFinding], Field(description="refused polling, unknown senders, unreadable messages")
    ]


class Interaction(Shape):
    """Where a person was last heard of."""

    channel: str
    to: str | None
    at: At


class Channels(Shape):
    """Every channel, and the last interaction."""

    channels: list[Channel]
    last: Interaction | None


class Touch(Shape):
    """Who was heard of."""

    to: str | None = None


class PersonsMessage(Shape):
    """What a person said."""

    to: Text
    text: Text


class Taken(Shape):
    """It was taken."""

    status: Literal["taken"]


class ChannelTest(Shape):
    """What became of a test message."""

    status: Literal["delivered", "failed"]
    channel: str
    to: str | None
    error: str | None
    cure: str | None


class InboxItem(Shape):
    """Something to read."""

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
    """An incident: trouble that was reported, or that came back soon after its end and was only counted."""

    id: str
    incident: Annotated[str, Field(description="its name: what kind of trouble, and whose")]
    slug: Annotated[str | None, Field(description="the schedule it is about, if it is about one")]
    text: str
    opened_at: At
    reported_at: Annotated[At | None, Field(description="when people were told; null: it was only counted")]
    last_at: At
    ended_at: Annotated[At | None, Field(description="null: it is open")]
    times: Annotated[int, Field(description="how often it was observed")]
    reopened: Annotated[int, Field(description="how often in a row it came back soon after its end")]
    run_id: RunId | None


class Alerts(Shape):
    """Incidents, open ones first."""

    alerts: list[Alert]


class Read(Shape):
    """Whether it was read."""

    read: bool = True


def fields_of(data: Any, known: tuple[str, ...]) -> Fields:
    """The fields of a body, and no others."""
    fields = Fields(data if isinstance(data, Mapping) else {known[0]: data})
    fields.refuse_unknown(known)
    return fields
