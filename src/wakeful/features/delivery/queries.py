"""Queries on deliveries and channels."""

from wakeful.core.time.instants import Instant
from wakeful.features.delivery import inbound
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.features.delivery.incidents import of_channel
from wakeful.features.delivery.registry import INBOX, ChannelRegistry
from wakeful.features.delivery.views import ChannelView
from wakeful.ports.channel import Listening
from wakeful.ports.store import Tx


def channels(tx: Tx, registry: ChannelRegistry, *, now: Instant) -> list[ChannelView]:
    """Every channel in routing order, then removed ones that still have deliveries."""
    counts = tx.deliveries.open_counts()
    incidents = {incident.name: incident.text for incident in tx.incidents.open()}
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
