"""Views of deliveries, channels and the inbox: values for Python, one JSON shape for everything else."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.core.time.instants import format_instant
from wakeful.core.time.timing_builders import as_datetime
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.ports.outbox import Delivery, DeliveryStatus, InboxItem, Interaction, Purpose

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery."""

    id: str
    number: int
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
    run_id: int | None
    slug: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "channel": self.channel,
            "to": self.to,
            "text": self.text,
            "purpose": self.purpose,
            "status": self.status,
            "attempts": self.attempts,
            "lastError": self.last_error,
            "enqueuedAt": _text(self.enqueued_at),
            "nextAttemptAt": _text(self.next_attempt_at),
            "endedAt": _text(self.ended_at),
            "runId": None if self.run_id is None else str(self.run_id),
            "slug": self.slug,
        }


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One channel, and what is queued for it."""

    name: str
    kind: str
    to: str | None
    source: str  # settings, program or built-in; missing: only its deliveries exist
    inbound: bool
    pending: int
    dead: int
    incident: str | None  # its open incident
    findings: tuple[InboundFinding, ...] = ()  # problems with receiving on it

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.kind,
            "to": self.to,
            "source": self.source,
            "inbound": self.inbound,
            "pending": self.pending,
            "dead": self.dead,
            "incident": self.incident,
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class ChannelTest:
    """The result of a test message."""

    channel: str
    to: str | None
    error: str | None = None  # None: it arrived
    cure: str | None = None

    def to_json(self) -> dict[str, Any]:
        status = "delivered" if self.error is None else "failed"
        return {"status": status, "channel": self.channel, "to": self.to, "error": self.error, "cure": self.cure}


@dataclass(frozen=True, slots=True)
class InteractionView:
    """The last interaction with a person."""

    channel: str
    to: str | None
    at: datetime

    def to_json(self) -> dict[str, Any]:
        return {"channel": self.channel, "to": self.to, "at": _text(self.at)}


@dataclass(frozen=True, slots=True)
class InboxView:
    """One item of the inbox."""

    id: str
    text: str
    slug: str | None
    run_id: int | None
    at: datetime
    read_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": self.text,
            "slug": self.slug,
            "runId": None if self.run_id is None else str(self.run_id),
            "at": _text(self.at),
            "readAt": _text(self.read_at),
        }


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


def _text(at: datetime | None) -> str | None:
    return None if at is None else format_instant(round((at - _EPOCH) / timedelta(milliseconds=1)))
