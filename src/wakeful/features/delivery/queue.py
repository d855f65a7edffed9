"""Queueing: a message becomes a delivery, in the transaction that caused it."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.heartbeat.acknowledgement import stripped
from wakeful.core.run.effects import Deliver
from wakeful.core.time.instants import Duration, Instant
from wakeful.features.delivery.registry import INBOX, LAST, ChannelRegistry
from wakeful.features.delivery.text import inert
from wakeful.ports import events
from wakeful.ports.chores import ChoreClaim, rings_at
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import DeliveryChanged, Suppressed
from wakeful.ports.interactions import Interactions
from wakeful.ports.outbox import ALARM_DELIVERY, Addressee, Addressees, Deliveries, Delivery, NewDelivery, Purpose
from wakeful.ports.store import Alarm, Report, Tx

_LEVELS: Final[Mapping[EventKind[DeliveryChanged], Literal["debug", "info", "warn", "error"]]] = {
    events.DELIVERY_RETRYING: "warn",
    events.DELIVERY_MISSING: "warn",
    events.DELIVERY_DEAD: "error",
    events.DELIVERY_QUEUED: "debug",
}
SAYS_NOTHING: Final = "the reply was only the ack token"
Queued: TypeAlias = int | Literal["says nothing", "already queued"]
"""The delivery's id, or why none was queued."""

TOLD_ELSEWHERE: Final = "it was sent to the channels of its schedules"


class Target(NamedTuple):
    """Where a message goes."""

    channel: str
    to: str | None


def route(
    tx: Tx, registry: ChannelRegistry, channel: str | None, to: str | None, *, avoid: Collection[str] = ()
) -> Target:
    """The named channel, else the channel of the last interaction, else the first one, else the inbox."""
    if channel is not None and channel != LAST:
        return Target(channel, to)
    for last in tx[Interactions].newest_first():
        if registry.get(last.channel) is not None and last.channel not in avoid:
            return Target(last.channel, to or last.recipient)
    first = next((name for name in registry.names if name not in avoid), INBOX)
    return Target(first, to)


def enqueue(
    tx: Tx,
    target: Target,
    text: str,
    *,
    now: Instant,
    expires_at: Instant,
    ack_token: str,
    purpose: Purpose = "message",
    run_id: int | None = None,
    slug: str | None = None,
) -> Queued:
    """Write the delivery, due immediately if nothing is queued before it.

    Every message to a person passes through this function, so it removes the ack token, and only after the text has
    been made plain: removed characters may have split the token."""
    plain = inert(text)
    if ack_token in plain:
        plain = stripped(plain, ack_token)
    if not plain.strip():
        return "says nothing"
    addressee = tx[Addressees].of(*target)
    new = NewDelivery(addressee.addressee_id, target.channel, target.to, plain, purpose, now, expires_at, run_id, slug)
    delivery_id = tx[Deliveries].add_new(new)
    if delivery_id is None:
        return "already queued"
    set_alarm(tx, addressee)
    report(tx, events.DELIVERY_QUEUED, new, delivery_id)
    return delivery_id


def deliver(
    tx: Tx,
    effect: Deliver,
    now: Instant,
    *,
    registry: ChannelRegistry,
    age_max: Callable[[], Duration],
    ack_token: Callable[[], str],
) -> None:
    """Apply the effect. A run sends each addressee one message, under whatever name it was addressed."""
    target = route(tx, registry, effect.channel, effect.to)
    purpose: Purpose = "note" if effect.is_note else "message"
    if effect.run_id is not None and _is_queued(tx, registry, effect.run_id, target, purpose):
        return None
    if effect.unless_told and len(tx[Deliveries].of_runs(effect.unless_told)) == len(set(effect.unless_told)):
        return _suppress(tx, effect, target, TOLD_ELSEWHERE)
    queued = enqueue(
        tx,
        target,
        effect.text,
        now=now,
        expires_at=now + age_max(),
        ack_token=ack_token(),
        purpose=purpose,
        run_id=effect.run_id,
        slug=effect.slug,
    )
    if queued == "says nothing":
        _suppress(tx, effect, target, SAYS_NOTHING)
    return None


def _is_queued(tx: Tx, registry: ChannelRegistry, run_id: int, target: Target, purpose: Purpose) -> bool:
    """Whether the run has already queued this for the same person, perhaps under another name: a channel without a
    recipient means its default recipient."""
    said = tx[Deliveries].of_runs([run_id]).get(run_id, ())
    places = {_place(registry, row.channel, row.recipient) for row in said if row.purpose == purpose}
    return _place(registry, *target) in places


def _place(registry: ChannelRegistry, name: str, to: str | None) -> Target:
    channel = registry.get(name)
    return Target(name, to or (None if channel is None else channel.to))


def _suppress(tx: Tx, effect: Deliver, target: Target, why: str) -> None:
    """Record on the run why nothing is sent, so that intended silence is not mistaken for a lost delivery."""
    data = Suppressed(target.channel, effect.run_id, effect.slug)
    tx.report(Report(events.DELIVERY_SUPPRESSED, data, f"nothing is sent: {why}", slug=effect.slug))
    run = None if effect.run_id is None else tx.runs.lock([effect.run_id]).get(effect.run_id)
    if run is not None:
        kept = json.loads(run.result or "{}") | {"suppressed": why}
        tx.runs.annotate_many([run._replace(result=json.dumps(kept, ensure_ascii=False))])


def claim_of(addressee: Addressee) -> ChoreClaim:
    """The claim of the attempt in progress."""
    return ChoreClaim(addressee.fence, addressee.claimed_until)


def due_at(tx: Tx, addressee: Addressee) -> Instant | None:
    """When the first delivery in line may be tried or is too old."""
    head = tx[Deliveries].head(addressee.addressee_id)
    return None if head is None else min(head.next_attempt_at or 0, head.expires_at)


def set_alarm(tx: Tx, addressee: Addressee) -> None:
    """Derive the alarm of a locked addressee from its queue."""
    at = rings_at(claim_of(addressee), due_at(tx, addressee))
    tx.alarms.set_many([Alarm(ALARM_DELIVERY, addressee.addressee_id, at, 1, None, 0)])


def report(
    tx: Tx,
    event: EventKind[DeliveryChanged],
    row: Delivery | NewDelivery,
    delivery_id: int,
    *,
    error: str | None = None,
    next_attempt_at: Instant | None = None,
    attempts: int | None = None,
) -> None:
    """Report the state of a delivery."""
    data = DeliveryChanged(
        delivery_id,
        row.channel,
        row.recipient,
        row.purpose,
        row.run_id,
        row.slug,
        attempts,
        error,
        next_attempt_at,
    )
    said = f"delivery {delivery_id} to {row.channel} {event.what}" + ("" if error is None else f": {error}")
    tx.report(Report(event, data, said, _LEVELS.get(event, "info"), slug=row.slug))
