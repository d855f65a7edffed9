"""Commands on deliveries, channels and the inbox. Each is a function of a transaction."""

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.time.instants import Duration, Instant
from wakeful.features.delivery.queue import enqueue, report, route, set_alarm
from wakeful.features.delivery.registry import LAST, ChannelRegistry
from wakeful.ports.outbox import Addressee, Delivery
from wakeful.ports.store import Tx


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
        next_attempt_at=now,
        expires_at=max(row.expires_at, now + age_max) if row.status == "dead" else row.expires_at,
        ended_at=None,
    )
    tx.deliveries.save(moved)
    set_alarm(tx, addressee)
    report(tx, "requeued", row, delivery_id)
    return moved


def discard(tx: Tx, delivery_id: int) -> None:
    """Delete a delivery; the next delivery in line may be sent."""
    addressee, row = _hold(tx, delivery_id)
    tx.deliveries.remove(delivery_id)
    set_alarm(tx, addressee)
    report(tx, "discarded", row, delivery_id)


def touch(tx: Tx, channel: str, to: str | None, *, registry: ChannelRegistry, now: Instant) -> None:
    """Record an interaction on a channel: deliveries without a channel go to it from now on."""
    known(channel, registry)
    tx.channels.touch(channel, to, at=now)


def known(channel: str, registry: ChannelRegistry) -> None:
    """Raise `NotFound` if there is no such channel."""
    if registry.get(channel) is None:
        raise NotFound(f"there is no channel {shown(channel)}; {there_are(registry)}")


def mark_read(tx: Tx, item_id: int, *, at: Instant | None) -> None:
    """Mark an inbox item as read or unread."""
    if not tx.inbox.mark_read(item_id, at=at):
        raise NotFound(f"there is no inbox item {item_id}")


def remove_item(tx: Tx, item_id: int) -> None:
    """Delete an inbox item."""
    if not tx.inbox.remove(item_id):
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
    addressee = tx.deliveries.lock_addressees([addressee_id])[addressee_id]
    return addressee, _find(tx, delivery_id)  # read again under the lock: it may have been deleted or delivered


def _find(tx: Tx, delivery_id: int) -> Delivery:
    row = tx.deliveries.get(delivery_id)
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id}")
    return row
