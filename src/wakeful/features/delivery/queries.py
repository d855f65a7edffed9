"""Questions about deliveries and channels."""

from wakeful.features.delivery.incidents import of_channel
from wakeful.features.delivery.registry import INBOX, ChannelRegistry
from wakeful.features.delivery.views import ChannelView
from wakeful.ports.channel import Listening
from wakeful.ports.store import Tx


def channels(tx: Tx, registry: ChannelRegistry) -> list[ChannelView]:
    """Every channel in the order of routing, then those that only have deliveries left."""
    counts = tx.deliveries.open_counts()
    incidents = {one.name: one.text for one in tx.incidents.open()}
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
            )
        )
    return views


def _source(registry: ChannelRegistry, name: str) -> str:
    if registry.get(name) is None:
        return "missing"
    if name == INBOX:
        return "built-in"
    return "program" if registry.is_registered(name) else "settings"
