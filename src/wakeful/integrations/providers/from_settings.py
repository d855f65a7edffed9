"""Creates providers from the settings or from REST."""

from pathlib import Path
from typing import assert_never
from zoneinfo import ZoneInfo

from wakeful.config.slots import AnySlot, CommandSlot, GlmSlot, HttpSlot
from wakeful.integrations.net.exchange import Exchanges
from wakeful.integrations.providers.command import CommandProvider
from wakeful.integrations.providers.glm import GlmProvider
from wakeful.integrations.providers.http import HttpProvider
from wakeful.integrations.providers.keys import Key
from wakeful.ports.action import Withholds
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.quota import QuotaProvider


def make_provider(
    name: str,
    slot: AnySlot,
    *,
    clock: Clock,
    home: Path,
    zone: str,
    listener: ExchangeListener | None = None,
    withholds: Withholds | None = None,
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
        case _:
            assert_never(slot)
