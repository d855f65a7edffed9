"""Commands on deliveries, channels and the inbox. Each is a function of a transaction."""

from typing import Final

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.time.instants import Duration, Instant
from wakeful.engine.incident_rows import Incidents
from wakeful.engine.incidents import end_incident
from wakeful.features.delivery.incidents import of_channel
from wakeful.features.delivery.queue import enqueue, report, route, set_alarm
from wakeful.features.delivery.registry import LAST, ChannelRegistry
from wakeful.features.delivery.text import undelivered
from wakeful.ports import events
from wakeful.ports.inbox import Inbox
from wakeful.ports.interactions import Interactions
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Addressee, Addressees, Deliveries, Delivery, DeliveryStatus, public_id
from wakeful.ports.store import STORE_ID, Tx

LEFT_MAX: Final = 1_000
"""How many deliveries are looked through for another that cannot be delivered."""
_UNDELIVERED: Final[tuple[DeliveryStatus, ...]] = ("dead", "pending")


def send(
    tx: Tx,
    text: str,
    channel: str | None,
    to: str | None,
    *,
    registry: ChannelRegistry,
    now: Instant,
    age_max: Duration,
    ack_token: str,
) -> Delivery:
    """Queue a message for a person."""
    check_channel(registry, channel, "channel")
    target = route(tx, registry, channel, to)
    queued = enqueue(tx, target, text, now=now, expires_at=now + age_max, ack_token=ack_token)
    if isinstance(queued, str):
        refuse("text", "is empty; write the text to deliver")
    return _find(tx, queued)


def retry(tx: Tx, delivery_id: int, *, now: Instant, age_max: Duration) -> Delivery:
    """Try a delivery now: a dead letter starts over, a waiting one stops waiting."""
    addressee, row = _hold(tx, delivery_id)
    if row.status == "delivered":
        raise Conflict("it was already delivered; there is nothing to retry")
    attempts = 0 if row.status == "dead" else row.attempts
    moved = row._replace(
        status="pending",
        attempts=attempts,
        unsent_claims=min(row.unsent_claims, 1),  # it need not wait; a claim that is under way still has to be marked
        next_attempt_at=now,
        expires_at=max(row.expires_at, now + age_max) if row.status == "dead" else row.expires_at,
        ended_at=None,
    )
    tx[Deliveries].save(moved)
    set_alarm(tx, addressee)
    report(tx, events.DELIVERY_REQUEUED, row, delivery_id)
    return moved


def discard(tx: Tx, delivery_id: int, *, now: Instant) -> None:
    """Delete a delivery; the next delivery in line may be sent. The incident of its channel ends with the last message
    that could not be delivered: nothing is left to send again."""
    addressee, row = _hold(tx, delivery_id)
    tx[Deliveries].remove(delivery_id)
    set_alarm(tx, addressee)
    report(tx, events.DELIVERY_DISCARDED, row, delivery_id)
    if row.last_error is not None:
        _without(tx, row, now)


def _without(tx: Tx, discarded: Delivery, now: Instant) -> None:
    """The incident of the channel names a message to send again: another one, if one is left."""
    name = of_channel(discarded.channel)
    incident = tx[Incidents].lock_open([name]).get(name)
    if incident is None:
        return
    listed = [
        row for status in _UNDELIVERED for row in tx[Deliveries].page(status=status, before_id=None, limit=LEFT_MAX)
    ]
    left = [row for row in listed if row.channel == discarded.channel and row.last_error is not None]
    store_id = tx[Meta].value(STORE_ID) or ""
    if not left:
        end_incident(tx, name, now=now)
    elif left[0].status == "dead" and public_id(store_id, discarded) in incident.text:
        tx[Incidents].save(incident._replace(text=undelivered(left[0], public_id(store_id, left[0]))))


def touch(tx: Tx, channel: str, to: str | None, *, registry: ChannelRegistry, now: Instant) -> None:
    """Record an interaction on a channel: deliveries without a channel go to it from now on."""
    known(channel, registry)
    tx[Interactions].touch(channel, to, at=now)


def known(channel: str, registry: ChannelRegistry) -> None:
    """Raise `NotFound` if there is no such channel."""
    if registry.get(channel) is None:
        raise NotFound(f"there is no channel {shown(channel)}; {there_are(registry)}")


def mark_read(tx: Tx, item_id: int, *, at: Instant | None) -> None:
    """Mark an inbox item as read or unread."""
    if not tx[Inbox].mark_read(item_id, at=at):
        raise NotFound(f"there is no inbox item {item_id}")


def remove_item(tx: Tx, item_id: int) -> None:
    """Delete an inbox item."""
    if not tx[Inbox].remove(item_id):
        raise NotFound(f"there is no inbox item {item_id}")


def check_channel(registry: ChannelRegistry, channel: str | None, field: str) -> None:
    """Refuse the name of a channel that does not exist."""
    if channel is not None and channel != LAST and registry.get(channel) is None:
        refuse(field, f"there is no channel {shown(channel)}; {there_are(registry)}")


def there_are(registry: ChannelRegistry) -> str:
    """The names to use instead."""
    return f"write last or one of {', '.join(registry.names)}, or add it under [channels]"


def _hold(tx: Tx, delivery_id: int) -> tuple[Addressee, Delivery]:
    """The delivery, with its addressee locked."""
    addressee_id = _find(tx, delivery_id).addressee_id
    addressee = tx[Addressees].lock([addressee_id])[addressee_id]
    return addressee, _find(tx, delivery_id)  # read again under the lock: it may have been deleted or delivered


def _find(tx: Tx, delivery_id: int) -> Delivery:
    row = tx[Deliveries].get(delivery_id)
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id}")
    return row
