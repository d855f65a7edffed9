"""Creates providers from the settings or from REST."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never, cast
from zoneinfo import ZoneInfo

from wakeful.config.slots import AnySlot, CommandSlot, GlmSlot, HttpSlot, PluginSlot
from wakeful.core.slot.slot import ReadFailure
from wakeful.integrations.net.exchange import Exchanges
from wakeful.integrations.plugins.guard import Fallback
from wakeful.integrations.plugins.loading import Absent, PluginBroken, Plugins
from wakeful.integrations.providers.command import CommandProvider
from wakeful.integrations.providers.glm import GlmProvider
from wakeful.integrations.providers.http import HttpProvider
from wakeful.integrations.providers.keys import Key
from wakeful.ports.action import Withholds
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.quota import QuotaProvider, WakeFailure

_FALLBACKS: Final[Mapping[str, Fallback]] = {
    "read": lambda why: ReadFailure("unreadable", why),
    "wake": WakeFailure,
    "statistics": lambda why: ReadFailure("unreadable", why),
    "close": lambda _: None,
}


def _plugin(slot: PluginSlot, plugins: Plugins) -> QuotaProvider:
    """A provider of a plugin; while it cannot be used, its quota cannot be read."""
    try:
        made = plugins.make("wakeful.providers", slot.provider, slot.settings, _FALLBACKS)
    except PluginBroken as broken:
        absent = Absent(str(broken), _FALLBACKS, mark="", can_wake=False, has_statistics=False)
        return cast(QuotaProvider, absent)
    return cast(QuotaProvider, made)


def make_provider(
    name: str,
    slot: AnySlot,
    *,
    clock: Clock,
    home: Path,
    zone: str,
    listener: ExchangeListener | None = None,
    withholds: Withholds | None = None,
    plugins: Plugins | None = None,
) -> QuotaProvider:
    """The provider of one slot; the listener gets each of its exchanges under a flow id."""
    match slot:
        case GlmSlot():
            return GlmProvider(
                name,
                Key([slot.api_key.reveal()]),
                slot.base_url,
                slot.model,
                exchanges=Exchanges(clock, listener),
                clock=clock,
                zone=ZoneInfo(zone if slot.timezone == "local" else slot.timezone),
            )
        case HttpSlot():
            key = Key([] if slot.api_key is None else [slot.api_key.reveal()])
            return HttpProvider(name, slot, key, exchanges=Exchanges(clock, listener), clock=clock)
        case CommandSlot():
            return CommandProvider(name, slot, home=home, clock=clock, withholds=withholds)
        case PluginSlot():
            return _plugin(slot, plugins or Plugins(lambda: 0))
        case _:
            assert_never(slot)
