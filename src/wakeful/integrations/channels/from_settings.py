"""Creates channels from the settings."""

from collections.abc import Mapping
from typing import Final, assert_never, cast

from wakeful.config import channels as written
from wakeful.integrations.channels.apprise import AppriseChannel
from wakeful.integrations.channels.console import ConsoleChannel
from wakeful.integrations.channels.inbox import AnotherInbox
from wakeful.integrations.channels.program import ProgramChannel
from wakeful.integrations.channels.telegram import Bot, TelegramChannel
from wakeful.integrations.channels.telegram_listening import ListeningTelegramChannel
from wakeful.integrations.channels.webhook import WebhookChannel
from wakeful.integrations.plugins.guard import Fallback
from wakeful.integrations.plugins.loading import Absent, Function, PluginBroken, Plugins
from wakeful.ports.channel import Channel, Unsent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener


class ConfiguredChannels:
    """Creates channels; one whose settings did not change stays the same object and keeps listening."""

    def __init__(self, plugins: Plugins | None = None) -> None:
        self._plugins = plugins or Plugins(lambda: 0)
        self._made: dict[str, tuple[written.AnyChannel, Channel]] = {}

    def channels(
        self, described: Mapping[str, written.AnyChannel], clock: Clock, listener: ExchangeListener | None
    ) -> dict[str, Channel]:
        """One for each `[channels.NAME]`; the inbox exists without one."""
        made: dict[str, tuple[written.AnyChannel, Channel]] = {}
        for name, channel in described.items():
            if isinstance(channel, written.InboxChannel) and name == "inbox":
                continue
            known = self._made.get(name)
            made[name] = (
                known
                if known is not None and known[0] == channel
                else (channel, _make(channel, clock, listener, self._plugins))
            )
        self._made = made
        return {name: channel for name, (_, channel) in made.items()}


_FALLBACKS: Final[Mapping[str, Fallback]] = {"send": Unsent, "close": lambda _: None}


def _plugin(channel: written.PluginChannel, plugins: Plugins) -> Channel:
    """A channel of a plugin; while it cannot be used, its messages wait."""
    try:
        made = plugins.make("wakeful.channels", channel.type, channel.settings, _FALLBACKS)
    except PluginBroken as broken:
        return cast(Channel, Absent(str(broken), _FALLBACKS, kind=channel.type, address="", to=None))
    return ProgramChannel(made.call, None, channel.type) if isinstance(made, Function) else cast(Channel, made)


def _make(channel: written.AnyChannel, clock: Clock, listener: ExchangeListener | None, plugins: Plugins) -> Channel:
    match channel:
        case written.WebhookChannel():
            token = None if channel.token is None else channel.token.reveal()
            return WebhookChannel(
                channel.url.reveal(), clock, listener, token=token, allow_private=channel.allow_private
            )
        case written.TelegramChannel():
            bot = Bot(channel.token.reveal(), channel.base_url, clock, listener)
            if not channel.inbound:
                return TelegramChannel(bot, channel.chat, clock)
            return ListeningTelegramChannel(bot, channel.chat, clock, frozenset(channel.senders))
        case written.ConsoleChannel():
            return ConsoleChannel()
        case written.AppriseChannel():
            return AppriseChannel(channel.url.reveal())
        case written.InboxChannel():
            return AnotherInbox()
        case written.PluginChannel():
            return _plugin(channel, plugins)
        case _:
            assert_never(channel)
