"""Queries on deliveries, channels and the inbox."""

from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.time.instants import Instant
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery import inbound
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.features.delivery.incidents import of_channel
from wakeful.features.delivery.registry import INBOX, ChannelRegistry
from wakeful.features.delivery.views import (
    ChannelList,
    ChannelView,
    DeliveryPage,
    DeliveryView,
    InboxPage,
    view_delivery,
    view_interaction,
    view_item,
)
from wakeful.ports.channel import Listening
from wakeful.ports.inbox import Inbox
from wakeful.ports.interactions import Interactions
from wakeful.ports.outbox import Deliveries, Delivery, DeliveryStatus, public_id
from wakeful.ports.store import Tx


def deliveries(
    tx: Tx, *, status: DeliveryStatus | None, limit: int, before_id: int | None, store_id: str
) -> DeliveryPage:
    """Deliveries, newest first."""
    rows = tx[Deliveries].page(status=status, before_id=before_id, limit=limit + 1)
    following = rows[limit - 1].delivery_id if len(rows) > limit else None
    return DeliveryPage([view_of(row, store_id) for row in rows[:limit]], following)


def delivery(tx: Tx, delivery_id: str, *, store_id: str) -> DeliveryView:
    """One delivery."""
    row = tx[Deliveries].get(number_of(delivery_id, store_id))
    if row is None:
        raise NotFound(f"there is no delivery {shown(delivery_id)}")
    return view_of(row, store_id)


def view_of(row: Delivery, store_id: str) -> DeliveryView:
    """A delivery with its public id."""
    return view_delivery(row, public_id(store_id, row))


def number_of(delivery_id: str, store_id: str) -> int:
    """The number in a delivery id; people may write just the number."""
    of_store, dash, number = delivery_id.partition(".")[0].rpartition("-")
    if (dash and of_store != store_id) or not _is_number(number):
        raise NotFound(f"there is no delivery {shown(delivery_id)}")
    return int(number)


def inbox(tx: Tx, *, is_unread: bool, limit: int, before_id: int | None) -> InboxPage:
    """Items of the inbox, newest first, and the number of unread ones."""
    items = [view_item(row) for row in tx[Inbox].page(is_unread=is_unread, before_id=before_id, limit=limit + 1)]
    following = items[limit - 1].id if len(items) > limit else None
    return InboxPage(items[:limit], following, tx[Inbox].unread())


def item_number(item_id: str) -> int:
    """The number of an inbox item."""
    if not _is_number(item_id):
        raise NotFound(f"there is no inbox item {shown(item_id)}")
    return int(item_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def channels(tx: Tx, registry: ChannelRegistry, *, now: Instant) -> ChannelList:
    """Every channel, and the last interaction."""
    last = next(iter(tx[Interactions].newest_first()), None)
    views = _channels(tx, registry, now=now)
    return ChannelList(views, None if last is None else view_interaction(last))


def _channels(tx: Tx, registry: ChannelRegistry, *, now: Instant) -> list[ChannelView]:
    """Every channel in routing order, then removed ones that still have deliveries."""
    counts = tx[Deliveries].open_counts()
    incidents = {incident.name: incident.text for incident in tx[Incidents].open()}
    names = dict.fromkeys((*registry.names, *sorted(counts)))
    views = []
    for name in names:
        channel, count = registry.get(name), counts.get(name, {})
        views.append(
            ChannelView(
                name,
                "unknown" if channel is None else channel.kind,
                None if channel is None else channel.to,
                _source(registry, name),
                isinstance(channel, Listening),
                count.get("pending", 0),
                count.get("dead", 0),
                incidents.get(of_channel(name)),
                tuple(_inbound(tx, name, channel, now)),
            )
        )
    return views


def inbound_findings(tx: Tx, registry: ChannelRegistry, *, now: Instant) -> list[InboundFinding]:
    """Problems with receiving on channels, on any node."""
    return [finding for name in registry.names for finding in _inbound(tx, name, registry.get(name), now)]


def _inbound(tx: Tx, name: str, channel: object, now: Instant) -> list[InboundFinding]:
    if not isinstance(channel, Listening):
        return []
    return inbound.findings(inbound.read(tx, name), name, is_allowed=channel.is_allowed, now=now)


def _source(registry: ChannelRegistry, name: str) -> str:
    if registry.get(name) is None:
        return "missing"
    if name == INBOX:
        return "built-in"
    return "program" if registry.is_registered(name) else "settings"
